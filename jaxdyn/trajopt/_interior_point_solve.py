"""From a problem to its solution by a transcription and the interior-point method."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxdyn._errors import ShapeError
from jaxdyn._types import Array, Float
from jaxdyn.trajopt._collocation import HermiteSimpson
from jaxdyn.trajopt._compiling import called
from jaxdyn.trajopt._interior_point import Loop, Progress
from jaxdyn.trajopt._interior_point_barrier import total
from jaxdyn.trajopt._interior_point_program import Program
from jaxdyn.trajopt._problem import Problem
from jaxdyn.trajopt._result import Residual, Solution, largest
from jaxdyn.trajopt._sensitivity import optimum
from jaxdyn.trajopt._transcription import AbstractTranscription, node, num_forces, path_sizes


def solve(
    problem: Problem,
    *,
    transcription: AbstractTranscription | None = None,
    intervals: int = 40,
    mesh: Float[Array, " nodes"] | None = None,
    tolerance: Any = None,
    max_iterations: int = 300,
    barrier: Any = 0.1,
    progress: bool | Callable[[Progress], Any] = False,
    throw: bool = False,
) -> Solution:
    """The optimum of a problem, by direct transcription and a primal-dual interior-point method.

    * `transcription`: `HermiteSimpson()` by default, `Trapezoidal()`, `MultipleShooting()`, on `intervals` equal
      intervals or on a `mesh` of fractions of the horizon from 0 to 1.
    * `tolerance` on the scaled conditions of optimality, by default 1e-8 in float64 and 1e-4 in float32.
    * `barrier`: the barrier parameter at the start. For a warm start, `problem.with_guess(solution.guess)`, a
      smaller one such as 1e-3 loses less of the guess.
    * `progress`: True prints a line an iteration; a function is called with a `Progress`.

    The whole method is compiled: `jax.vmap` over problems, for example with many guesses, and `jax.grad`, `jax.jacfwd`
    in any number of the problem work. A failure is in the status, or raises if `throw`; `solution.report()` says which
    constraint is violated most, where and by how much.
    """
    problem = _numbers(problem)
    dtype = problem.dtype
    mesh = jnp.asarray(np.linspace(0, 1, intervals + 1) if mesh is None else mesh, dtype)
    if mesh.ndim != 1 or mesh.shape[0] < 2:
        raise ShapeError(f"mesh has shape {mesh.shape}, expected (nodes,) with two or more fractions from 0 to 1")
    if tolerance is None:
        tolerance = 1e-8 if dtype == jnp.float64 else 1e-4
    show = _printed if progress is True else (progress or None)
    args = problem, mesh, jnp.asarray(tolerance, dtype), jnp.asarray(barrier, dtype)
    options = HermiteSimpson() if transcription is None else transcription, max_iterations, show
    solution = called(_solution, (args, options))
    if isinstance(solution.status, Tracer):
        return solution
    return solution.checked() if throw else solution


def _numbers(tree: Any) -> Any:
    return jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, float | int | np.ndarray) else x, tree)


def _solution(arguments) -> Solution:
    (problem, mesh, tolerance, barrier), (transcription, max_iterations, show) = arguments
    moving, fixed = eqx.partition(Program(problem, transcription, mesh), eqx.is_array)
    leaves, treedef = jax.tree.flatten(moving)
    build = lambda leaves: eqx.combine(jax.tree.unflatten(treedef, leaves), fixed)
    loop, (s, m, cost) = optimum(build, leaves, tolerance, max_iterations, show, barrier)
    return _described(build(leaves), loop, s, m, cost)


def _described(program: Program, loop: Loop, s, m, cost) -> Solution:
    problem, layout, transcription = program.problem, program.layout, program.transcription
    nodes = jax.vmap(lambda at, s: node(problem, layout, at, s))(program.mesh, s)
    inner = jax.vmap(lambda s, m, s1: transcription.middle_control(problem, layout, s, m, s1))(s[:-1], m, s[1:])
    u = nodes.u if layout.nu == problem.nu else jnp.concatenate([inner, inner[-1:]])
    found = residuals(program, loop.values)
    return Solution(
        nodes.t,
        nodes.x,
        u,
        nodes.horizon[0],
        cost,
        loop.status.astype(jnp.int32),
        loop.count.astype(jnp.int32),
        largest(found),
        total(loop.errors, 0.0),
        problem,
        found,
        Discretised(program, loop, inner),
    )


class Discretised(eqx.Module):
    """What belongs to the transcription: the program, the last state of the method, and the middles of intervals."""

    program: Program
    loop: Loop
    #: controls in the middle of the intervals, `(N, nu)`
    middle: Any


def residuals(program: Program, values) -> tuple[Residual, ...]:
    """Violations of all constraints by kind, with times and names."""
    problem, layout = program.problem, program.layout
    low, high = program.limits()
    over = jax.tree.map(lambda r, a, b: jnp.maximum(jnp.maximum(a - r, r - b), 0), values.ranged, low, high)
    times = program.mesh * node(problem, layout, jnp.ones(()), values.ranged.s[-1]).horizon
    middles = (times[1:] + times[:-1]) / 2
    d = problem.dynamics
    constants = tuple(["duration"] * layout.free) + d.state_names * layout.coupled
    names = d.state_names + d.control_names[: layout.nu] + constants
    rows = _row_names(program)
    ends = _path_names(problem) if layout.nu else ()
    out = [
        Residual("dynamics", _equation_names(program, values.c.shape[1]), times[:-1], jnp.abs(values.c)),
        Residual("start", tuple(f"row {k}" for k in range(values.b0.shape[0])), times[:1], jnp.abs(values.b0)[None]),
        Residual("end", tuple(f"row {k}" for k in range(values.bN.shape[0])), times[-1:], jnp.abs(values.bN)[None]),
        Residual("bounds", names, times, over.s),
        Residual("bounds inside of intervals", layout.inner, middles, over.m),
        Residual("path constraints", rows, times[:-1], over.rows),
        Residual("path constraints at the end", ends, times[-1:], over.end[None]),
    ]
    return tuple(r for r in out if r.amount.size)


def _path_names(problem: Problem) -> tuple[str, ...]:
    return tuple(f"{c.name} {k}" for c, n in zip(problem.path, path_sizes(problem), strict=True) for k in range(n))


def _row_names(program: Program) -> tuple[str, ...]:
    """Path constraints, as often as they are evaluated in an interval, and rates."""
    problem = program.problem
    size = program.transcription.row_limits(problem, program.layout)[0].shape[0]
    path = _path_names(problem)
    rates = tuple(f"rate of {u}" for u in problem.dynamics.control_names)
    times = next((k for k in range(3) if path and (size - k * len(path)) in (0, len(rates), 2 * len(rates)) and k), 0)
    rest = size - times * len(path)
    return path * times + (rates * 2)[:rest]


def _equation_names(program: Program, size: int) -> tuple[str, ...]:
    d, layout = program.problem.dynamics, program.layout
    tail = d.state_names + tuple(["duration"] * layout.free) + d.state_names * layout.coupled
    head = size - len(tail)
    inner = tuple(layout.inner[k] for k in layout.inner_dependent)
    lead = (inner + tuple(f"force {k}" for k in range(num_forces(program.problem))))[:head]
    return lead + tuple(f"equation {k}" for k in range(head - len(lead))) + tail


def _printed(p: Progress):
    if int(p.iteration) % 20 == 0:
        print("  iter          cost  violation  optimality    barrier   regular.       step")  # noqa: T201
    numbers = "  ".join(f"{float(x):9.2e}" for x in p[2:])
    print(f"{int(p.iteration):6d}  {float(p.cost):12.6g}  {numbers}")  # noqa: T201
