"""`solve`: direct transcription and the interior-point method."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ShapeError
from jaxdyn._numerics import numbers_as_arrays
from jaxdyn._types import Array, Float
from jaxdyn.trajopt.interior_point._algorithm import LoopState, Progress
from jaxdyn.trajopt.interior_point._barrier import total_error
from jaxdyn.trajopt.interior_point._program import Program
from jaxdyn.trajopt.interior_point._sensitivity import differentiable_optimum
from jaxdyn.trajopt.problem import Problem, Residual, Solution, largest_residual, run_compiled
from jaxdyn.trajopt.transcription import (
    AbstractTranscription,
    HermiteSimpson,
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
    tolerance: ArrayLike | None = None,
    max_iterations: int = 300,
    barrier: ArrayLike = 0.1,
    progress: bool | Callable[[Progress], object] = False,
    throw: bool = False,
) -> Solution:
    """Solves an optimal control problem by direct transcription and a primal-dual interior-point method.

    Arguments:

    * `problem`: the `Problem`.
    * `transcription`: `HermiteSimpson()` by default, `Trapezoidal()` or `MultipleShooting()`.
    * `intervals`: number of equal intervals.
    * `mesh`: nodes `(nodes,)` as fractions of the horizon from 0 to 1, instead of `intervals`.
    * `tolerance`: on the scaled optimality conditions, by default 1e-8 in float64 and 1e-4 in float32.
    * `max_iterations`: limit on the number of iterations.
    * `barrier`: initial barrier parameter. For a warm start, `problem.with_guess(solution.guess)`, a smaller value
      such as 1e-3 stays closer to the guess.
    * `progress`: True prints a line per iteration; a function is called with a `Progress`.
    * `throw`: raise `ConvergenceError` if the problem is not solved.

    Returns a `Solution`. Its `status` reports failures; `solution.report()` names the constraints with the largest
    violations. The whole method is compiled: `jax.vmap` over problems, for example with different guesses, and
    first derivatives with respect to every number of the problem work.

    ```python
    import jax.numpy as jnp

    from jaxdyn.trajopt import Problem, VectorField, solve


    def double_integrator(t, x, u, mass):
        return jnp.stack([x[1], u[0] / mass])


    def effort(t, x, u):
        return u @ u


    field = VectorField(double_integrator, ("position", "velocity"), ("force",), jnp.asarray(2.0))
    problem = Problem(field, 1.0, start=jnp.zeros(2), end=jnp.array([1.0, 0.0]), running=effort)
    solution = solve(problem, intervals=4)
    assert abs(solution.cost - 12 * 2.0**2) < 1e-2
    ```
    """
    program = program_of(problem, transcription, intervals, mesh)
    dtype = program.problem.dtype
    if tolerance is None:
        tolerance = 1e-8 if dtype == jnp.float64 else 1e-4
    show = _print_progress if progress is True else (progress or None)
    args = program, jnp.asarray(tolerance, dtype), jnp.asarray(barrier, dtype)
    return run_compiled(_solution, (args, (max_iterations, show)), throw)


def program_of(
    problem: Problem, transcription: AbstractTranscription | None, intervals: int, mesh: Float[Array, " nodes"] | None
) -> Program:
    """The nonlinear program of a problem on equal intervals, or on a mesh."""
    problem = numbers_as_arrays(problem)
    mesh = jnp.asarray(np.linspace(0, 1, intervals + 1) if mesh is None else mesh, problem.dtype)
    if mesh.ndim != 1 or mesh.shape[0] < 2:
        raise ShapeError(f"mesh has shape {mesh.shape}, expected (nodes,) with two or more fractions from 0 to 1")
    return Program(problem, HermiteSimpson() if transcription is None else transcription, mesh)


def _solution(arguments) -> Solution:
    (program, tolerance, barrier), (max_iterations, show) = arguments
    arrays, static = eqx.partition(program, eqx.is_array)
    leaves, treedef = jax.tree.flatten(arrays)
    build = lambda leaves: eqx.combine(jax.tree.unflatten(treedef, leaves), static)
    loop, (s, m, cost) = differentiable_optimum(build, leaves, tolerance, max_iterations, show, barrier)
    result = cost, loop.status.astype(jnp.int32), loop.count.astype(jnp.int32), total_error(loop.errors, 0.0)
    return solution_of(build(leaves), s, m, loop.values, result, loop)


def solution_of(program: Program, s, m, values, result, loop: LoopState | None) -> Solution:
    """The trajectory of the variables s and m; `result` is cost, status, iterations and optimality error."""
    problem, layout, transcription = program.problem, program.layout, program.transcription
    nodes = jax.vmap(lambda at, s: node(problem, layout, at, s))(program.mesh, s)
    inner = jax.vmap(lambda s, m, s1: transcription.middle_control(problem, layout, s, m, s1))(s[:-1], m, s[1:])
    u = nodes.u if layout.nu == problem.nu else jnp.concatenate([inner, inner[-1:]])
    residuals = constraint_residuals(program, values)
    cost, status, count, optimality = result
    return Solution(
        nodes.t,
        nodes.x,
        u,
        nodes.horizon[0],
        cost,
        status,
        count,
        largest_residual(residuals),
        optimality,
        problem,
        residuals,
        TranscriptionDetails(program, loop, inner),
    )


class TranscriptionDetails(eqx.Module):
    """Details of a solution by transcription: the program, the final state of the method, and midpoint controls."""

    program: Program
    #: None for solutions of `ipopt`
    loop: LoopState | None
    #: controls in the middle of the intervals, `(N, nu)`
    middle: Float[Array, "*batch intervals nu"]


def constraint_residuals(program: Program, values) -> tuple[Residual, ...]:
    """Violations of all constraints, grouped by kind, with times and names."""
    problem, layout = program.problem, program.layout
    low, high = program.limits()
    over = jax.tree.map(lambda r, a, b: jnp.maximum(jnp.maximum(a - r, r - b), 0), values.bounded, low, high)
    times = program.mesh * node(problem, layout, jnp.ones(()), values.bounded.s[-1]).horizon
    middles = (times[1:] + times[:-1]) / 2
    d = problem.dynamics
    constants = tuple(["duration"] * layout.has_free_duration) + d.state_names * layout.is_coupled
    names = d.state_names + d.control_names[: layout.nu] + constants
    equations = program.transcription.equation_labels(problem, layout), jnp.abs(values.c)
    rows = program.transcription.row_labels(problem, layout), over.rows
    ends = tuple(label.component for label in path_labels(problem, 1.0)) if layout.nu else ()
    out = [
        Residual("start", start_names(problem, layout), times[:1], jnp.abs(values.b0)[None]),
        Residual("end", end_names(problem), times[-1:], jnp.abs(values.bN)[None]),
        Residual("bounds", names, times, over.s),
        Residual("bounds within intervals", layout.inner, middles, over.m),
        Residual("path constraints at the end", ends, times[-1:], over.end[None]),
    ]
    out += [r for labels, amount in (equations, rows) for r in group_by_kind(labels, times, amount)]
    return tuple(r for r in out if r.amount.size)


def group_by_kind(labels: tuple[Label, ...], times, amount) -> list[Residual]:
    """One residual per kind of label, with one row per place and interval, from amounts `(N, labels)`."""
    out = []
    for kind in dict.fromkeys(label.kind for label in labels):
        members = [(k, label) for k, label in enumerate(labels) if label.kind == kind]
        components = tuple(dict.fromkeys(label.component for _, label in members))
        places = sorted({label.place for _, label in members})
        table = jnp.zeros((amount.shape[0], len(places), len(components)), amount.dtype)
        for k, label in members:
            table = table.at[:, places.index(label.place), components.index(label.component)].set(amount[:, k])
        at = times[:-1, None] + (times[1:] - times[:-1])[:, None] * jnp.asarray(places, times.dtype)
        out.append(Residual(kind, components, at.ravel(), table.reshape(-1, len(components))))
    return out


def _print_progress(p: Progress):
    if int(p.iteration) % 20 == 0:
        print("  iter          cost  violation  optimality    barrier   regular.       step")  # noqa: T201
    numbers = "  ".join(f"{float(x):9.2e}" for x in p[2:])
    print(f"{int(p.iteration):6d}  {float(p.cost):12.6g}  {numbers}")  # noqa: T201
