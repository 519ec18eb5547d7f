"""A primal-dual interior-point method with a filter line search, as one loop that compiles and batches.

Waechter and Biegler, "On the implementation of an interior-point filter line-search algorithm for large-scale nonlinear
programming", Mathematical Programming 106, 2006: barrier parameter of section 2.1, filter of 2.3, second-order
correction of 2.4, inertia correction of 3.1, restoration phase of 3.3, least-squares multipliers of 3.6, constants of
sections 2 and 3. The Hessian is exact. If the line search fails, the restoration phase follows at an infeasible point;
at a feasible point the regularisation grows. Both are iterations of the same loop.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn._types import PyTree
from jaxdyn.trajopt.interior_point._barrier import (
    Direction,
    Errors,
    Iterate,
    Side,
    add_barrier_hessian,
    barrier_function,
    constraint_violation,
    factorise_with_inertia_correction,
    fraction_to_boundary,
    initial_slacks,
    lagrange_multipliers,
    largest_violation,
    optimality_errors,
    push_into_bounds,
    reset_bound_multipliers,
    search_direction,
    set_multipliers,
    slack_residuals,
    take_step,
    total_error,
    with_identity_hessian,
)
from jaxdyn.trajopt.interior_point._lagrangian import FirstDerivatives, Values
from jaxdyn.trajopt.interior_point._program import Linearisations, Program
from jaxdyn.trajopt.interior_point._restoration import (
    ROUNDS,
    Restoration,
    enter_restoration,
    inactive_restoration,
    leave_restoration,
    restoration_blocks,
    restoration_derivatives,
    restoration_multipliers,
    restoration_values,
    select,
    tighten_restoration,
)
from jaxdyn.trajopt.problem import SolveStatus

_FILTER_SIZE = 96
_MAX_TRIALS = 24


class Progress(NamedTuple):
    """One iteration of `solve`, as `progress` receives it."""

    iteration: jax.Array
    cost: jax.Array
    #: largest violation of a constraint
    violation: jax.Array
    #: largest scaled gradient of the Lagrangian
    optimality: jax.Array
    barrier: jax.Array
    #: added to the diagonal of the Hessian
    regularisation: jax.Array
    #: length of the last step
    step: jax.Array


class LoopState(NamedTuple):
    """State of the iteration."""

    it: Iterate
    values: Values
    mu: jax.Array
    #: violation and barrier function of the filter's entries, infinite where unused; number of entries
    filter: jax.Array
    entries: jax.Array
    #: last regularisation, and the least one to try
    regularisation: jax.Array
    least_regularisation: jax.Array
    failures: jax.Array
    count: jax.Array
    status: jax.Array
    errors: Errors
    step: jax.Array
    #: of the cost
    scale: jax.Array
    #: whether this iteration only estimates multipliers
    needs_multipliers: jax.Array
    restoration: Restoration


def optimise(program: Program, tolerance, max_iterations: int, progress: Callable | None, mu) -> LoopState:
    """Runs the method from the program's guess, without derivatives. The status is -1 while it runs."""
    limits = program.limits()
    finite_guess = jnp.stack([jnp.all(jnp.isfinite(x)) for x in program.guess()]).all()

    def body(loop: LoopState) -> LoopState:
        it = loop.it
        linearisations = program.linearise(it.s, it.m)
        values, d = program.first_derivatives(it.s, it.m, linearisations)
        loop = _initialise(limits, loop, values, d)
        values, d = scale_cost(values, d, loop.scale)
        r = loop.restoration
        at = restoration_values(r, it.s, it.m, values), restoration_derivatives(r, it.s, it.m, values, d)
        e = optimality_errors(limits, loop.it, *at)
        loop = loop._replace(errors=e, values=values)
        loop = loop._replace(status=_status(loop, finite_guess, tolerance, max_iterations))
        if progress is not None:
            row = (loop.count, values.cost / loop.scale, e.primal, e.dual, loop.mu, loop.regularisation, loop.step)
            jax.debug.callback(_skip_initial_iteration(progress), Progress(*row))
        iterate = lambda x: _iterate(program, limits, x, linearisations, d, at, tolerance)
        return jax.lax.cond(loop.status < 0, iterate, lambda x: x, loop)

    return jax.lax.while_loop(lambda loop: loop.status < 0, body, _initial_state(program, limits, mu))


def _skip_initial_iteration(progress: Callable) -> Callable:
    """Progress without the iteration that estimates the initial multipliers."""
    return lambda p: None if p.iteration < 0 else progress(p)


def scale_cost(values: Values, d: FirstDerivatives, scale) -> tuple[Values, FirstDerivatives]:
    """Values and derivatives with the scaled cost."""
    return values._replace(cost=scale * values.cost), d._replace(cost=scale * d.cost, cost_end=scale * d.cost_end)


def _initial_state(program: Program, limits, mu) -> LoopState:
    s, m = program.guess()
    finite = lambda x: jnp.where(jnp.isfinite(x), x, 0)
    s, m = push_into_bounds(limits, finite(s), finite(m), mu)
    dtype = s.dtype
    zeros = lambda tree: jax.tree.map(lambda x: jnp.zeros(x.shape, dtype), tree)
    values = zeros(jax.eval_shape(program.values, s, m))
    number, integer = lambda x: jnp.asarray(x, dtype), lambda x: jnp.asarray(x, int)
    side = Side(jax.tree.map(jnp.ones_like, limits[0]), jax.tree.map(jnp.zeros_like, limits[0]))
    filter = jnp.full((_FILTER_SIZE, 2), jnp.inf, dtype)
    return LoopState(
        it=Iterate(s, m, zeros(values.c), zeros(values.b0), zeros(values.bN), side, side),
        values=values,
        mu=number(mu),
        filter=filter,
        entries=integer(0),
        regularisation=number(0),
        least_regularisation=number(0),
        failures=integer(0),
        count=integer(-1),
        status=integer(-1),
        errors=Errors(*(number(jnp.inf),) * 4),
        step=number(0),
        scale=number(1),
        needs_multipliers=jnp.asarray(True),
        restoration=inactive_restoration(s, m, number(mu), filter, integer(0)),
    )


def _initialise(limits, loop: LoopState, values: Values, d: FirstDerivatives) -> LoopState:
    """At the first iteration: initial slacks, and a scale of the cost that limits its gradient to 100."""
    is_first = loop.count < 0
    low, high = initial_slacks(limits, values, loop.mu)
    it = loop.it._replace(low=select(is_first, low, loop.it.low), high=select(is_first, high, loop.it.high))
    steepest = jnp.maximum(jnp.max(jnp.abs(d.cost), initial=0), jnp.max(jnp.abs(d.cost_end), initial=0))
    scale = jnp.clip(100 / jnp.maximum(steepest, 1e-8), 1e-8, 1.0)
    return loop._replace(it=it, scale=jnp.where(is_first, scale, loop.scale))


def _status(loop: LoopState, finite_guess, tolerance, max_iterations: int):
    e, r = loop.errors, loop.restoration
    is_feasible = ~r.is_active & (e.primal <= jnp.sqrt(tolerance))
    is_finite = jnp.isfinite(e.dual) & jnp.isfinite(e.primal) & jnp.isfinite(loop.values.cost)
    is_stuck = (loop.failures > 8) | (r.is_active & (r.rounds >= ROUNDS))
    is_solved = ~r.is_active & ~loop.needs_multipliers & (total_error(e, 0.0) <= tolerance)
    status = jnp.where(is_stuck, jnp.where(is_feasible, SolveStatus.STALLED, SolveStatus.INFEASIBLE), -1)
    status = jnp.where(loop.count >= max_iterations, SolveStatus.MAX_ITERATIONS, status)
    status = jnp.where(is_solved, SolveStatus.SOLVED, status)
    return jnp.where(is_finite & finite_guess, status, SolveStatus.NOT_FINITE)


def _iterate(
    program: Program, limits, loop: LoopState, linearisations: Linearisations, original: FirstDerivatives, at, tolerance
) -> LoopState:
    """One iteration: barrier parameter, search direction and line search; or only an estimate of the multipliers."""
    loop = _update_barrier_parameter(loop, tolerance)
    it, mu, r, estimate = loop.it, loop.mu, loop.restoration, loop.needs_multipliers
    values, d = at
    w, scale = restoration_multipliers(r, loop.values, lagrange_multipliers(it), loop.scale)
    blocks = restoration_blocks(r, program.kkt_blocks(it.s, it.m, linearisations, original, w, scale))
    blocks = select(estimate, with_identity_hessian(blocks), add_barrier_hessian(blocks, it, d))
    f, size, _ = factorise_with_inertia_correction(
        program, blocks, loop.regularisation, loop.least_regularisation, r.is_active
    )
    right = jax.tree.map(lambda x: jnp.where(estimate, 0, x), values)
    residuals = slack_residuals(limits, it, values)
    direction = search_direction(program.layout.shape, f, d, it, right, residuals, mu, estimate)
    trial, before = _line_search(program, limits, loop, at, f, direction)
    estimated, moved = set_multipliers(it, direction.step), reset_bound_multipliers(trial.it, mu)
    return _update(limits, loop, trial._replace(it=select(estimate, estimated, moved)), before, size, tolerance)


def _update(limits, loop: LoopState, trial: "_Trial", before, size, tolerance) -> LoopState:
    """The state after a line search: a step, more regularisation, or the begin or end of the restoration phase."""
    accepted, r, old = trial.accepted, loop.restoration, loop.filter
    augmented = _add_to_filter(old, loop.entries, before, accepted & trial.augments_filter)
    new = loop._replace(
        it=select(accepted, trial.it, loop.it),
        filter=jnp.where(accepted, augmented, jnp.inf),
        entries=jnp.where(accepted, loop.entries + (accepted & trial.augments_filter), 0),
        regularisation=jnp.where(size > 0, size, loop.regularisation),
        least_regularisation=jnp.where(
            accepted, 0, jnp.maximum(100 * jnp.maximum(size, loop.least_regularisation), 1e-4)
        ),
        failures=jnp.where(accepted, 0, loop.failures + 1),
        count=loop.count + 1,
        step=jnp.where(accepted, trial.length, 0),
        needs_multipliers=jnp.zeros_like(loop.needs_multipliers),
    )
    fails = ~accepted & ~r.is_active & (loop.errors.primal > tolerance)
    new = select(fails, _begin_restoration(loop, new, before), new)
    after = (
        constraint_violation(limits, trial.it, trial.values),
        barrier_function(limits, trial.it, trial.values.cost, r.mu),
    )
    is_reduced = (after[0] <= 0.9 * r.violation) & (
        largest_violation(limits, trial.it, trial.values) <= r.largest_violation
    )
    is_restored = is_reduced & ~_is_dominated(r.filter, *after)
    new = select(r.is_active & accepted & ~loop.needs_multipliers & is_restored, _end_restoration(new), new)
    has_converged = total_error(loop.errors, 0.0) <= jnp.maximum(1e-4, 10 * tolerance)
    return select(r.is_active & ~loop.needs_multipliers & has_converged, _repeat_restoration(loop, new), new)


def _begin_restoration(loop: LoopState, new: LoopState, before) -> LoopState:
    """The restoration phase, from the point before the line search."""
    filter = _add_to_filter(loop.filter, loop.entries, before, jnp.asarray(True))
    violations = before[0], loop.errors.primal
    r, it = enter_restoration(loop.restoration, loop.it, loop.mu, filter, loop.entries + 1, violations)
    mu = jnp.maximum(loop.mu, loop.errors.primal)
    return _restart(new._replace(it=it, restoration=r, mu=mu, filter=jnp.full_like(filter, jnp.inf)))


def _repeat_restoration(loop: LoopState, new: LoopState) -> LoopState:
    """Another round of restoration, from the point where the last round converged."""
    mu = jnp.maximum(loop.restoration.mu, jnp.max(jnp.abs(loop.values.bN), initial=0))
    r, it = tighten_restoration(loop.restoration, loop.it, mu)
    return _restart(new._replace(it=it, restoration=r, mu=mu, filter=jnp.full_like(loop.filter, jnp.inf)))


def _end_restoration(new: LoopState) -> LoopState:
    """The original problem again, with its barrier parameter and filter."""
    r, it = leave_restoration(new.restoration, new.it)
    return _restart(new._replace(it=it, restoration=r, mu=r.mu, filter=r.filter, entries=r.entries))


def _restart(loop: LoopState) -> LoopState:
    """Without regularisation and failures; the next iteration estimates multipliers."""
    return loop._replace(
        regularisation=jnp.zeros_like(loop.mu),
        least_regularisation=jnp.zeros_like(loop.mu),
        failures=jnp.zeros_like(loop.failures),
        needs_multipliers=jnp.ones_like(loop.needs_multipliers),
    )


def _add_to_filter(filter, entries, point, condition):
    """The filter with the envelope of a point (violation, barrier function), if the condition holds."""
    row = jnp.where(condition, entries % _FILTER_SIZE, _FILTER_SIZE)
    return filter.at[row].set(jnp.stack([(1 - 1e-5) * point[0], point[1] - 1e-8 * point[0]]), mode="drop")


def _is_dominated(filter, violation, barrier):
    return jnp.any((violation >= filter[:, 0]) & (barrier >= filter[:, 1]))


def _update_barrier_parameter(loop: LoopState, tolerance) -> LoopState:
    """Decreases mu while its barrier problem is solved to `10 mu`, and then resets the filter (equation 7)."""
    r, e, mu = loop.restoration, loop.errors, loop.mu
    least = jnp.where(r.is_active, jnp.maximum(tolerance, 1e-5), tolerance) / 10
    decrease = lambda mu: jnp.maximum(least, jnp.minimum(0.2 * mu, mu**1.5))
    for _ in range(4):
        mu = jnp.where((total_error(e, mu) <= 10 * mu) & ~loop.needs_multipliers, decrease(mu), mu)
    changed = mu != loop.mu
    filter, entries = jnp.where(changed, jnp.inf, loop.filter), jnp.where(changed, 0, loop.entries)
    return loop._replace(mu=mu, filter=filter, entries=entries)


class _Trial(NamedTuple):
    """A trial step of the line search."""

    tried: jax.Array
    length: jax.Array
    direction: Direction
    #: whether the direction is a second-order correction
    is_correction: jax.Array
    it: Iterate
    #: of the original problem
    values: Values
    accepted: jax.Array
    augments_filter: jax.Array


def _line_search(program: Program, limits, loop: LoopState, at, f, direction: Direction) -> tuple[_Trial, PyTree]:
    """Backtracking until the filter accepts a step, with a second-order correction after the first rejection."""
    it, mu, (now, d) = loop.it, loop.mu, at
    before = constraint_violation(limits, it, now), barrier_function(limits, it, now.cost, mu)
    fraction = jnp.maximum(0.99, 1 - mu)
    slope = _barrier_slope(d, direction, it, mu)
    residuals = slack_residuals(limits, it, now)
    largest = jnp.where(loop.restoration.is_active, 10.0, 1e4) * jnp.maximum(1, before[0])
    longest_step, _ = fraction_to_boundary(direction, it, fraction)

    def attempt(trial: _Trial) -> _Trial:
        longest, dual = fraction_to_boundary(trial.direction, it, fraction)
        length = jnp.minimum(trial.length, longest)
        new = take_step(it, trial.direction, length, dual, length)
        original = program.values(new.s, new.m)
        original = original._replace(cost=loop.scale * original.cost)
        values = restoration_values(loop.restoration, new.s, new.m, original)
        after = constraint_violation(limits, new, values), barrier_function(limits, new, values.cost, mu)
        accepted, augments_filter = _is_acceptable(loop.filter, before, after, slope, length, largest)
        worse = (trial.tried == 0) & ~accepted & (after[0] >= before[0])

        # second-order correction: the constraints at the full step are added to the right-hand side
        both = lambda a, b: jax.tree.map(lambda a, b: length * a + b, a, b)
        right = now._replace(c=both(now.c, values.c), b0=both(now.b0, values.b0), bN=both(now.bN, values.bN))
        remaining = both(residuals, slack_residuals(limits, new, values))
        correct = lambda: search_direction(program.layout.shape, f, d, it, right, remaining, mu)
        following = jax.lax.cond(worse, correct, lambda: direction)
        shorter = jnp.where(trial.is_correction | ~worse, trial.length / 2, trial.length)
        shorter = jnp.where(worse, 1.0, jnp.where(trial.is_correction, longest_step / 2, shorter))
        shorter = jnp.where(accepted, length, shorter)
        return _Trial(trial.tried + 1, shorter, following, worse, new, original, accepted, augments_filter)

    no = jnp.asarray(False)
    start = _Trial(jnp.zeros((), int), longest_step, direction, no, it, loop.values, loop.needs_multipliers, no)
    is_unfinished = lambda trial: ~trial.accepted & (trial.tried < _MAX_TRIALS)
    return jax.lax.while_loop(is_unfinished, attempt, start), before


def _barrier_slope(d: FirstDerivatives, direction: Direction, it: Iterate, mu):
    """Directional derivative of the barrier function."""
    step = direction.step
    z = jnp.concatenate([step.s[:-1], step.m, step.s[1:]], axis=1)
    slacks, steps = (it.low.slack, it.high.slack), (direction.low.slack, direction.high.slack)
    logs = jax.tree.map(lambda a, da: jnp.sum(da / a), slacks, steps)
    return jnp.sum(d.cost * z) + d.cost_end @ step.s[-1] - mu * sum(jax.tree.leaves(logs))


def _is_acceptable(filter, before, after, slope, length, largest):
    """Whether a trial point is acceptable, and whether the present point augments the filter (section 2.3)."""
    (v0, b0), (v, b) = before, after
    is_finite = jnp.isfinite(v) & jnp.isfinite(b)
    rounding = 10 * jnp.finfo(v.dtype).eps * jnp.abs(b0)
    dominated = _is_dominated(filter, v, b - rounding) | (v > largest)
    descends = slope < 0
    decrease = jnp.where(descends, -slope, 1)
    switching = descends & (length * decrease**2.3 > v0**1.1) & (v0 <= 1e-4)
    armijo = b - b0 - rounding <= 1e-4 * length * slope
    sufficient = (v <= (1 - 1e-5) * v0) | (b - b0 - rounding <= -1e-8 * v0)
    return is_finite & ~dominated & jnp.where(switching, armijo, sufficient), ~(switching & armijo)
