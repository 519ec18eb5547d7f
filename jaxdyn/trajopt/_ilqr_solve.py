"""From a problem to its solution by differential dynamic programming."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

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
from jaxdyn.trajopt._result import Residual, Solution, largest
from jaxdyn.trajopt._shooting_form import carried, check_simulated, restored, with_start
from jaxdyn.trajopt._transcription import boundary_names, path_sizes


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

    States at the start may be given in part, the horizon may be free, and rates of controls limited; such controls are
    linear, and kept in their ranges as states are (`_shooting_form`). Otherwise ranges of controls are kept exactly, by
    an active set; ranges of states, path constraints and conditions at the end by an augmented Lagrangian with
    `penalty` at first, multiplied by `growth` when it helps too little. Steps are those of the linear model of the
    dynamics, so that the trajectory has gaps on the way, as in multiple shooting, and an unstable system does not run
    away from its guess.

    * `second_order`: second derivatives of dynamics and constraints are taken, wherever a minimum is left with them.
      Convergence is then quadratic, not linear; they cost time to compile, and about as much again in an iteration.
      A free horizon always takes them.
    * The guess of states need not be a motion; with `feasible_start` it is replaced by the motion under the guess of
      controls.
    * `tolerance`, by default 1e-7 in float64 and 1e-4 in float32: of the decrease of the cost that an iteration can
      still make, relative to `1 + |cost|`, and of all constraints in their units.
    * `progress`: True prints a line an iteration; a function is called with an `ILQRProgress`.

    The whole method is one compiled loop: `jax.vmap` over problems makes a multi-start. Cost and trajectory are
    differentiable in every number of the problem, by the conditions of optimality (`_ilqr_sensitivity`); what binds
    stays binding. `details.feedback` are the gains along the trajectory, which `tracking_law` turns into a controller.
    """
    check_simulated(problem, "differential dynamic programming")
    problem = jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, float | int | np.ndarray) else x, problem)
    dtype = problem.dtype
    if tolerance is None:
        tolerance = 1e-7 if dtype == jnp.float64 else 1e-4
    show = _printed if progress is True else (progress or None)
    number = lambda x: jnp.asarray(x, dtype)
    args = problem, number(tolerance), number(penalty), number(growth), jnp.asarray(max_iterations), multipliers
    return called(_solution, (args, (intervals, feasible_start, show, second_order)), throw)


def check_fixed(problem: Problem, method: str):
    """Refuses what a method that plans from a measured state over a given time cannot do."""
    check_simulated(problem, method)
    why = None
    if problem.free_duration:
        why = "its horizon is free"
    elif not all(problem.start.fixed):
        why = "its start is not given in all states"
    elif problem.coupling is not None:
        why = "it couples start and end"
    elif problem.bounds.control_rate is not None:
        why = "it limits rates of controls"
    if why:
        raise ModelError(f"{method} cannot take this problem: {why}")


def _solution(arguments) -> Solution:
    args, (intervals, feasible, show, exact) = arguments
    problem, tolerance, penalty, growth, count, multipliers = args
    # a free horizon bends the dynamics, so that first derivatives alone hardly converge
    options = Options(tolerance, penalty, growth, count, show, exact or problem.free_duration)
    own, parts = carried(problem)
    x, u = guess(jax.lax.stop_gradient(own), intervals, feasible)
    return restored(problem, described(own, optimised(own, options, x, u, multipliers)), parts)


def guess(problem: Problem, intervals: int, feasible: bool):
    """States at the nodes and controls of the intervals, the latter within their ranges."""
    s = jnp.arange(intervals + 1, dtype=problem.dtype) / intervals
    x, _ = problem.guess.at(s)
    _, u = problem.guess.at((s[1:] + s[:-1]) / 2)
    u = jnp.clip(u, problem.bounds.lower_control, problem.bounds.upper_control)
    x = with_start(problem, x)
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
    x = with_start(problem, s.x)
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
    ends = boundary_names(problem.end, d.state_names)
    out = [
        Residual("dynamics", d.state_names, t[:-1], gaps),
        Residual("bounds", d.state_names, t, both[:, :nx]),
        Residual("path constraints", names, t, both[:, nx:]),
        Residual("end", ends, t[-1:], last),
    ]
    return tuple(r for r in out if r.amount.size)


def tracking_law(model: Model, solution: Solution) -> TrackingFeedback:
    """A controller for `simulate` out of a solution of `ilqr` for a robot: `u_k + feedback_k (x - x_k(t))`.

    Controls are held over intervals, gains and states are interpolated.
    """
    inputs = getattr(solution.problem.dynamics, "inputs", None)
    if inputs is None:
        raise ModelError(f"{type(solution.problem.dynamics).__name__} drives no joints; tracking_law needs a Robot")
    if solution.problem.bounds.control_rate is not None:
        raise ModelError("tracking_law needs gains of controls; with limited rates the gains are those of the rates")
    q, v = solution.x[:, : model.nq], solution.x[:, model.nq :]
    plan = Plan(solution.t, q, v, solution.u @ inputs.T, hold=True)
    gain = -solution.details.feedback[:, :, : solution.x.shape[1]]  # without that of a free horizon
    return TrackingFeedback(model, plan, jnp.concatenate([gain, gain[-1:]]), inputs)


def _printed(p: ILQRProgress):
    text = (
        f"{int(p.iteration):4d}  cost {float(p.cost):.8g}  violation {float(p.violation):.1e}  gap {float(p.gap):.1e}"
    )
    more = f"  optimality {float(p.optimality):.1e}  step {float(p.step):.2g}  penalty {float(p.penalty):.0e}"
    print(text + more)  # noqa: T201
