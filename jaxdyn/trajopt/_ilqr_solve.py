"""From a problem to its solution by differential dynamic programming."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.control import Plan, TrackingFeedback
from jaxdyn.model import Model
from jaxdyn.trajopt._compiling import called
from jaxdyn.trajopt._ilqr import (
    ILQRProgress,
    Iterate,
    Options,
    rollout,
    times_of,
    violations,
)
from jaxdyn.trajopt._ilqr_sensitivity import optimised
from jaxdyn.trajopt._ilqr_stage import Multipliers, augmented, end_limits, end_rows, row_limits, rows, step
from jaxdyn.trajopt._problem import Problem
from jaxdyn.trajopt._problem_dynamics import AbstractConstrainedDynamics
from jaxdyn.trajopt._result import Residual, Solution, largest
from jaxdyn.trajopt._transcription import path_sizes


class FeedbackGains(eqx.Module):
    """What differential dynamic programming finds beside the trajectory: `u = u_k + feedback_k (x - x_k)`."""

    #: (N, nu, nx)
    feedback: Float[Array, "*batch intervals nu nx"]
    #: for a warm start of constraints
    multipliers: Multipliers


def ilqr(
    problem: Problem,
    *,
    intervals: int = 100,
    feasible_start: bool = False,
    tolerance: Any = None,
    penalty: Any = 1e4,
    growth: Any = 10.0,
    second_order: bool = False,
    max_iterations: int = 500,
    multipliers: Multipliers | None = None,
    progress: bool | Callable[[ILQRProgress], Any] = False,
    throw: bool = False,
) -> Solution:
    """The optimum of a problem by differential dynamic programming, with controls held over equal `intervals`.

    The horizon and the whole start have to be given. Ranges of controls are kept exactly, by an active set; ranges of
    states, path constraints and conditions at the end by an augmented Lagrangian with `penalty` at first, multiplied by
    `growth` when it helps too little. Steps are those of the linear model of the dynamics, so that the trajectory has
    gaps on the way, as in multiple shooting, and an unstable system does not run away from its guess.

    * `second_order`: second derivatives of dynamics and constraints are taken, wherever a minimum is left with them.
      Convergence is then quadratic, not linear; they cost time to compile, and about as much again in an iteration.
    * The guess of states need not be a motion; with `feasible_start` it is replaced by the motion under the guess of
      controls.
    * `tolerance`, by default 1e-7 in float64 and 1e-4 in float32: of the decrease of the cost that an iteration can
      still make, relative to `1 + |cost|`, and of all constraints in their units.
    * `progress`: True prints a line an iteration; a function is called with an `ILQRProgress`.

    The whole method is one compiled loop: `jax.vmap` over problems makes a multi-start. Cost and trajectory are
    differentiable in every number of the problem, by the conditions of optimality (`_ilqr_sensitivity`); what binds
    stays binding. `details.feedback` are the gains along the trajectory, which `tracking_law` turns into a controller.
    """
    check_fixed(problem, "differential dynamic programming")
    problem = jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, float | int | np.ndarray) else x, problem)
    dtype = problem.dtype
    if tolerance is None:
        tolerance = 1e-7 if dtype == jnp.float64 else 1e-4
    show = _printed if progress is True else (progress or None)
    number = lambda x: jnp.asarray(x, dtype)
    args = problem, number(tolerance), number(penalty), number(growth), jnp.asarray(max_iterations), multipliers
    solution = called(_solution, (args, (intervals, feasible_start, show, second_order)))
    if isinstance(solution.status, Tracer):
        return solution
    return solution.checked() if throw else solution


def check_fixed(problem: Problem, method: str):
    """Refuses what a method that simulates from a given start over a given time cannot do."""
    why = None
    if problem.free_duration:
        why = "its horizon is free"
    elif not all(problem.start.fixed) or problem.start.condition is not None:
        why = "its start is not given in all states"
    elif problem.coupling is not None:
        why = "it couples start and end"
    elif problem.bounds.control_rate is not None:
        why = "it limits rates of controls"
    elif not (problem.start_control.free and problem.end_control.free):
        why = "it gives controls at its ends"
    elif isinstance(problem.dynamics, AbstractConstrainedDynamics):
        why = f"it integrates {type(problem.dynamics).__name__}, whose forces are unknowns"
    if why:
        raise ModelError(f"{method} cannot take this problem: {why}; use jaxdyn.trajopt.solve")


def _solution(arguments) -> Solution:
    args, (intervals, feasible, show, exact) = arguments
    problem, tolerance, penalty, growth, count, multipliers = args
    options = Options(tolerance, penalty, growth, count, show, exact)
    frozen = jax.lax.stop_gradient(problem)
    x, u = guess(frozen, intervals, feasible)
    return described(problem, optimised(problem, options, x, u, multipliers))


def guess(problem: Problem, intervals: int, feasible: bool):
    """States at the nodes and controls of the intervals, the latter within their ranges."""
    s = jnp.arange(intervals + 1, dtype=problem.dtype) / intervals
    x, _ = problem.guess.at(s)
    _, u = problem.guess.at((s[1:] + s[:-1]) / 2)
    u = jnp.clip(u, problem.bounds.lower_control, problem.bounds.upper_control)
    x = x.at[0].set(problem.start.value)
    return (rollout(problem, x[0], u) if feasible else x), u


def described(problem: Problem, found: Iterate) -> Solution:
    """The solution with its cost, residuals and gains."""
    s = jax.lax.stop_gradient(found)
    n = s.u.shape[0]
    t = jnp.arange(n + 1) * (problem.duration / n)
    parts = residuals(jax.lax.stop_gradient(problem), s.x, s.u, jax.lax.stop_gradient(t))
    return Solution(
        t,
        found.x,
        jnp.concatenate([found.u, found.u[-1:]]),
        problem.duration,
        _cost(problem, s),
        s.status,
        s.count,
        largest(parts),
        s.optimality,
        problem,
        parts,
        FeedbackGains(s.gains.feedback, s.multipliers),
    )


def _cost(problem: Problem, s: Iterate):
    """The cost, with the derivative of the Lagrangian at the optimum in the numbers of the problem."""
    b, m = problem.bounds, s.multipliers
    t, h = times_of(problem, s.u.shape[0])
    u = jnp.where(s.held < 0, b.lower_control, jnp.where(s.held > 0, b.upper_control, s.u))
    x = s.x.at[0].set(problem.start.value)
    after, costs = jax.vmap(lambda t, x, u: step(problem, t, h, x, u))(t, x[:-1], u)
    defects = jnp.sum(s.costate * (after - s.x[1:]))
    limits = row_limits(problem)
    extra = jax.vmap(lambda t, x, u, y: augmented(rows(problem, t, x, u), y, m.penalty, limits)[0])
    c = end_rows(problem, problem.duration, x[-1], u[-1])
    added = jnp.sum(extra(t, x[:-1], u, m.inner))
    added = added + augmented(c, m.end, m.penalty, end_limits(problem, c.shape[0]))[0]
    cost = jnp.sum(costs) + problem.final_cost(problem.duration, x[-1])
    zero = defects + added
    return cost + (zero - jax.lax.stop_gradient(zero))


def residuals(problem: Problem, x, u, t) -> tuple[Residual, ...]:
    """Violations of the dynamics and of all other constraints, with times and names."""
    inner, end = violations(problem, x, u)
    nx, d = problem.nx, problem.dynamics
    names = tuple(f"{c.name} {k}" for c, n in zip(problem.path, path_sizes(problem), strict=True) for k in range(n))
    size = nx + len(names)
    both = jnp.abs(jnp.concatenate([inner, end[None, :size]]))
    h = problem.duration / u.shape[0]
    after = jax.vmap(lambda t, x, u: step(problem, t, h, x, u)[0])
    gaps = jnp.abs(after(t[:-1], x[:-1], u) - x[1:])
    last = jnp.abs(end[None, size:])
    out = [
        Residual("dynamics", d.state_names, t[:-1], gaps),
        Residual("bounds", d.state_names, t, both[:, :nx]),
        Residual("path constraints", names, t, both[:, nx:]),
        Residual("end", tuple(f"row {k}" for k in range(last.shape[1])), t[-1:], last),
    ]
    return tuple(r for r in out if r.amount.size)


def tracking_law(model: Model, solution: Solution) -> TrackingFeedback:
    """A controller for `simulate` out of a solution of `ilqr` for a robot: `u_k + feedback_k (x - x_k(t))`.

    Controls are held over intervals, gains and states are interpolated.
    """
    inputs = getattr(solution.problem.dynamics, "inputs", None)
    if inputs is None:
        raise ModelError(f"{type(solution.problem.dynamics).__name__} drives no joints; tracking_law needs a Robot")
    q, v = solution.x[:, : model.nq], solution.x[:, model.nq :]
    plan = Plan(solution.t, q, v, solution.u @ inputs.T, hold=True)
    gain = -solution.details.feedback
    return TrackingFeedback(model, plan, jnp.concatenate([gain, gain[-1:]]), inputs)


def _printed(p: ILQRProgress):
    text = (
        f"{int(p.iteration):4d}  cost {float(p.cost):.8g}  violation {float(p.violation):.1e}  gap {float(p.gap):.1e}"
    )
    more = f"  optimality {float(p.optimality):.1e}  step {float(p.step):.2g}  penalty {float(p.penalty):.0e}"
    print(text + more)  # noqa: T201
