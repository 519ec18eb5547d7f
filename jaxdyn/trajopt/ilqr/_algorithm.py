"""Differential dynamic programming (DDP) with control limits, other constraints, and infeasible initial guesses.

Each iteration expands cost and dynamics along the trajectory, solves the resulting linear-quadratic subproblem under
the control limits (`_backward_pass`), and takes the longest of a sequence of step lengths that decreases the merit
function

    cost + augmented terms of constraints + sum of nu . |d_k|,   d_k = f(x_k, u_k) - x_{k+1}

where nu exceeds, for each state, all its costates. The line search compares two candidates for each length: states of
the linear model, which leave gaps d_k as in multiple shooting (Giftthaler et al. 2018) and keep unstable systems near
the guess, and, if the initial state is fixed, states of a rollout under the gains, which closes the gaps of light and
stiff joints (FDDP: Mastalli et al. 2020). With second derivatives of the dynamics this is Newton's method for the
Lagrangian, with the costates of the preceding iteration. When the cost no longer decreases, the multipliers of
violated constraints are updated or the penalty is increased (ALTRO: Howell, Jackson and Manchester 2019). Li and
Todorov 2004; Mayne 1966.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array
from jaxdyn.trajopt.ilqr._backward_pass import Gains, solve_bounded
from jaxdyn.trajopt.ilqr._shooting_form import free_states
from jaxdyn.trajopt.ilqr._stage import (
    Multipliers,
    augmented_lagrangian,
    end_cost,
    end_limits,
    end_rows,
    expand,
    expand_end,
    limit_violation,
    row_limits,
    rows,
    stage_cost,
    step,
)
from jaxdyn.trajopt.problem import Problem, SolveStatus

_STEPS = 11
_MAX_REGULAR = 1e8


class ILQRProgress(NamedTuple):
    """Argument of the callback `progress` at each iteration."""

    iteration: Array
    #: augmented Lagrangian
    cost: Array
    violation: Array
    #: predicted decrease of the cost, relative to `1 + |cost|`
    optimality: Array
    gap: Array
    penalty: Array
    step: Array


class Options(NamedTuple):
    """Parameters of the method, and the callback for its progress."""

    tolerance: Array
    penalty: Array
    growth: Array
    max_iterations: int | Array
    progress: Callable[[ILQRProgress], None] | None
    #: whether second derivatives of the dynamics are included
    exact: bool = False


class Iterate(NamedTuple):
    """State of the method between iterations."""

    x: Array
    u: Array
    #: at the ends of intervals, `(N, nx)`
    costate: Array
    #: active set: -1 or 1 for controls at their lower or upper limit
    held: Array
    multipliers: Multipliers
    regular: Array
    #: tolerance of the current augmented problem
    aim: Array
    #: constraint violation at the last update of the multipliers
    violation: Array
    optimality: Array
    status: Array
    count: Array
    gains: Gains


def times_of(problem: Problem, intervals: int):
    """Starts of the intervals and their length, s."""
    h = problem.duration / intervals
    return jnp.arange(intervals) * h, h


def rollout(problem: Problem, x0, u):
    """States under held controls from x0, `(N + 1, nx)`."""
    t, h = times_of(problem, u.shape[0])
    zero = jnp.zeros(row_limits(problem)[0].shape, x0.dtype)

    def forth(x, row):
        t, u = row
        new = stage_cost(problem, t, h, x, u, zero, jnp.ones((), x0.dtype))[0]
        return new, new

    _, x = jax.lax.scan(forth, x0, (t, u))
    return jnp.concatenate([x0[None], x])


def violations(problem: Problem, x, u):
    """Violations of the limits by the rows of all nodes, and by the rows of the end."""
    t, _ = times_of(problem, u.shape[0])
    inner = jax.vmap(lambda t, x, u: limit_violation(rows(problem, t, x, u), row_limits(problem)))(t, x[:-1], u)
    inner = inner.at[0, np.array(problem.start.rows, int)].set(0)  # fixed initial states
    c = end_rows(problem, problem.duration, x[-1], u[-1])
    return inner, limit_violation(c, end_limits(problem, c.shape[0]))


def _largest(*arrays):
    return jnp.max(jnp.stack([jnp.max(jnp.abs(a), initial=0) for a in arrays]))


def expand_trajectory(problem: Problem, s: Iterate, *, exact: bool):
    """Expansions of all intervals and of the end about an iterate, and the gaps of the dynamics.

    With second derivatives of the dynamics if `exact`.
    """
    t, h = times_of(problem, s.u.shape[0])
    m = s.multipliers
    costate = s.costate if exact else None
    stages = jax.vmap(lambda t, x, u, y, p: expand(problem, t, h, x, u, y, m.penalty, p))(
        t, s.x[:-1], s.u, m.inner, costate
    )
    end = expand_end(problem, problem.duration, s.x[-1], s.u[-1], m.end, m.penalty, exact)
    return stages, end, stages.next - s.x[1:]


def control_margins(problem: Problem, u):
    """Distances of the controls from their limits, `(low, high)`."""
    b = problem.bounds
    return b.lower_control - u, b.upper_control - u


def _solve_subproblem(problem: Problem, options: Options, s: Iterate, stages, end, gaps):
    """Solution of the linear-quadratic subproblem, without second derivatives of the dynamics if it is not convex."""
    room, free = control_margins(problem, s.u), free_states(problem)
    found = solve_bounded(stages, end, gaps, room, s.held, s.regular, free)
    if not options.exact:
        return found
    plain = stages._replace(bend=jnp.zeros_like(stages.bend)), end._replace(bend=jnp.zeros_like(end.bend))
    return jax.lax.cond(found[0].bad, lambda: solve_bounded(*plain, gaps, room, s.held, s.regular, free), lambda: found)


def _linear_step(problem: Problem, s: Iterate, gains: Gains, stages, gaps, first, alpha):
    """States and controls after a step of length alpha in the linear model; `first` is the initial state's step."""
    low, high = control_margins(problem, s.u)

    def forth(dx, row):
        jacobian, low, high, gap, step, gain = row
        du = jnp.clip(alpha * step + gain @ dx, low, high)
        new = jacobian @ jnp.concatenate([dx, du]) + alpha * gap
        return new, (new, du)

    rows = (stages.jacobian, low, high, gaps, gains.feedforward, gains.feedback)
    _, (dx, du) = jax.lax.scan(forth, alpha * first, rows)
    u = _set_to_limits(problem, s.u + du, du <= low, du >= high)
    return jnp.concatenate([s.x[:1] + alpha * first, s.x[1:] + dx]), u


def _set_to_limits(problem: Problem, u, below, above):
    """Controls set exactly to their active limits, without rounding."""
    b = problem.bounds
    return jnp.where(below, b.lower_control, jnp.where(above, b.upper_control, u))


def _simulated_step(problem: Problem, s: Iterate, gains: Gains, gaps, first, alpha):
    """States and controls after a step of length alpha in a rollout, with remaining gaps `(1 - alpha) d_k`."""
    t, h = times_of(problem, s.u.shape[0])

    def forth(x, row):
        t, old, u, low, high, gap, feedforward, feedback = row
        du = jnp.clip(alpha * feedforward + feedback @ (x - old), low, high)
        u = _set_to_limits(problem, u + du, du <= low, du >= high)
        x = step(problem, t, h, x, u)[0] - (1 - alpha) * gap
        return x, (x, u)

    rows = (t, s.x[:-1], s.u, *control_margins(problem, s.u), gaps, gains.feedforward, gains.feedback)
    start = s.x[0] + alpha * first
    _, (x, u) = jax.lax.scan(forth, start, rows)
    return jnp.concatenate([start[None], x]), u


def _merit(problem: Problem, s: Iterate, weight, x, u):
    """Merit function: augmented Lagrangian and weighted gaps."""
    t, h = times_of(problem, u.shape[0])
    m = s.multipliers
    new, costs = jax.vmap(lambda t, x, u, y: stage_cost(problem, t, h, x, u, y, m.penalty))(t, x[:-1], u, m.inner)
    last = end_cost(problem, problem.duration, x[-1], u[-1], m.end, m.penalty)
    return jnp.sum(costs) + last + jnp.sum(weight * jnp.abs(new - x[1:]))


def _line_search(problem: Problem, s: Iterate, gains: Gains, stages, gaps, first, merit, slope, weight):
    """Longest step, linear or simulated, that decreases the merit function, and its length; zero if none does."""
    rounding = 8 * jnp.finfo(s.x.dtype).eps * jnp.abs(merit)

    def go(state):
        _, _, fits, k = state
        return ~fits & (k < _STEPS)

    def halve(state):
        *_, k = state
        alpha = 0.5 ** k.astype(s.x.dtype)
        found = [_linear_step(problem, s, gains, stages, gaps, first, alpha)]
        if len(free_states(problem)) == 0:  # a free start or horizon changes a whole rollout, beyond the linear model
            found.append(_simulated_step(problem, s, gains, gaps, first, alpha))
        both = jax.tree.map(lambda *y: jnp.stack(y), *found)
        merits = jax.vmap(lambda x, u: _merit(problem, s, weight, x, u))(*both)
        best = jnp.argmin(jnp.where(jnp.isnan(merits), jnp.inf, merits))
        x, u = (y[best] for y in both)
        return x, u, merits[best] <= merit + 1e-4 * alpha * slope + rounding, k + 1

    x, u, fits, k = jax.lax.while_loop(go, halve, (s.x, s.u, jnp.asarray(False), jnp.asarray(0)))
    keep = lambda new, old: jnp.where(fits, new, old)
    return keep(x, s.x), keep(u, s.u), jnp.where(fits, 0.5 ** (k - 1).astype(s.x.dtype), 0)


def _gap_weights(costate, slope, gaps):
    """Weights of the gaps, one for each state, for which the step is a descent direction of the merit function.

    Each weight exceeds all costates of its own state. A common weight would let the state with the least inertia, whose
    gaps hardly cost anything, determine the step length.
    """
    largest = jnp.max(jnp.abs(costate), axis=0)
    weight = 1.5 * jnp.maximum(largest, 1e-3 * jnp.max(largest))
    size = jnp.sum(weight * jnp.abs(gaps))
    weight = weight * jnp.maximum(1, 2 * jnp.maximum(slope, 0) / jnp.where(size > 0, size, 1))
    return jnp.where(size > 0, weight, 0)


class _Trial(NamedTuple):
    """Step of one iteration, and the values at its start."""

    x: Array
    u: Array
    length: Array
    bad: Array
    cost: Array
    gap: Array
    violation: Array
    optimality: Array


def _iterate(problem: Problem, options: Options, s: Iterate) -> Iterate:
    stages, end, gaps = expand_trajectory(problem, s, exact=options.exact)
    gains, line, held = _solve_subproblem(problem, options, s, stages, end, gaps)
    cost = jnp.sum(stages.cost) + end.cost
    weight = _gap_weights(line.costate, line.slope, gaps)
    size = jnp.sum(weight * jnp.abs(gaps))
    merit, slope = cost + size, line.slope - size
    x, u, length = _line_search(problem, s, gains, stages, gaps, line.dx[0], merit, slope, weight)
    length = jnp.where(gains.bad | (slope >= 0), 0, length)
    optimality = jnp.where(gains.bad, jnp.inf, -slope / (1 + jnp.abs(cost)))
    trial = _Trial(x, u, length, gains.bad, cost, _largest(gaps), _largest(*violations(problem, s.x, s.u)), optimality)
    return _finish_iteration(
        problem, options, s._replace(gains=gains, held=held, optimality=optimality), trial, line.costate
    )


def _finish_iteration(problem: Problem, options: Options, s: Iterate, trial: _Trial, costate) -> Iterate:
    """The next iterate: applies the step, tests convergence, adapts regularisation and multipliers."""
    small = trial.gap <= options.tolerance
    flat = ~trial.bad & (trial.optimality <= s.aim) & small
    has_step = trial.length > 0
    if options.progress is not None:
        show, y = options.progress, trial
        report = (s.count, y.cost, y.violation, y.optimality, y.gap, s.multipliers.penalty, y.length)
        jax.debug.callback(lambda *x: show(ILQRProgress(*x)), *report)
    stuck = ~has_step & ~flat & (s.regular >= _MAX_REGULAR)
    met = (trial.violation <= options.tolerance) & small
    code = SolveStatus
    done = flat & met & (s.aim <= options.tolerance)
    status = jnp.where(done, code.SOLVED, -1)
    status = jnp.where(stuck, jnp.where(met, code.STALLED, code.INFEASIBLE), status)
    status = jnp.where(jnp.isfinite(trial.cost + trial.gap), status, code.NOT_FINITE)
    less = jnp.where(trial.length >= 0.5, s.regular / 10, s.regular)
    regular = jnp.where(has_step, jnp.where(less < 1e-6, 0, less), jnp.clip(10 * s.regular, 1e-4, _MAX_REGULAR))
    share = jnp.where(flat, 1, trial.length)
    stepped = s._replace(
        x=jnp.where(has_step, trial.x, s.x),
        u=jnp.where(has_step, trial.u, s.u),
        costate=jnp.where(share > 0, s.costate + share * (costate - s.costate), s.costate),
        regular=jnp.where(flat, s.regular, regular),
        status=status.astype(jnp.int32),
        count=s.count + 1,
    )
    return _update_multipliers(problem, options, stepped, flat & ~done, trial.violation)


def _update_multipliers(problem: Problem, options: Options, s: Iterate, due, violation) -> Iterate:
    """Updates multipliers once an augmented problem is solved, and the penalty if the violation stagnates."""
    m = s.multipliers
    t, _ = times_of(problem, s.u.shape[0])
    limits = row_limits(problem)
    new = lambda t, x, u, y: augmented_lagrangian(rows(problem, t, x, u), y, m.penalty, limits)[1]
    inner = jax.vmap(new)(t, s.x[:-1], s.u, m.inner)
    c = end_rows(problem, problem.duration, s.x[-1], s.u[-1])
    end = augmented_lagrangian(c, m.end, m.penalty, end_limits(problem, c.shape[0]))[1]
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


def start_iterate(problem: Problem, options: Options, x, u, multipliers: Multipliers | None, costate) -> Iterate:
    """The first iterate, from a guess of states and controls."""
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
    shapes = (n, nu), (n, nu, nx), (n, nx), (n, nx, nx)
    none = Gains(*(jnp.zeros(shape, dtype) for shape in shapes), bad=jnp.asarray(False))
    sound = jnp.all(jnp.isfinite(x)) & jnp.all(jnp.isfinite(u))
    status = jnp.where(sound, -1, SolveStatus.NOT_FINITE).astype(jnp.int32)
    inf, held = number(jnp.inf), jnp.zeros(u.shape, jnp.int32)
    costate = jnp.zeros_like(x[1:]) if costate is None else costate
    count = jnp.asarray(0, jnp.int32)
    return Iterate(x, u, costate, held, multipliers, number(0), aim, inf, inf, status, count, none)


def iterate(problem: Problem, options: Options, start: Iterate) -> Iterate:
    """Iterates until the status is one of `SolveStatus`."""
    clean = lambda x: jnp.where(jnp.isfinite(x), x, 0)
    start = start._replace(x=clean(start.x), u=clean(start.u))

    def go(s: Iterate):
        return (s.status < 0) & (s.count < options.max_iterations)

    s = jax.lax.while_loop(go, lambda s: _iterate(problem, options, s), start)
    return s._replace(status=jnp.where(s.status < 0, SolveStatus.MAX_ITERATIONS, s.status).astype(jnp.int32))
