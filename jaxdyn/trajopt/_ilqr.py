"""Differential dynamic programming with ranges of controls, other constraints, and starts that are no motion.

Each iteration expands cost and dynamics along the trajectory, finds a step of the controls and gains backward in time
(`_ilqr_backward`), and simulates forward with a choice of step lengths at once, of which the longest that lowers

    cost + augmented terms of constraints + nu sum of |d_k|,   d_k = f(x_k, u_k) - x_{k+1}

is taken. A step of length alpha leaves gaps `(1 - alpha) d_k` (Mastalli et al. 2020), so that a guess of states need
not be a motion. When the cost does not fall any more, multipliers of violated constraints are updated, or the penalty
raised (Howell, Jackson and Manchester 2019). Li and Todorov 2004; Mayne 1966; Tassa, Mansard and Todorov 2014.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn.trajopt._ilqr_backward import Gains, backward, derivative_along
from jaxdyn.trajopt._ilqr_stage import (
    Multipliers,
    augmented,
    end_cost,
    end_limits,
    end_rows,
    expand,
    expand_end,
    outside,
    row_limits,
    rows,
    stage_cost,
)
from jaxdyn.trajopt._problem import Problem
from jaxdyn.trajopt._result import SolveStatus

_STEPS = 11
_MAX_REGULAR = 1e8


class Options(NamedTuple):
    """Numbers of the method, and who is told of its progress."""

    tolerance: Any
    penalty: Any
    growth: Any
    max_iterations: Any
    progress: Callable[..., Any] | None


class Iterate(NamedTuple):
    """State of the method between iterations."""

    x: Any
    u: Any
    multipliers: Multipliers
    regular: Any
    #: weight of the gaps in the merit
    weight: Any
    #: tolerance of the present augmented problem
    aim: Any
    #: violation when the multipliers were last updated
    violation: Any
    optimality: Any
    status: Any
    count: Any
    gains: Gains


class ILQRProgress(NamedTuple):
    """What `progress` is told of each iteration."""

    iteration: Any
    #: with what the augmented Lagrangian adds
    cost: Any
    violation: Any
    #: decrease of the cost that the model predicts, relative to `1 + |cost|`
    optimality: Any
    gap: Any
    penalty: Any
    step: Any


def _times(problem: Problem, intervals: int):
    h = problem.duration / intervals
    return jnp.arange(intervals) * h, h


def rollout(problem: Problem, x0, u):
    """States under held controls from x0, `(N + 1, nx)`."""
    t, h = _times(problem, u.shape[0])
    zero = jnp.zeros(row_limits(problem)[0].shape, x0.dtype)

    def forth(x, row):
        t, u = row
        new = stage_cost(problem, t, h, x, u, zero, jnp.ones((), x0.dtype))[0]
        return new, new

    _, x = jax.lax.scan(forth, x0, (t, u))
    return jnp.concatenate([x0[None], x])


def violations(problem: Problem, x, u):
    """By how much the rows of all nodes and of the end are outside of their limits, and the controls."""
    t, _ = _times(problem, u.shape[0])
    inner = jax.vmap(lambda t, x, u: outside(rows(problem, t, x, u), row_limits(problem)))(t, x[:-1], u)
    inner = inner.at[0, : problem.nx].set(0)  # the start is given
    c = end_rows(problem, problem.duration, x[-1], u[-1])
    return inner, outside(c, end_limits(problem, c.shape[0]))


def _largest(*arrays):
    return jnp.max(jnp.stack([jnp.max(jnp.abs(a), initial=0) for a in arrays]))


def _expanded(problem: Problem, s: Iterate):
    t, h = _times(problem, s.u.shape[0])
    m = s.multipliers
    stages = jax.vmap(lambda t, x, u, y: expand(problem, t, h, x, u, y, m.penalty))(t, s.x[:-1], s.u, m.inner)
    end = expand_end(problem, problem.duration, s.x[-1], s.u[-1], m.end, m.penalty)
    return stages, end, stages.next - s.x[1:]


def _passed(problem: Problem, s: Iterate, stages, end, gaps) -> Gains:
    b = problem.bounds
    return backward(stages, end, gaps, (b.lower_control - s.u, b.upper_control - s.u), s.regular)


def _forward(problem: Problem, s: Iterate, gains: Gains, gaps, alpha):
    """States, controls and cost after a step of length alpha."""
    t, h = _times(problem, s.u.shape[0])
    b, m = problem.bounds, s.multipliers

    def forth(x, row):
        t, x_old, u_old, gap, step, gain, y = row
        u = jnp.clip(u_old + alpha * step + gain @ (x - x_old), b.lower_control, b.upper_control)
        new, cost = stage_cost(problem, t, h, x, u, y, m.penalty)
        new = new - (1 - alpha) * gap
        return new, (new, u, cost)

    rows = (t, s.x[:-1], s.u, gaps, gains.feedforward, gains.feedback, m.inner)
    last, (x, u, costs) = jax.lax.scan(forth, s.x[0], rows)
    cost = jnp.sum(costs) + end_cost(problem, problem.duration, last, u[-1], m.end, m.penalty)
    return jnp.concatenate([s.x[:1], x]), u, cost


def _searched(problem: Problem, s: Iterate, gains: Gains, gaps, merit, slope, weight):
    """The longest step that lowers the merit, and its length, zero if there is none."""
    alphas = 0.5 ** jnp.arange(_STEPS, dtype=s.x.dtype)
    x, u, costs = jax.vmap(lambda a: _forward(problem, s, gains, gaps, a))(alphas)
    merits = costs + (1 - alphas) * weight * jnp.sum(jnp.abs(gaps))
    rounding = 8 * jnp.finfo(s.x.dtype).eps * jnp.abs(merit)
    fits = (merits <= merit + 1e-4 * alphas * slope + rounding) & jnp.all(jnp.isfinite(x), (1, 2))
    k, found = jnp.argmax(fits), jnp.any(fits)
    keep = lambda new, old: jnp.where(found, new[k], old)
    return keep(x, s.x), keep(u, s.u), jnp.where(found, alphas[k], 0)


def _weight(s: Iterate, gains: Gains, slope, size):
    """A weight of the gaps for which the step lowers the merit."""
    least = jnp.maximum(2 * jnp.maximum(slope, 0) / jnp.where(size > 0, size, 1), jnp.max(jnp.abs(gains.costate)))
    return jnp.where(size > 0, jnp.maximum(jnp.maximum(s.weight, least), 1), s.weight)


def _iterate(problem: Problem, options: Options, s: Iterate) -> Iterate:
    stages, end, gaps = _expanded(problem, s)
    gains = _passed(problem, s, stages, end, gaps)
    size = jnp.sum(jnp.abs(gaps))
    cost = jnp.sum(stages.cost) + end.cost
    slope = derivative_along(stages, end, gaps, gains)
    weight = _weight(s, gains, slope, size)
    merit, slope = cost + weight * size, slope - weight * size
    optimality = jnp.where(gains.bad, jnp.inf, -slope / (1 + jnp.abs(cost)))
    flat = ~gains.bad & (optimality <= s.aim) & (_largest(gaps) <= options.tolerance)
    x, u, length = _searched(problem, s, gains, gaps, merit, slope, weight)
    moved = ~gains.bad & (slope < 0) & (length > 0)
    violation = _largest(*violations(problem, s.x, s.u))
    show = options.progress
    if show is not None:
        told = (s.count, cost, violation, optimality, _largest(gaps), s.multipliers.penalty, length * moved)
        jax.debug.callback(lambda *x: show(ILQRProgress(*x)), *told)
    stuck = ~moved & ~flat & (s.regular >= _MAX_REGULAR)
    settle = flat | stuck
    met = (violation <= options.tolerance) & (_largest(gaps) <= options.tolerance)
    code = SolveStatus
    done = settle & met & (flat & (s.aim <= options.tolerance))
    status = jnp.where(done, code.SOLVED, -1)
    status = jnp.where(stuck, jnp.where(met, code.STALLED, code.INFEASIBLE), status)
    status = jnp.where(jnp.isfinite(cost + size), status, code.NOT_FINITE)
    regular = jnp.where(moved, jnp.where(length >= 0.5, s.regular / 10, s.regular), jnp.maximum(10 * s.regular, 1e-4))
    regular = jnp.where(moved & (regular < 1e-6), 0, jnp.minimum(regular, _MAX_REGULAR))
    take = moved & ~settle
    stepped = s._replace(
        x=jnp.where(take, x, s.x),
        u=jnp.where(take, u, s.u),
        regular=jnp.where(settle, s.regular, regular),
        weight=weight,
        optimality=optimality,
        gains=gains,
        status=status.astype(jnp.int32),
        count=s.count + 1,
    )
    return _updated(problem, options, stepped, flat & ~done, violation)


def _updated(problem: Problem, options: Options, s: Iterate, due, violation) -> Iterate:
    """New multipliers where an augmented problem is solved; a larger penalty where that has not helped enough."""
    m = s.multipliers
    t, _ = _times(problem, s.u.shape[0])
    limits = row_limits(problem)
    new = lambda t, x, u, y: augmented(rows(problem, t, x, u), y, m.penalty, limits)[1]
    inner = jax.vmap(new)(t, s.x[:-1], s.u, m.inner)
    c = end_rows(problem, problem.duration, s.x[-1], s.u[-1])
    end = augmented(c, m.end, m.penalty, end_limits(problem, c.shape[0]))[1]
    slow = (violation > 0.25 * s.violation) & (violation > options.tolerance)
    penalty = jnp.where(slow, m.penalty * options.growth, m.penalty)
    lost = due & (penalty > 1e12 * options.penalty)
    pick = lambda a, b: jnp.where(due, a, b)
    return s._replace(
        multipliers=Multipliers(pick(inner, m.inner), pick(end, m.end), pick(penalty, m.penalty)),
        aim=pick(jnp.maximum(s.aim / 10, options.tolerance), s.aim),
        violation=pick(violation, s.violation),
        regular=pick(jnp.zeros_like(s.regular), s.regular),
        status=jnp.where(lost, SolveStatus.INFEASIBLE, s.status).astype(jnp.int32),
    )


def start_iterate(problem: Problem, options: Options, x, u, multipliers: Multipliers | None = None) -> Iterate:
    """The first iterate from a guess of states and controls."""
    dtype, n = x.dtype, u.shape[0]
    number = lambda y: jnp.asarray(y, dtype)
    if multipliers is None:
        size = row_limits(problem)[0].shape[0]
        last = end_rows(problem, problem.duration, x[-1], u[-1]).shape[0]
        multipliers = Multipliers(jnp.zeros((n, size), dtype), jnp.zeros(last, dtype), number(options.penalty))
    free = jnp.isinf(row_limits(problem)[0]).all() & jnp.isinf(row_limits(problem)[1]).all()
    unconstrained = free & (not problem.end.rows and problem.end.condition is None)
    aim = jnp.where(unconstrained, options.tolerance, jnp.maximum(options.tolerance, 1e-3))
    nx, nu = problem.nx, problem.nu
    none = Gains(
        *(jnp.zeros(shape, dtype) for shape in ((n, nu), (n, nu, nx), (n, nu), (n, nx))), bad=jnp.asarray(False)
    )
    sound = jnp.all(jnp.isfinite(x)) & jnp.all(jnp.isfinite(u))
    status = jnp.where(sound, -1, SolveStatus.NOT_FINITE).astype(jnp.int32)
    inf = number(jnp.inf)
    return Iterate(x, u, multipliers, number(0), number(0), aim, inf, inf, status, jnp.asarray(0, jnp.int32), none)


def iterate(problem: Problem, options: Options, start: Iterate) -> Iterate:
    """Iterations until one of the endings of `SolveStatus`."""
    clean = lambda x: jnp.where(jnp.isfinite(x), x, 0)
    start = start._replace(x=clean(start.x), u=clean(start.u))

    def go(s: Iterate):
        return (s.status < 0) & (s.count < options.max_iterations)

    s = jax.lax.while_loop(go, lambda s: _iterate(problem, options, s), start)
    return s._replace(status=jnp.where(s.status < 0, SolveStatus.MAX_ITERATIONS, s.status).astype(jnp.int32))
