"""Names of equations and bounded quantities, for messages."""

import math

import jax

from jaxdyn.trajopt.problem import Boundary, PointFunction, Problem
from jaxdyn.trajopt.transcription._contract import Label, Layout, num_forces, num_invariants, path_sizes


def dynamics_labels(problem: Problem, layout: Layout) -> list[Label]:
    """Labels of the defects of the states and of the constants, at the start of the interval."""
    constants = ["duration"] * layout.has_free_duration + [
        f"{x} at the start" for x in problem.dynamics.state_names * layout.is_coupled
    ]
    return [Label("dynamics", name) for name in (*problem.dynamics.state_names, *constants)]


def force_labels(problem: Problem, place: float) -> list[Label]:
    """Labels of the equations of the constraint forces."""
    n = num_forces(problem)
    return [Label("dynamics", f"force {u}", place) for u in problem.dynamics.control_names[problem.nu - n :]]


def invariant_labels(problem: Problem, place: float) -> list[Label]:
    """Labels of the invariants of constrained dynamics."""
    return [Label("dynamics", f"invariant {k}", place) for k in range(num_invariants(problem))]


def path_labels(problem: Problem, place: float) -> list[Label]:
    """Labels of the rows of `path_rows`."""
    sizes = zip(problem.path, path_sizes(problem), strict=True)
    return [Label("path constraints", f"{c.name} {k}", place) for c, n in sizes for k in range(n)]


def rate_labels(problem: Problem, place: float) -> list[Label]:
    """Labels of the control rates, if these are bounded."""
    names = () if problem.bounds.control_rate is None else problem.dynamics.control_names
    return [Label("rates of controls", f"rate of {u}", place) for u in names]


def start_names(problem: Problem, layout: Layout) -> tuple[str, ...]:
    """Names of the entries of `start_residual`."""
    d, copies = problem.dynamics, [f"{x} at the start" for x in problem.dynamics.state_names * layout.is_coupled]
    names = boundary_names(problem.start, d.state_names) + boundary_names(problem.start_control, d.control_names)
    names += _condition_names(problem, problem.start_condition)
    more = force_labels(problem, 0.0) + ([] if all(problem.start.fixed) else invariant_labels(problem, 0.0))
    return (*names, *copies, *(label.component for label in more))


def end_names(problem: Problem) -> tuple[str, ...]:
    """Names of the entries of `end_residual`."""
    d = problem.dynamics
    names = boundary_names(problem.end, d.state_names) + boundary_names(problem.end_control, d.control_names)
    names += _condition_names(problem, problem.end_condition)
    x = jax.ShapeDtypeStruct((problem.nx,), problem.dtype)
    size = 0 if problem.coupling is None else math.prod(jax.eval_shape(problem.coupling, x, x).shape)
    return (*names, *(f"coupling {k}" for k in range(size)))


def _condition_names(problem: Problem, condition: PointFunction | None) -> tuple[str, ...]:
    """Names of the rows of a condition of state and controls."""
    if condition is None:
        return ()
    t, x, u = (jax.ShapeDtypeStruct(n, problem.dtype) for n in ((), (problem.nx,), (problem.nu,)))
    size = math.prod(jax.eval_shape(condition, t, x, u).shape)
    return tuple(f"condition of state and controls {k}" for k in range(size))


def boundary_names(b: Boundary, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the entries of a boundary residual: states or controls, then rows of the condition."""
    x = jax.ShapeDtypeStruct((len(names),), b.value.dtype)
    size = jax.eval_shape(b.residual, x).shape[0] - len(b.rows)
    return (*(names[k] for k in b.rows), *(f"condition {k}" for k in range(size)))
