"""Roots of a function g of time over one step."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

SAMPLES = 8
_BISECTIONS = 12


class Root(NamedTuple):
    """What an event does in one step."""

    #: its time, or infinity
    time: jax.Array
    #: whether the condition is at zero all the time
    still: jax.Array
    #: whether the event would have to hold the motion from the start of the step on
    held: jax.Array


class _Start(NamedTuple):
    #: what stands for the first value, which may be zero but for rounding
    value: jax.Array
    still: jax.Array
    held: jax.Array


def time_tolerance(t):
    """How exactly the times of events are found: some units of rounding."""
    return 256 * jnp.finfo(t.dtype).eps * jnp.maximum(jnp.abs(t), 1)


def first_root(g, t0, t1, event, fired) -> Root:
    """The first passage of g through zero in `(t0, t1]`, or infinity, differentiable in all that g depends on.

    g is looked at in `SAMPLES` intervals, and inside of each where its cubic through values and slopes is extreme,
    so that two roots close together are seen as well. A root at the very start, where an event has just happened or
    g is exactly zero, is left behind: the slope tells to which side.
    """
    times, values, slopes = jax.lax.stop_gradient(_samples(g, t0, t1))
    start = _start(times, values, slopes, event, fired)
    crossed = _crossings(values.at[0].set(start.value), event.direction) & ~start.still
    found = jnp.any(crossed)
    held = start.held
    if event.barrier:
        beyond = jnp.min(-event.direction * values) < -(jnp.finfo(values.dtype).eps ** 0.5)
        held = held | (beyond & ~found)
    i = jnp.argmax(crossed)

    def located(guess):
        lo, hi = times[i], times[i + 1]
        side = jnp.where(values.at[0].set(start.value)[i] > 0, 1.0, -1.0).astype(values.dtype)

        def halve(_, bracket):
            lo, hi = bracket
            mid = (lo + hi) / 2
            before = side * jax.lax.stop_gradient(g(mid)) > 0
            return jnp.where(before, mid, lo), jnp.where(before, hi, mid)

        lo, hi = jax.lax.fori_loop(0, _BISECTIONS, halve, (lo, hi))
        nearer = lambda _, t: jax.lax.stop_gradient(jnp.clip(_newton(g, t), lo, hi))
        return jax.lax.fori_loop(0, 4, nearer, (lo + hi) / 2)

    near = _is_near(values[-1], slopes[-1], t1, event.direction) & ~start.still
    root = jax.lax.cond(found, located, lambda t: t, jax.lax.stop_gradient(t1))
    return Root(jnp.where(found | near, _implicit(g, root), jnp.inf), start.still, held)


def _start(times, values, slopes, event, fired) -> _Start:
    """Where g goes from the start on if it is zero there, and whether it has to be held.

    With `g ~ s (t - t0) + c (t - t0)^2 / 2` the motion leaves zero to the side of s, unless it is back within the
    accuracy of time, or from a stop gets little farther, `s^2 / 2c`, than the step landed beside it; then it is at
    rest, and goes to the side of c.
    """
    value, slope = values[0], slopes[0]
    tight = time_tolerance(times[0]) * (1 + jnp.max(jnp.abs(slopes)))
    at_zero = fired | (jnp.abs(value) <= (tight if event.barrier else 0))
    curve = _curve(times - times[0], values - value, slope, tight)
    sideways = jnp.abs(slope) <= jnp.abs(curve) * time_tolerance(times[0]) / 2
    if event.stops:
        sideways = sideways | (fired & (slope * slope <= 4 * jnp.abs(value * curve)))
    start = jnp.where(sideways, curve, slope)
    passes = event.direction * start > 0
    goes = jnp.min(-event.direction * values) < -tight
    held = at_zero & sideways & passes & goes & event.stops
    # what moves into a barrier from the start on meets it there
    meets = at_zero & ~fired & ~sideways & passes & event.barrier
    still = at_zero & ~meets & (jnp.maximum(jnp.max(jnp.abs(values)), jnp.max(jnp.abs(slopes))) <= tight)
    return _Start(jnp.where(at_zero, jnp.where(meets, -start, start), value), still, held)


def _curve(times, values, slope, tight):
    """The second derivative at the start, from where the values first differ from a straight line."""
    bends = values - slope * times
    seen = jnp.abs(bends) > tight
    i = jnp.argmax(seen)
    return jnp.where(seen.any(), 2 * bends[i] / jnp.where(seen.any(), times[i], 1) ** 2, 0)


def _is_near(value, slope, t, direction: int):
    """Whether a root in the right direction is at t but for rounding."""
    right = direction * slope > 0 if direction else slope != 0
    return right & (jnp.abs(value) <= time_tolerance(t) * jnp.abs(slope))


def _implicit(g, root):
    """A root with all its derivatives, by the theorem of implicit functions; `dt = -dg / (dg/dt)`."""

    def solved(linear, y):
        slope = linear(jnp.ones_like(y))
        flat = slope == 0
        return jnp.where(flat, 0, y / jnp.where(flat, 1, slope))

    return jax.lax.custom_root(g, root, lambda _, t: jax.lax.stop_gradient(t), solved)


def _samples(g, t0, t1):
    """Times and values at the ends of the intervals and at one point within each, and the slopes at the ends."""
    grid = t0 + (t1 - t0) * jnp.linspace(0, 1, SAMPLES + 1, dtype=t1.dtype)
    slope = lambda t: jax.jvp(g, (t,), (jnp.ones_like(t),))
    values, slopes = jax.vmap(slope)(grid)
    width = (t1 - t0) / SAMPLES
    share = _extremum(values[:-1], values[1:], width * slopes[:-1], width * slopes[1:])
    inner = grid[:-1] + width * share
    mix = lambda a, b: jnp.concatenate([jnp.stack([a[:-1], b], axis=1).ravel(), a[-1:]])
    return mix(grid, inner), mix(values, jax.vmap(g)(inner)), slopes


def _extremum(a, b, da, db):
    """Where the cubic with these values and slopes at 0 and 1 is extreme on the side of zero; else one half."""
    c3, c2 = 2 * (a - b) + da + db, 3 * (b - a) - 2 * da - db
    # s solves 3 c3 s^2 + 2 c2 s + da = 0; the extremum towards zero is a minimum where a > 0
    rising = jnp.where(a > 0, 1, -1)
    disc = c2 * c2 - 3 * c3 * da
    root = jnp.sqrt(jnp.maximum(disc, 0))
    below = c2 + rising * root
    s = -da / jnp.where(below == 0, 1, below)
    good = (disc > 0) & (below != 0) & (s > 0.01) & (s < 0.99)
    return jnp.where(good, s, 0.5)


def _crossings(values, direction: int):
    before, after = values[:-1], values[1:]
    down, up = (before > 0) & (after <= 0), (before < 0) & (after >= 0)
    return down if direction < 0 else up if direction > 0 else down | up


def _newton(g, t):
    value, slope = jax.jvp(g, (t,), (jnp.ones_like(t),))
    flat = slope == 0
    return t - jnp.where(flat, 0, value / jnp.where(flat, 1, slope))
