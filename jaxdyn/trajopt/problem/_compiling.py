"""Compiled calls of a solver, with compilation timed separately, once per structure and shape of the arguments."""

import dataclasses
import functools
import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer

from jaxdyn._types import PyTree
from jaxdyn.trajopt.problem._solution import Solution, SolveStatus

_UNSOLVED = "the trajectory is not optimal; solve without throw=True and read its status, violations and residuals"


def run_compiled(method: Callable[..., Solution], arguments: PyTree, throw: bool) -> Solution:
    """`method(arguments)`, compiled, with the seconds of compilation and execution.

    Inside of a transformation the call becomes part of the surrounding program. With `throw` a problem that is not
    solved raises `ConvergenceError`; inside of a transformation, where values are unknown, the program raises an
    error of equinox at run time.
    """
    arrays, structure = eqx.partition(arguments, eqx.is_array)
    leaves, treedef = jax.tree.flatten(arrays)
    if any(isinstance(x, Tracer) for x in leaves):
        solution = _trace(method, arguments)
        return eqx.error_if(solution, solution.status != SolveStatus.SOLVED, _UNSOLVED) if throw else solution
    shapes = tuple((x.shape, x.dtype, x.weak_type) for x in map(jnp.asarray, leaves))
    static, static_treedef = jax.tree.flatten(structure)
    misses = _compile.cache_info().misses
    run, seconds, out = _compile(method, treedef, shapes, tuple(static), static_treedef)
    is_new = _compile.cache_info().misses > misses
    start = time.perf_counter()
    results = jax.block_until_ready(run(*leaves))
    elapsed = time.perf_counter() - start
    jax.effects_barrier()  # progress is printed before the result is returned
    solution = eqx.combine(jax.tree.unflatten(out[0], results), out[1])
    solution = dataclasses.replace(solution, compile_seconds=seconds if is_new else 0.0, run_seconds=elapsed)
    return solution.checked() if throw else solution


@eqx.filter_jit
def _trace(method, arguments):
    """Traced once per structure and shape, so that repeated calls of `jax.grad` do not compile again."""
    return method(arguments)


@functools.lru_cache(maxsize=64)
def _compile(method, treedef, shapes, static, static_treedef):
    """The compiled program, the seconds of its compilation, and the structure of its result."""
    start = time.perf_counter()
    structure = jax.tree.unflatten(static_treedef, static)
    out: list[PyTree] = []

    def run(*leaves):
        solution = method(eqx.combine(jax.tree.unflatten(treedef, leaves), structure))
        arrays, rest = eqx.partition(solution, eqx.is_array)
        flat, treedef_out = jax.tree.flatten(arrays)
        out[:] = [treedef_out, rest]
        return flat

    signature = [jax.ShapeDtypeStruct(s, d, weak_type=w) for s, d, w in shapes]
    compiled = jax.jit(run).lower(*signature).compile()
    return compiled, time.perf_counter() - start, tuple(out)
