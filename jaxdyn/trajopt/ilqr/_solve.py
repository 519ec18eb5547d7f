"""Entry point of iterative LQR: from a problem to its solution."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._numerics import numbers_as_arrays
from jaxdyn._types import Array, Float
from jaxdyn.trajopt.ilqr._algorithm import ILQRProgress, Iterate, Options, rollout, times_of, violations
from jaxdyn.trajopt.ilqr._sensitivity import optimise
from jaxdyn.trajopt.ilqr._shooting_form import augment_problem, check_simulated, restore_solution, set_start
from jaxdyn.trajopt.ilqr._stage import Multipliers, augmented_lagrangian, end_limits, end_rows, row_limits, rows, step
from jaxdyn.trajopt.problem import Problem, Residual, Solution, largest_residual, run_compiled
from jaxdyn.trajopt.transcription import boundary_names, path_sizes


class FeedbackGains(eqx.Module):
    """Feedback gains along an optimal trajectory: `u = u_k + feedback_k (x - x_k)`."""

    #: (N, nu, nx)
    feedback: Float[Array, "*batch intervals nu nx"]
    #: for a warm start
    multipliers: Multipliers


def ilqr(
    problem: Problem,
    *,
    intervals: int = 100,
    feasible_start: bool = False,
    tolerance: ArrayLike | None = None,
    penalty: ArrayLike = 1e4,
    growth: ArrayLike = 10.0,
    second_order: bool = False,
    max_iterations: int = 500,
    multipliers: Multipliers | None = None,
    progress: bool | Callable[[ILQRProgress], object] = False,
    throw: bool = False,
) -> Solution:
    """Solves an optimal control problem by iterative LQR, with controls held over equal intervals.

    An active set keeps the control limits exactly; an augmented Lagrangian enforces state limits, path constraints
    and terminal conditions. Steps follow the linear model of the dynamics: the trajectory has gaps on the way, as in
    multiple shooting, and an unstable system stays near its guess. Initial states may be free in part, the horizon
    may be free, and control rates limited; controls with limited rates become states.

    Arguments:

    * `problem`: a `Problem`. Its guess of states need not satisfy the dynamics.
    * `intervals`: number of intervals N.
    * `feasible_start`: replace the guess of states by the rollout under the guess of controls.
    * `tolerance`: bound on the predicted decrease of the cost, relative to `1 + |cost|`, and on all constraint
      violations in their units; by default 1e-7 in float64 and 1e-4 in float32.
    * `penalty`, `growth`: initial penalty of the augmented Lagrangian, and its factor when the violation decreases too
      little.
    * `second_order`: include second derivatives of dynamics and constraints where the subproblem stays convex.
      Convergence is then quadratic instead of linear; compilation takes longer and an iteration about twice as long. A
      free horizon always includes them.
    * `max_iterations`: maximum number of iterations.
    * `multipliers`: multipliers of an earlier solution (`solution.details.multipliers`) for a warm start.
    * `progress`: True prints a line for each iteration; a function is called with an `ILQRProgress`.
    * `throw`: raise `ConvergenceError` unless the status is `SOLVED`.

    Returns a `Solution` with N + 1 states `(N + 1, nx)`; `details` is a `FeedbackGains`, from which `tracking_law`
    makes a controller. Cost and trajectory are differentiable with respect to every leaf of the problem by the
    optimality conditions; active constraints stay active. The method is one compiled loop, so `jax.vmap` over
    problems works.

    ```python
    import jax.numpy as jnp

    from jaxdyn.trajopt import Problem, VectorField, ilqr


    def double_integrator(t, x, u, mass):
        return jnp.stack([x[1], u[0] / mass])


    def effort(t, x, u):
        return u @ u


    field = VectorField(double_integrator, ("position", "velocity"), ("force",), jnp.asarray(2.0))
    problem = Problem(field, 1.0, start=jnp.zeros(2), end=jnp.array([1.0, 0.0]), running=effort)
    solution = ilqr(problem, intervals=10)
    assert abs(solution.x[-1, 0] - 1) < 1e-3
    ```
    """
    check_simulated(problem, "differential dynamic programming")
    problem = numbers_as_arrays(problem)
    dtype = problem.dtype
    if tolerance is None:
        tolerance = 1e-7 if dtype == jnp.float64 else 1e-4
    show = _print_progress if progress is True else (progress or None)
    number = lambda x: jnp.asarray(x, dtype)
    args = problem, number(tolerance), number(penalty), number(growth), jnp.asarray(max_iterations), multipliers
    return run_compiled(_solution, (args, (intervals, feasible_start, show, second_order)), throw)


def check_fixed(problem: Problem, method: str):
    """Raises `ModelError` for a problem that receding-horizon replanning cannot solve."""
    check_simulated(problem, method)
    why = None
    if problem.free_duration:
        why = "its horizon is free"
    elif not all(problem.start.fixed):
        why = "its initial state is not fixed"
    elif problem.coupling is not None:
        why = "it couples start and end"
    elif problem.bounds.control_rate is not None:
        why = "it limits control rates"
    if why:
        raise ModelError(f"{method} cannot solve this problem: {why}")


def _solution(arguments) -> Solution:
    args, (intervals, feasible, show, exact) = arguments
    problem, tolerance, penalty, growth, count, multipliers = args
    # with a free horizon the dynamics are bilinear, and first derivatives alone hardly converge
    options = Options(tolerance, penalty, growth, count, show, exact or problem.free_duration)
    own, parts = augment_problem(problem)
    x, u = guess(jax.lax.stop_gradient(own), intervals, feasible)
    return restore_solution(problem, make_solution(own, optimise(own, options, x, u, multipliers)), parts)


def guess(problem: Problem, intervals: int, feasible: bool):
    """Guess of the states at the nodes, and of the controls of the intervals, clipped to their limits."""
    s = jnp.arange(intervals + 1, dtype=problem.dtype) / intervals
    x, _ = problem.guess.at(s)
    _, u = problem.guess.at((s[1:] + s[:-1]) / 2)
    u = jnp.clip(u, problem.bounds.lower_control, problem.bounds.upper_control)
    x = set_start(problem, x)
    return (rollout(problem, x[0], u) if feasible else x), u


def make_solution(problem: Problem, found: Iterate) -> Solution:
    """`Solution` with cost, residuals and gains."""
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
        largest_residual(parts),
        s.optimality,
        problem,
        parts,
        FeedbackGains(s.gains.feedback, s.multipliers),
    )


def _cost(problem: Problem, s: Iterate):
    """The cost, whose derivative with respect to the problem is that of the Lagrangian at the optimum."""
    b, m = problem.bounds, s.multipliers
    t, h = times_of(problem, s.u.shape[0])
    u = jnp.where(s.held < 0, b.lower_control, jnp.where(s.held > 0, b.upper_control, s.u))
    x = set_start(problem, s.x)
    after, costs = jax.vmap(lambda t, x, u: step(problem, t, h, x, u))(t, x[:-1], u)
    defects = jnp.sum(s.costate * (after - s.x[1:]))
    limits = row_limits(problem)
    extra = jax.vmap(lambda t, x, u, y: augmented_lagrangian(rows(problem, t, x, u), y, m.penalty, limits)[0])
    c = end_rows(problem, problem.duration, x[-1], u[-1])
    added = jnp.sum(extra(t, x[:-1], u, m.inner))
    added = added + augmented_lagrangian(c, m.end, m.penalty, end_limits(problem, c.shape[0]))[0]
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


def _print_progress(p: ILQRProgress):
    text = (
        f"{int(p.iteration):4d}  cost {float(p.cost):.8g}  violation {float(p.violation):.1e}  gap {float(p.gap):.1e}"
    )
    more = f"  optimality {float(p.optimality):.1e}  step {float(p.step):.2g}  penalty {float(p.penalty):.0e}"
    print(text + more)  # noqa: T201
