"""From a problem to its solution by a transcription and the interior-point method."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

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
from jaxdyn.trajopt._transcription import (
    AbstractTranscription,
    Label,
    end_names,
    node,
    path_labels,
    start_names,
)


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
    program = program_of(problem, transcription, intervals, mesh)
    dtype = program.problem.dtype
    if tolerance is None:
        tolerance = 1e-8 if dtype == jnp.float64 else 1e-4
    show = _printed if progress is True else (progress or None)
    args = program, jnp.asarray(tolerance, dtype), jnp.asarray(barrier, dtype)
    return called(_solution, (args, (max_iterations, show)), throw)


def program_of(problem: Problem, transcription: AbstractTranscription | None, intervals: int, mesh: Any) -> Program:
    """The nonlinear program of a problem on so many equal intervals, or on a mesh."""
    problem = _numbers(problem)
    mesh = jnp.asarray(np.linspace(0, 1, intervals + 1) if mesh is None else mesh, problem.dtype)
    if mesh.ndim != 1 or mesh.shape[0] < 2:
        raise ShapeError(f"mesh has shape {mesh.shape}, expected (nodes,) with two or more fractions from 0 to 1")
    return Program(problem, HermiteSimpson() if transcription is None else transcription, mesh)


def _numbers(tree: Any) -> Any:
    return jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, float | int | np.ndarray) else x, tree)


def _solution(arguments) -> Solution:
    (program, tolerance, barrier), (max_iterations, show) = arguments
    moving, fixed = eqx.partition(program, eqx.is_array)
    leaves, treedef = jax.tree.flatten(moving)
    build = lambda leaves: eqx.combine(jax.tree.unflatten(treedef, leaves), fixed)
    loop, (s, m, cost) = optimum(build, leaves, tolerance, max_iterations, show, barrier)
    ended = cost, loop.status.astype(jnp.int32), loop.count.astype(jnp.int32), total(loop.errors, 0.0)
    return solution_of(build(leaves), s, m, loop.values, ended, loop)


def solution_of(program: Program, s, m, values, ended, loop: Loop | None) -> Solution:
    """Variables of a program as a trajectory; `ended` are cost, status, iterations and error of the optimality."""
    problem, layout, transcription = program.problem, program.layout, program.transcription
    nodes = jax.vmap(lambda at, s: node(problem, layout, at, s))(program.mesh, s)
    inner = jax.vmap(lambda s, m, s1: transcription.middle_control(problem, layout, s, m, s1))(s[:-1], m, s[1:])
    u = nodes.u if layout.nu == problem.nu else jnp.concatenate([inner, inner[-1:]])
    found = residuals(program, values)
    cost, status, count, optimality = ended
    return Solution(
        nodes.t,
        nodes.x,
        u,
        nodes.horizon[0],
        cost,
        status,
        count,
        largest(found),
        optimality,
        problem,
        found,
        Discretised(program, loop, inner),
    )


class Discretised(eqx.Module):
    """What belongs to the transcription: the program, the last state of the method, and the middles of intervals."""

    program: Program
    #: None if another solver found the solution
    loop: Loop | None
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
    described = (program.transcription.equations(problem, layout), jnp.abs(values.c)), (_rows(program), over.rows)
    ends = tuple(label.component for label in path_labels(problem, 1.0)) if layout.nu else ()
    out = [
        Residual("start", start_names(problem, layout), times[:1], jnp.abs(values.b0)[None]),
        Residual("end", end_names(problem, layout), times[-1:], jnp.abs(values.bN)[None]),
        Residual("bounds", names, times, over.s),
        Residual("bounds inside of intervals", layout.inner, middles, over.m),
        Residual("path constraints at the end", ends, times[-1:], over.end[None]),
    ]
    out += [r for labels, amount in described for r in labelled(labels, times, amount)]
    return tuple(r for r in out if r.amount.size)


def _rows(program: Program) -> tuple[Label, ...]:
    return program.transcription.rows(program.problem, program.layout)


def labelled(labels: tuple[Label, ...], times, amount) -> list[Residual]:
    """Amounts `(N, labels)` in the intervals of `times`, one residual a kind, one row a place and interval."""
    out = []
    for kind in dict.fromkeys(label.kind for label in labels):
        own = [(k, label) for k, label in enumerate(labels) if label.kind == kind]
        components = tuple(dict.fromkeys(label.component for _, label in own))
        places = sorted({label.place for _, label in own})
        table = jnp.zeros((amount.shape[0], len(places), len(components)), amount.dtype)
        for k, label in own:
            table = table.at[:, places.index(label.place), components.index(label.component)].set(amount[:, k])
        at = times[:-1, None] + (times[1:] - times[:-1])[:, None] * jnp.asarray(places, times.dtype)
        out.append(Residual(kind, components, at.ravel(), table.reshape(-1, len(components))))
    return out


def _printed(p: Progress):
    if int(p.iteration) % 20 == 0:
        print("  iter          cost  violation  optimality    barrier   regular.       step")  # noqa: T201
    numbers = "  ".join(f"{float(x):9.2e}" for x in p[2:])
    print(f"{int(p.iteration):6d}  {float(p.cost):12.6g}  {numbers}")  # noqa: T201
