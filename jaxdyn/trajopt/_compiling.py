"""Calls of a whole method whose compilation is timed apart, once for each structure and shape of its arguments."""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer

from jaxdyn.trajopt._result import Solution, SolveStatus

_UNSOLVED = "a trajectory is not optimal; without throw=True its status, violations and residuals say why"


def called(method: Callable[..., Solution], arguments: Any, throw: bool) -> Solution:
    """`method(arguments)`: compiled, with the seconds of compiling and running, or as part of the program around it.

    With `throw` a problem that is not solved raises `ConvergenceError`; inside of a transformation, whose values are
    not known yet, an error of equinox when the program runs.
    """
    numbers, structure = eqx.partition(arguments, eqx.is_array)
    leaves, treedef = jax.tree.flatten(numbers)
    if any(isinstance(x, Tracer) for x in leaves):
        solution = _inside(method, arguments)
        return eqx.error_if(solution, solution.status != SolveStatus.SOLVED, _UNSOLVED) if throw else solution
    shapes = tuple((x.shape, x.dtype, x.weak_type) for x in map(jnp.asarray, leaves))
    static, form = jax.tree.flatten(structure)
    misses = _compiled.cache_info().misses
    run, seconds, out = _compiled(method, treedef, shapes, tuple(static), form)
    fresh = _compiled.cache_info().misses > misses
    start = time.perf_counter()
    arrays = jax.block_until_ready(run(*leaves))
    elapsed = time.perf_counter() - start
    jax.effects_barrier()  # all lines of progress are shown before the result is
    solution = eqx.combine(jax.tree.unflatten(out[0], arrays), out[1])
    solution = dataclasses.replace(solution, compile_seconds=seconds if fresh else 0.0, run_seconds=elapsed)
    return solution.checked() if throw else solution


@eqx.filter_jit
def _inside(method, arguments):
    """Traced once for each structure and shape: `jax.grad` of a plain function is not compiled at every call."""
    return method(arguments)


@functools.lru_cache(maxsize=64)
def _compiled(method, treedef, shapes, static, form):
    """Compiled code, the seconds it took, and the structure of the result."""
    start = time.perf_counter()
    structure = jax.tree.unflatten(form, static)
    out: list[Any] = []

    def run(*leaves):
        solution = method(eqx.combine(jax.tree.unflatten(treedef, leaves), structure))
        arrays, rest = eqx.partition(solution, eqx.is_array)
        flat, shape = jax.tree.flatten(arrays)
        out[:] = [shape, rest]
        return flat

    wanted = [jax.ShapeDtypeStruct(s, d, weak_type=w) for s, d, w in shapes]
    compiled = jax.jit(run).lower(*wanted).compile()
    return compiled, time.perf_counter() - start, tuple(out)
