"""Single shooting: the controls alone are unknown, and an optimiser of optax follows the gradient of the rollout."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxdyn.trajopt._ilqr import rollout, violations
from jaxdyn.trajopt._ilqr_solve import check_fixed, guess, residuals
from jaxdyn.trajopt._ilqr_stage import Multipliers, augmented, end_limits, end_rows, row_limits, rows, step
from jaxdyn.trajopt._problem import Problem
from jaxdyn.trajopt._result import Solution, SolveStatus, largest


class _Shot(NamedTuple):
    u: Any
    memory: Any
    multipliers: Multipliers
    slope: Any
    violation: Any
    count: Any
    status: Any


def single_shooting(
    problem: Problem,
    *,
    intervals: int = 100,
    optimiser: Any = None,
    steps: int = 200,
    rounds: int = 10,
    tolerance: Any = 1e-4,
    penalty: Any = 10.0,
    growth: Any = 10.0,
    throw: bool = False,
) -> Solution:
    """The optimum of a problem over its controls, held over equal `intervals`, by gradients of the rollout.

    `optimiser` is of optax, by default `optax.lbfgs()`. Ranges of controls are kept by projection after each of its
    steps. Other constraints enter by an augmented Lagrangian, with up to `rounds` updates of the multipliers after
    `steps` steps each, or as soon as the gradient in the controls that are not held by their range falls below
    `tolerance`; that is also the violation allowed. The horizon and the whole start have to be given.

    A simple method for short horizons, and for costs that are not smooth enough for second derivatives; `ilqr` and
    `solve` need far fewer iterations. `jax.vmap` over problems works. The results have no derivatives.
    """
    check_fixed(problem, "single shooting")
    problem = jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, float | int | np.ndarray) else x, problem)
    number = lambda x: jnp.asarray(x, problem.dtype)
    method = optax.with_extra_args_support(optax.lbfgs() if optimiser is None else optimiser)
    numbers = number(tolerance), number(penalty), number(growth)
    solution = _solve(jax.lax.stop_gradient(problem), numbers, method, (intervals, steps, rounds))
    return solution.checked() if throw else solution


def _total(problem: Problem, u, m: Multipliers):
    """The cost of a rollout with what the constraints add."""
    x = rollout(problem, problem.start.value, u)
    n = u.shape[0]
    h = problem.duration / n
    t = jnp.arange(n) * h
    cost = jnp.sum(jax.vmap(lambda t, x, u: step(problem, t, h, x, u)[1])(t, x[:-1], u))
    add = lambda t, x, u, y: augmented(rows(problem, t, x, u), y, m.penalty, row_limits(problem))[0]
    c = end_rows(problem, problem.duration, x[-1], u[-1])
    more = jnp.sum(jax.vmap(add)(t, x[:-1], u, m.inner))
    more = more + augmented(c, m.end, m.penalty, end_limits(problem, c.shape[0]))[0]
    cost = cost + problem.final_cost(problem.duration, x[-1])
    return cost + more, cost


def _round(problem: Problem, method, numbers, steps: int, shot: _Shot) -> _Shot:
    """Steps of the optimiser under fixed multipliers, then new multipliers."""
    tolerance, _, growth = numbers
    b, m = problem.bounds, shot.multipliers
    value = lambda u: _total(problem, u, m)[0]

    def go(state):
        _, _, slope, k = state
        return (slope > tolerance) & (k < steps)

    def move(state):
        u, memory, _, k = state
        cost, gradient = jax.value_and_grad(value)(u)
        change, memory = method.update(gradient, memory, u, value=cost, grad=gradient, value_fn=value)
        new = jnp.clip(u + change, b.lower_control, b.upper_control)
        sound = jnp.all(jnp.isfinite(new))
        return jnp.where(sound, new, u), memory, _free_slope(problem, u, gradient), jnp.where(sound, k + 1, steps)

    start = (shot.u, method.init(shot.u), jnp.asarray(jnp.inf, shot.u.dtype), 0)
    u, memory, slope, k = jax.lax.while_loop(go, move, start)
    x = rollout(problem, problem.start.value, u)
    n = u.shape[0]
    t = jnp.arange(n) * (problem.duration / n)
    limits = row_limits(problem)
    inner = jax.vmap(lambda t, x, u, y: augmented(rows(problem, t, x, u), y, m.penalty, limits)[1])(
        t, x[:-1], u, m.inner
    )
    c = end_rows(problem, problem.duration, x[-1], u[-1])
    end = augmented(c, m.end, m.penalty, end_limits(problem, c.shape[0]))[1]
    parts = [jnp.max(jnp.abs(y), initial=0) for y in violations(problem, x, u)]
    violation = jnp.max(jnp.stack(parts))
    slow = (violation > 0.25 * shot.violation) & (violation > tolerance)
    new = Multipliers(inner, end, jnp.where(slow, m.penalty * growth, m.penalty))
    status = jnp.where((slope <= tolerance) & (violation <= tolerance), SolveStatus.SOLVED, -1)
    status = jnp.where(jnp.isfinite(value(u)), status, SolveStatus.NOT_FINITE).astype(jnp.int32)
    return _Shot(u, memory, new, slope, violation, shot.count + k, status)


def _free_slope(problem: Problem, u, gradient):
    """The largest entry of the gradient, without controls pressed against their range."""
    b = problem.bounds
    held = ((u <= b.lower_control) & (gradient > 0)) | ((u >= b.upper_control) & (gradient < 0))
    return jnp.max(jnp.where(held, 0, jnp.abs(gradient)))


@eqx.filter_jit
def _solve(problem: Problem, numbers, method, sizes) -> Solution:
    intervals, steps, rounds = sizes
    x, u = guess(problem, intervals, False)
    size, last = row_limits(problem)[0].shape[0], end_rows(problem, problem.duration, x[-1], u[-1]).shape[0]
    none = Multipliers(jnp.zeros((intervals, size), u.dtype), jnp.zeros(last, u.dtype), numbers[1])
    inf, zero = jnp.asarray(jnp.inf, u.dtype), jnp.asarray(0, jnp.int32)
    sound = jnp.all(jnp.isfinite(u)) & jnp.all(jnp.isfinite(problem.start.value))
    status = jnp.where(sound, -1, SolveStatus.NOT_FINITE).astype(jnp.int32)
    shot = _Shot(jnp.where(jnp.isfinite(u), u, 0), method.init(u), none, inf, inf, zero, status)

    def go(state):
        shot, k = state
        return (shot.status < 0) & (k < rounds)

    shot, _ = jax.lax.while_loop(go, lambda s: (_round(problem, method, numbers, steps, s[0]), s[1] + 1), (shot, 0))
    status = jnp.where(shot.status < 0, SolveStatus.MAX_ITERATIONS, shot.status).astype(jnp.int32)
    x = rollout(problem, problem.start.value, shot.u)
    t = jnp.arange(intervals + 1) * (problem.duration / intervals)
    found = residuals(problem, x, shot.u, t)
    held = jnp.concatenate([shot.u, shot.u[-1:]])
    cost = _total(problem, shot.u, shot.multipliers)[1]
    count = shot.count.astype(jnp.int32)
    return Solution(t, x, held, problem.duration, cost, status, count, largest(found), shot.slope, problem, found)
