"""Time of compilation and execution."""

import time
from collections.abc import Callable
from typing import Any

import jax


def run_and_time(fun: Callable[..., Any], *args: Any) -> tuple[Any, float]:
    """The result of `fun(*args)` and the time that it took, s."""
    start = time.perf_counter()
    out = jax.block_until_ready(fun(*args))
    return out, time.perf_counter() - start


def compile_and_time(fun: Callable[..., Any], *args: Any) -> tuple[Callable[..., Any], float]:
    """`fun` compiled for arguments with the structure of `args`, and the time of tracing and compilation, s."""
    start = time.perf_counter()
    out = jax.jit(fun).lower(*args).compile()
    return out, time.perf_counter() - start
