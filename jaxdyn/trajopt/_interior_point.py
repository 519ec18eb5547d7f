"""A primal-dual interior-point method with a filter line search, as one loop that compiles and batches.

Waechter and Biegler, "On the implementation of an interior-point filter line-search algorithm for large-scale nonlinear
programming", Mathematical Programming 106, 2006: barrier parameter of section 2.1, filter of 2.3, second-order
correction of 2.4, restoration of 3.3, first multipliers by least squares of 3.6, constants of 2 and 3. Second
derivatives are exact; their diagonal is enlarged until the step leads to a minimum. Where no step is accepted, a
restoration phase follows if constraints are violated, else the diagonal grows on. Both are passes of the same loop.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn.trajopt._interior_point_barrier import (
    Direction,
    Errors,
    Iterate,
    Side,
    barrier,
    begin,
    directed,
    errors,
    identity,
    inside,
    largest_violation,
    longest,
    misfits,
    moved,
    multiplied,
    regularised,
    safeguarded,
    stiffened,
    total,
    violation,
    weights,
)
from jaxdyn.trajopt._interior_point_program import Program, Seen, Slopes, Values
from jaxdyn.trajopt._interior_point_restoration import (
    ROUNDS,
    Restoration,
    chosen,
    entered,
    left,
    off,
    relaxed,
    relaxed_blocks,
    relaxed_slopes,
    relaxed_weights,
    tightened,
)
from jaxdyn.trajopt._result import SolveStatus

_FILTER = 96
_HALVINGS = 24


class Progress(NamedTuple):
    """One iteration, as it is shown."""

    iteration: Any
    cost: Any
    #: largest violation of a constraint
    violation: Any
    #: largest error of the gradient
    optimality: Any
    barrier: Any
    #: added to the diagonal of the second derivatives
    regularisation: Any
    #: length of the step before
    step: Any


class Loop(NamedTuple):
    """State of the loop."""

    it: Iterate
    values: Values
    mu: Any
    #: entries of the filter, violation and barrier function, infinite where unused
    filter: Any
    entries: Any
    #: last regularisation that was needed, and the least one to try
    regular: Any
    least: Any
    failures: Any
    count: Any
    status: Any
    errors: Errors
    step: Any
    #: of the cost
    scale: Any
    #: whether multipliers are to be found before the next step
    fresh: Any
    restoration: Restoration


def optimise(program: Program, tolerance, max_iterations: int, progress: Callable | None, mu) -> Loop:
    """Runs the method from the program's guess; nothing in it is differentiated. The status is -1 while it runs."""
    limits = program.limits()
    sound = jnp.stack([jnp.all(jnp.isfinite(x)) for x in program.guess()]).all()

    def body(loop: Loop) -> Loop:
        it = loop.it
        seen = program.seen(it.s, it.m)
        values, d = program.slopes(it.s, it.m, seen)
        loop = _with_start(limits, loop, values, d)
        values, d = scaled(values, d, loop.scale)
        at = relaxed(loop.restoration, it.s, it.m, values), relaxed_slopes(loop.restoration, it.s, it.m, values, d)
        e = errors(limits, loop.it, *at)
        loop = loop._replace(errors=e, values=values)
        loop = loop._replace(status=_status(loop, sound, tolerance, max_iterations))
        if progress is not None:
            shown = (loop.count, values.cost / loop.scale, e.primal, e.dual, loop.mu, loop.regular, loop.step)
            jax.debug.callback(_counted(progress), Progress(*shown))
        advance = lambda x: _advanced(program, limits, x, seen, d, at, tolerance)
        return jax.lax.cond(loop.status < 0, advance, lambda x: x, loop)

    return jax.lax.while_loop(lambda loop: loop.status < 0, body, _empty(program, limits, mu))


def _counted(progress: Callable) -> Callable:
    """Progress without the pass that finds the first multipliers."""
    return lambda p: None if p.iteration < 0 else progress(p)


def scaled(values: Values, d: Slopes, scale) -> tuple[Values, Slopes]:
    """The cost in the solver's scale."""
    return values._replace(cost=scale * values.cost), d._replace(cost=scale * d.cost, cost_end=scale * d.cost_end)


def _empty(program: Program, limits, mu) -> Loop:
    s, m = inside(limits, *(jnp.where(jnp.isfinite(x), x, 0) for x in program.guess()), mu)  # pyright: ignore[reportCallIssue]
    dtype = s.dtype
    zeros = lambda tree: jax.tree.map(lambda x: jnp.zeros(x.shape, dtype), tree)
    values = zeros(jax.eval_shape(program.values, s, m))
    number, whole = lambda x: jnp.asarray(x, dtype), lambda x: jnp.asarray(x, int)
    side = Side(jax.tree.map(jnp.ones_like, limits[0]), jax.tree.map(jnp.zeros_like, limits[0]))
    it = Iterate(s, m, zeros(values.c), zeros(values.b0), zeros(values.bN), side, side)
    none = Errors(*(number(jnp.inf),) * 4)
    empty = jnp.full((_FILTER, 2), jnp.inf, dtype)
    yes = jnp.asarray(True)
    tail = (whole(0), number(0), number(0), whole(0), whole(-1), whole(-1), none, number(0), number(1), yes)
    return Loop(it, values, number(mu), empty, *tail, off(s, m, number(mu), empty, whole(0)))


def _with_start(limits, loop: Loop, values: Values, d: Slopes) -> Loop:
    """At the first iteration: slacks that fit the guess, and a scale that makes the gradient at most 100."""
    first = loop.count < 0
    low, high = begin(limits, values, loop.mu)
    either = lambda a, b: jax.tree.map(lambda a, b: jnp.where(first, a, b), a, b)
    it = loop.it._replace(low=either(low, loop.it.low), high=either(high, loop.it.high))
    steepest = jnp.maximum(jnp.max(jnp.abs(d.cost), initial=0), jnp.max(jnp.abs(d.cost_end), initial=0))
    scale = jnp.clip(100 / jnp.maximum(steepest, 1e-8), 1e-8, 1.0)
    return loop._replace(it=it, scale=jnp.where(first, scale, loop.scale))


def _status(loop: Loop, sound, tolerance, max_iterations: int):
    e, r = loop.errors, loop.restoration
    feasible = ~r.on & (e.primal <= jnp.sqrt(tolerance))
    finite = jnp.isfinite(e.dual) & jnp.isfinite(e.primal) & jnp.isfinite(loop.values.cost)
    stuck = jnp.where(feasible, SolveStatus.STALLED, SolveStatus.INFEASIBLE)
    status = jnp.where((loop.failures > 8) | (r.on & (r.rounds >= ROUNDS)), stuck, -1)
    status = jnp.where(loop.count >= max_iterations, SolveStatus.MAX_ITERATIONS, status)
    status = jnp.where(~r.on & ~loop.fresh & (total(e, 0.0) <= tolerance), SolveStatus.SOLVED, status)
    return jnp.where(finite & sound, status, SolveStatus.NOT_FINITE)


def _advanced(program: Program, limits, loop: Loop, seen: Seen, original: Slopes, at, tolerance) -> Loop:
    """One iteration: barrier parameter, direction, line search; or, where it begins anew, multipliers alone."""
    loop = _with_barrier(loop, tolerance)
    it, mu, r, fresh = loop.it, loop.mu, loop.restoration, loop.fresh
    values, d = at
    w, scale = relaxed_weights(r, loop.values, weights(it), loop.scale)
    blocks = relaxed_blocks(r, program.blocks(it.s, it.m, seen, original, w, scale))
    blocks = chosen(fresh, identity(blocks), stiffened(blocks, it, d))
    f, size, _ = regularised(program, blocks, loop.regular, loop.least, r.on)
    met = jax.tree.map(lambda x: jnp.where(fresh, 0, x), values)
    direction = directed(program.layout.shape, f, d, it, met, misfits(limits, it, values), mu, fresh)
    trial, before = _search(program, limits, loop, at, f, direction)
    trial = trial._replace(it=chosen(fresh, multiplied(it, direction.step), safeguarded(trial.it, mu)))
    return _followed(limits, loop, trial, before, size, tolerance)


def _followed(limits, loop: Loop, trial: "_Trial", before, size, tolerance) -> Loop:
    """The state after a line search: a step, or more regularisation, or restoration begun or left."""
    accepted, r, old = trial.accepted, loop.restoration, loop.filter
    filled = _with_entry(old, loop.entries, before, accepted & trial.augment)
    advanced = loop._replace(
        it=chosen(accepted, trial.it, loop.it),
        filter=jnp.where(accepted, filled, jnp.inf),
        entries=jnp.where(accepted, loop.entries + (accepted & trial.augment), 0),
        regular=jnp.where(size > 0, size, loop.regular),
        least=jnp.where(accepted, 0, jnp.maximum(100 * jnp.maximum(size, loop.least), 1e-4)),
        failures=jnp.where(accepted, 0, loop.failures + 1),
        count=loop.count + 1,
        step=jnp.where(accepted, trial.length, 0),
        fresh=jnp.zeros_like(loop.fresh),
    )
    lost = ~accepted & ~r.on & (loop.errors.primal > tolerance)
    advanced = chosen(lost, _restoring(loop, advanced, before), advanced)
    after = violation(limits, trial.it, trial.values), barrier(limits, trial.it, trial.values.cost, r.mu)
    worst = largest_violation(limits, trial.it, trial.values)
    better = (after[0] <= 0.9 * r.violation) & (worst <= r.worst) & ~_dominated(r.filter, *after)
    advanced = chosen(r.on & accepted & ~loop.fresh & better, _returned(advanced), advanced)
    again = r.on & ~loop.fresh & (total(loop.errors, 0.0) <= jnp.maximum(1e-4, 10 * tolerance))
    return chosen(again, _again(loop, advanced), advanced)


def _restoring(loop: Loop, advanced: Loop, before) -> Loop:
    """Restoration, from the point before the line search."""
    filter = _with_entry(loop.filter, loop.entries, before, jnp.asarray(True))
    r, it = entered(loop.restoration, loop.it, loop.mu, filter, loop.entries + 1, (before[0], loop.errors.primal))
    mu = jnp.maximum(loop.mu, loop.errors.primal)
    return _afresh(advanced._replace(it=it, restoration=r, mu=mu, filter=jnp.full_like(filter, jnp.inf)))


def _again(loop: Loop, advanced: Loop) -> Loop:
    """Another round of restoration, from the point where one converged."""
    mu = jnp.maximum(loop.restoration.mu, jnp.max(jnp.abs(loop.values.bN), initial=0))
    r, it = tightened(loop.restoration, loop.it, mu)
    return _afresh(advanced._replace(it=it, restoration=r, mu=mu, filter=jnp.full_like(loop.filter, jnp.inf)))


def _returned(advanced: Loop) -> Loop:
    """The original problem again."""
    r, it = left(advanced.restoration, advanced.it)
    return _afresh(advanced._replace(it=it, restoration=r, mu=r.mu, filter=r.filter, entries=r.entries))


def _afresh(loop: Loop) -> Loop:
    zero, none = jnp.zeros_like(loop.mu), jnp.zeros_like(loop.failures)
    return loop._replace(regular=zero, least=zero, failures=none, fresh=jnp.ones_like(loop.fresh))


def _with_entry(filter, entries, point, where):
    """The filter with a point, where it is to be added."""
    row = jnp.where(where, entries % _FILTER, _FILTER)
    return filter.at[row].set(jnp.stack([(1 - 1e-5) * point[0], point[1] - 1e-8 * point[0]]), mode="drop")


def _dominated(filter, v, b):
    return jnp.any((v >= filter[:, 0]) & (b >= filter[:, 1]))


def _with_barrier(loop: Loop, tolerance) -> Loop:
    """A smaller barrier parameter where its problem is solved well enough; the filter begins anew."""
    r, e, mu = loop.restoration, loop.errors, loop.mu
    least = jnp.where(r.on, jnp.maximum(tolerance, 1e-5), tolerance) / 10
    smaller = lambda mu: jnp.maximum(least, jnp.minimum(0.2 * mu, mu**1.5))
    for _ in range(4):
        mu = jnp.where((total(e, mu) <= 10 * mu) & ~loop.fresh, smaller(mu), mu)
    changed = mu != loop.mu
    filter, entries = jnp.where(changed, jnp.inf, loop.filter), jnp.where(changed, 0, loop.entries)
    return loop._replace(mu=mu, filter=filter, entries=entries)


class _Trial(NamedTuple):
    tried: Any
    length: Any
    direction: Direction
    #: whether the direction is a second-order correction
    corrected: Any
    it: Iterate
    #: of the original problem
    values: Values
    accepted: Any
    augment: Any


def _search(program: Program, limits, loop: Loop, at, f, direction: Direction) -> tuple[_Trial, Any]:
    """Halves the step until the filter takes it; tries a second-order correction after the first refusal."""
    it, mu, (now, d) = loop.it, loop.mu, at
    before = violation(limits, it, now), barrier(limits, it, now.cost, mu)
    fraction = jnp.maximum(0.99, 1 - mu)
    slope = _slope(d, direction, it, mu)
    gap = misfits(limits, it, now)
    worst = jnp.where(loop.restoration.on, 10.0, 1e4) * jnp.maximum(1, before[0])
    longest_step, _ = longest(direction, it, fraction)

    def attempt(trial: _Trial) -> _Trial:
        reach, dual = longest(trial.direction, it, fraction)
        length = jnp.minimum(trial.length, reach)
        new = moved(it, trial.direction, length, dual, length)
        original = program.values(new.s, new.m)
        original = original._replace(cost=loop.scale * original.cost)
        values = relaxed(loop.restoration, new.s, new.m, original)
        after = violation(limits, new, values), barrier(limits, new, values.cost, mu)
        accepted, augment = _acceptable(loop.filter, before, after, slope, length, worst)
        worse = (trial.tried == 0) & ~accepted & (after[0] >= before[0])

        # a second-order correction, for the violations after the full step
        both = lambda a, b: jax.tree.map(lambda a, b: length * a + b, a, b)
        right = now._replace(c=both(now.c, values.c), b0=both(now.b0, values.b0), bN=both(now.bN, values.bN))
        missed = both(gap, misfits(limits, new, values))
        correct = lambda: directed(program.layout.shape, f, d, it, right, missed, mu)
        following = jax.lax.cond(worse, correct, lambda: direction)
        shorter = jnp.where(trial.corrected | ~worse, trial.length / 2, trial.length)
        shorter = jnp.where(worse, 1.0, jnp.where(trial.corrected, longest_step / 2, shorter))
        shorter = jnp.where(accepted, length, shorter)
        return _Trial(trial.tried + 1, shorter, following, worse, new, original, accepted, augment)

    no = jnp.asarray(False)
    begin = _Trial(jnp.zeros((), int), longest_step, direction, no, it, loop.values, loop.fresh, no)
    more = lambda trial: ~trial.accepted & (trial.tried < _HALVINGS)
    last = jax.lax.while_loop(more, attempt, begin)
    return last, before


def _slope(d: Slopes, direction: Direction, it: Iterate, mu):
    """Derivative of the barrier function along the direction."""
    step = direction.step
    z = jnp.concatenate([step.s[:-1], step.m, step.s[1:]], axis=1)
    logs = jax.tree.map(lambda a, da: jnp.sum(da / a), (it.low[0], it.high[0]), (direction.low[0], direction.high[0]))
    return jnp.sum(d.cost * z) + d.cost_end @ step.s[-1] - mu * sum(jax.tree.leaves(logs))


def _acceptable(entries, before, after, slope, length, worst):
    """Whether the filter takes a point, and whether the point before enters the filter (section 2.3)."""
    (v0, b0), (v, b) = before, after
    finite = jnp.isfinite(v) & jnp.isfinite(b)
    rounding = 10 * jnp.finfo(v.dtype).eps * jnp.abs(b0)
    dominated = _dominated(entries, v, b - rounding) | (v > worst)
    descent = slope < 0
    down = jnp.where(descent, -slope, 1)
    strong = descent & (length * down**2.3 > v0**1.1) & (v0 <= 1e-4)
    armijo = b - b0 - rounding <= 1e-4 * length * slope
    better = (v <= (1 - 1e-5) * v0) | (b - b0 - rounding <= -1e-8 * v0)
    accepted = finite & ~dominated & jnp.where(strong, armijo, better)
    return accepted, ~(strong & armijo)
