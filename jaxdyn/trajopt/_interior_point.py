"""A primal-dual interior-point method with a filter line search, as one loop that compiles and batches.

Waechter and Biegler, "On the implementation of an interior-point filter line-search algorithm for large-scale nonlinear
programming", Mathematical Programming 106, 2006: barrier parameter of section 2.1, filter of 2.3, second-order
correction of 2.4, constants of 2 and 3. Second derivatives are exact; their diagonal is enlarged until the step
leads to a minimum. Where no step is accepted the diagonal grows on, which turns the step towards feasibility, in the
place of a restoration phase.
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
    longest,
    misfits,
    moved,
    regularised,
    safeguarded,
    stiffened,
    total,
    violation,
    weights,
)
from jaxdyn.trajopt._interior_point_program import Program, Seen, Slopes, Values
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


def optimise(program: Program, tolerance, max_iterations: int, progress: Callable | None, mu) -> Loop:
    """Runs the method from the program's guess; nothing in it is differentiated. The status is -1 while it runs."""
    limits = program.limits()

    def body(loop: Loop) -> Loop:
        seen = program.seen(loop.it.s, loop.it.m)
        values, d = program.slopes(loop.it.s, loop.it.m, seen)
        loop = _with_start(limits, loop, values, d)
        values, d = scaled(values, d, loop.scale)
        e = errors(limits, loop.it, values, d)
        status = _status(loop, e, values.cost, tolerance, max_iterations)
        loop = loop._replace(status=status, errors=e, values=values)
        if progress is not None:
            shown = (loop.count, values.cost / loop.scale, e.primal, e.dual, loop.mu, loop.regular, loop.step)
            jax.debug.callback(progress, Progress(*shown))
        advance = lambda x: _advanced(program, limits, x, seen, d, tolerance)
        return jax.lax.cond(status < 0, advance, lambda x: x, loop)

    return jax.lax.while_loop(lambda loop: loop.status < 0, body, _empty(program, limits, mu))


def scaled(values: Values, d: Slopes, scale) -> tuple[Values, Slopes]:
    """The cost in the solver's scale."""
    return values._replace(cost=scale * values.cost), d._replace(cost=scale * d.cost, cost_end=scale * d.cost_end)


def _empty(program: Program, limits, mu) -> Loop:
    s, m = program.guess()
    dtype = s.dtype
    zeros = lambda tree: jax.tree.map(lambda x: jnp.zeros(x.shape, dtype), tree)
    values = zeros(jax.eval_shape(program.values, s, m))
    number, whole = lambda x: jnp.asarray(x, dtype), lambda x: jnp.asarray(x, int)
    side = Side(jax.tree.map(jnp.ones_like, limits[0]), jax.tree.map(jnp.zeros_like, limits[0]))
    it = Iterate(s, m, zeros(values.c), zeros(values.b0), zeros(values.bN), side, side)
    none = Errors(*(number(jnp.inf),) * 4)
    empty = jnp.full((_FILTER, 2), jnp.inf, dtype)
    tail = (whole(0), number(0), number(0), whole(0), whole(0), whole(-1), none, number(0), number(1))
    return Loop(it, values, number(mu), empty, *tail)


def _with_start(limits, loop: Loop, values: Values, d: Slopes) -> Loop:
    """At the first iteration: slacks that fit the guess, and a scale that makes the gradient at most 100."""
    first = loop.count == 0
    low, high = begin(limits, values, loop.mu)
    either = lambda a, b: jax.tree.map(lambda a, b: jnp.where(first, a, b), a, b)
    it = loop.it._replace(low=either(low, loop.it.low), high=either(high, loop.it.high))
    steepest = jnp.maximum(jnp.max(jnp.abs(d.cost), initial=0), jnp.max(jnp.abs(d.cost_end), initial=0))
    scale = jnp.clip(100 / jnp.maximum(steepest, 1e-8), 1e-8, 1.0)
    fresh = first & (loop.failures == 0)
    return loop._replace(it=it, scale=jnp.where(fresh, scale, loop.scale))


def _status(loop: Loop, e: Errors, cost, tolerance, max_iterations: int):
    feasible = e.primal <= jnp.sqrt(tolerance)
    finite = jnp.isfinite(e.dual) & jnp.isfinite(e.primal) & jnp.isfinite(cost)
    stuck = jnp.where(feasible, SolveStatus.STALLED, SolveStatus.INFEASIBLE)
    status = jnp.where(loop.failures > 8, stuck, -1)
    status = jnp.where(loop.count >= max_iterations, SolveStatus.MAX_ITERATIONS, status)
    status = jnp.where(total(e, 0.0) <= tolerance, SolveStatus.SOLVED, status)
    return jnp.where(finite, status, SolveStatus.NOT_FINITE)


def _advanced(program: Program, limits, loop: Loop, seen: Seen, d: Slopes, tolerance) -> Loop:
    """One iteration: barrier parameter, direction, line search."""
    loop = _with_barrier(loop, tolerance)
    it, mu = loop.it, loop.mu
    blocks = stiffened(program.blocks(it.s, it.m, seen, d, weights(it), loop.scale), it, d)
    f, size, _ = regularised(program, blocks, loop.regular, loop.least)
    direction = directed(program, f, d, it, loop.values, misfits(limits, it, loop.values), mu)
    new, values, accepted, augment, length, at = _search(program, limits, loop, d, f, direction)
    new = safeguarded(new, mu)
    keep = lambda a, b: jax.tree.map(lambda a, b: jnp.where(accepted, a, b), a, b)
    row = jnp.where(accepted & augment, loop.entries % _FILTER, _FILTER)
    entry = jnp.stack([(1 - 1e-5) * at[0], at[1] - 1e-8 * at[0]])
    filled = loop.filter.at[row].set(entry, mode="drop")
    failures = jnp.where(accepted, 0, loop.failures + 1)
    least = jnp.where(accepted, 0, jnp.maximum(100 * jnp.maximum(size, loop.least), 1e-4))
    return loop._replace(
        it=keep(new, it),
        values=keep(values, loop.values),
        filter=jnp.where(accepted, filled, jnp.inf),
        entries=jnp.where(accepted, loop.entries + (accepted & augment), 0),
        regular=jnp.where(size > 0, size, loop.regular),
        least=least,
        failures=failures,
        count=loop.count + 1,
        step=jnp.where(accepted, length, 0),
    )


def _with_barrier(loop: Loop, tolerance) -> Loop:
    """A smaller barrier parameter where its problem is solved well enough; the filter begins anew."""
    smaller = lambda mu: jnp.maximum(tolerance / 10, jnp.minimum(0.2 * mu, mu**1.5))
    mu = loop.mu
    for _ in range(4):
        mu = jnp.where(total(loop.errors, mu) <= 10 * mu, smaller(mu), mu)
    changed = mu != loop.mu
    return loop._replace(
        mu=mu, filter=jnp.where(changed, jnp.inf, loop.filter), entries=jnp.where(changed, 0, loop.entries)
    )


class _Trial(NamedTuple):
    tried: Any
    length: Any
    direction: Direction
    #: whether the direction is a second-order correction
    corrected: Any
    it: Iterate
    values: Values
    accepted: Any
    augment: Any


def _search(program: Program, limits, loop: Loop, d: Slopes, f, direction: Direction):
    """Halves the step until the filter takes it; tries a second-order correction after the first refusal."""
    it, mu = loop.it, loop.mu
    before = violation(limits, it, loop.values), barrier(limits, it, loop.values.cost, mu)
    fraction = jnp.maximum(0.99, 1 - mu)
    slope = _slope(d, direction, it, mu)
    gap = misfits(limits, it, loop.values)
    longest_step, _ = longest(direction, it, fraction)

    def attempt(trial: _Trial) -> _Trial:
        reach, dual = longest(trial.direction, it, fraction)
        length = jnp.minimum(trial.length, reach)
        # the first multipliers of the equations come from the first step, whatever its length
        new = moved(it, trial.direction, length, dual, jnp.where(loop.count == 0, 1, length))
        values = program.values(new.s, new.m)
        values = values._replace(cost=loop.scale * values.cost)
        after = violation(limits, new, values), barrier(limits, new, values.cost, mu)
        accepted, augment = _acceptable(loop.filter, before, after, slope, length)
        worse = (trial.tried == 0) & ~accepted & (after[0] >= before[0])

        def correct(_):
            both = lambda a, b: jax.tree.map(lambda a, b: length * a + b, a, b)
            right = loop.values._replace(
                c=both(loop.values.c, values.c), b0=both(loop.values.b0, values.b0), bN=both(loop.values.bN, values.bN)
            )
            return directed(program, f, d, it, right, both(gap, misfits(limits, new, values)), mu)

        following = jax.lax.cond(worse, correct, lambda _: direction, None)
        shorter = jnp.where(trial.corrected | ~worse, trial.length / 2, trial.length)
        shorter = jnp.where(worse, 1.0, jnp.where(trial.corrected, longest_step / 2, shorter))
        shorter = jnp.where(accepted, length, shorter)
        return _Trial(trial.tried + 1, shorter, following, worse, new, values, accepted, augment)

    no = jnp.asarray(False)
    first = _Trial(jnp.zeros((), int), longest_step, direction, no, it, loop.values, no, no)
    more = lambda trial: ~trial.accepted & (trial.tried < _HALVINGS)
    last = jax.lax.while_loop(more, attempt, first)
    return last.it, last.values, last.accepted, last.augment, last.length, before


def _slope(d: Slopes, direction: Direction, it: Iterate, mu):
    """Derivative of the barrier function along the direction."""
    step = direction.step
    z = jnp.concatenate([step.s[:-1], step.m, step.s[1:]], axis=1)
    logs = jax.tree.map(lambda a, da: jnp.sum(da / a), (it.low[0], it.high[0]), (direction.low[0], direction.high[0]))
    return jnp.sum(d.cost * z) + d.cost_end @ step.s[-1] - mu * sum(jax.tree.leaves(logs))


def _acceptable(entries, before, after, slope, length):
    """Whether the filter takes a point, and whether the point before enters the filter (section 2.3)."""
    (v0, b0), (v, b) = before, after
    finite = jnp.isfinite(v) & jnp.isfinite(b)
    rounding = 10 * jnp.finfo(v.dtype).eps * jnp.abs(b0)
    dominated = jnp.any((v >= entries[:, 0]) & (b - rounding >= entries[:, 1])) | (v > 1e4 * jnp.maximum(1, v0))
    descent = slope < 0
    down = jnp.where(descent, -slope, 1)
    strong = descent & (length * down**2.3 > v0**1.1) & (v0 <= 1e-4)
    armijo = b - b0 - rounding <= 1e-4 * length * slope
    better = (v <= (1 - 1e-5) * v0) | (b - b0 - rounding <= -1e-8 * v0)
    accepted = finite & ~dominated & jnp.where(strong, armijo, better)
    return accepted, ~(strong & armijo)
