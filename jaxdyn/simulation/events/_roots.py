"""The first root of a guard function g of time within one step."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn.simulation.events._events import Event

SAMPLES = 8
_BISECTIONS = 12


class Root(NamedTuple):
    """The root of an event's condition in one step."""

    #: time of the root, or infinity
    time: jax.Array
    #: the condition is zero throughout the step
    is_still: jax.Array
    #: the event would have to hold the motion from the start of the step on
    is_held: jax.Array


class _Start(NamedTuple):
    #: replaces the first value of g, which may be zero up to rounding, and has the sign that g takes after the start
    value: jax.Array
    is_still: jax.Array
    is_held: jax.Array


def time_tolerance(t):
    """The accuracy of the times of events: some units of rounding."""
    return 256 * jnp.finfo(t.dtype).eps * jnp.maximum(jnp.abs(t), 1)


def first_root(g: Callable[[jax.Array], jax.Array], t0, t1, event: Event, fired) -> Root:
    """The first root of g in `(t0, t1]`, or infinity, differentiable with respect to everything that g depends on.

    g is sampled at the ends of `SAMPLES` intervals, and within each interval at the extremum of the cubic through the
    values and slopes at its ends, so that two roots close together are found as well. A root at the start of the step,
    where an event has just happened or g is exactly zero, does not count; the slope gives the sign of g after it.
    """
    times, values, slopes = jax.lax.stop_gradient(_samples(g, t0, t1))
    start = _leave_start(times, values, slopes, event, fired)
    crossings = _has_crossing(values.at[0].set(start.value), event.direction) & ~start.is_still
    is_found = jnp.any(crossings)
    is_held = start.is_held
    if event.barrier:
        is_beyond = jnp.min(-event.direction * values) < -(jnp.finfo(values.dtype).eps ** 0.5)
        is_held = is_held | (is_beyond & ~is_found)
    i = jnp.argmax(crossings)

    def locate(guess):
        lo, hi = times[i], times[i + 1]
        side = jnp.where(values.at[0].set(start.value)[i] > 0, 1.0, -1.0).astype(values.dtype)

        def halve(_, bracket):
            lo, hi = bracket
            mid = (lo + hi) / 2
            is_before = side * jax.lax.stop_gradient(g(mid)) > 0
            return jnp.where(is_before, mid, lo), jnp.where(is_before, hi, mid)

        lo, hi = jax.lax.fori_loop(0, _BISECTIONS, halve, (lo, hi))
        refine = lambda _, t: jax.lax.stop_gradient(jnp.clip(_newton_iterate(g, t), lo, hi))
        return jax.lax.fori_loop(0, 4, refine, (lo + hi) / 2)

    is_at_end = _has_root_near(values[-1], slopes[-1], t1, event.direction) & ~start.is_still
    root = jax.lax.cond(is_found, locate, lambda t: t, jax.lax.stop_gradient(t1))
    return Root(jnp.where(is_found | is_at_end, differentiable_root(g, root), jnp.inf), start.is_still, is_held)


def _leave_start(times, values, slopes, event: Event, fired) -> _Start:
    """The sign of g after the start of the step if g is zero there, and whether the event has to hold the motion.

    With `g ~ s (t - t0) + c (t - t0)^2 / 2` g takes the sign of s, unless it returns to zero within the accuracy of
    time, or rises from a stop by little more, `s^2 / 2c`, than the distance at which the step ended beside it. In these
    cases the motion is at rest, and g takes the sign of c.
    """
    value, slope = values[0], slopes[0]
    tight = time_tolerance(times[0]) * (1 + jnp.max(jnp.abs(slopes)))
    at_zero = fired | (jnp.abs(value) <= (tight if event.barrier else 0))
    curvature = _curvature(times - times[0], values - value, slope, tight)
    at_rest = jnp.abs(slope) <= jnp.abs(curvature) * time_tolerance(times[0]) / 2
    if event.is_stop:
        at_rest = at_rest | (fired & (slope * slope <= 4 * jnp.abs(value * curvature)))
    start = jnp.where(at_rest, curvature, slope)
    passes = event.direction * start > 0
    leaves = jnp.min(-event.direction * values) < -tight
    is_held = at_zero & at_rest & passes & leaves & event.is_stop
    # a motion into a barrier from the start on meets the barrier at the start
    meets = at_zero & ~fired & ~at_rest & passes & event.barrier
    is_still = at_zero & ~meets & (jnp.maximum(jnp.max(jnp.abs(values)), jnp.max(jnp.abs(slopes))) <= tight)
    return _Start(jnp.where(at_zero, jnp.where(meets, -start, start), value), is_still, is_held)


def _curvature(times, values, slope, tight):
    """The second derivative at the start, from the first value that deviates from a straight line."""
    deviations = values - slope * times
    is_bent = jnp.abs(deviations) > tight
    i = jnp.argmax(is_bent)
    return jnp.where(is_bent.any(), 2 * deviations[i] / jnp.where(is_bent.any(), times[i], 1) ** 2, 0)


def _has_root_near(value, slope, t, direction: int):
    """Whether g has a root in the right direction at t, up to rounding."""
    is_right = direction * slope > 0 if direction else slope != 0
    return is_right & (jnp.abs(value) <= time_tolerance(t) * jnp.abs(slope))


def differentiable_root(g, root):
    """The root with derivatives of all orders, by the implicit function theorem: `dt = -dg / (dg/dt)`."""

    def solve_tangent(linear, y):
        slope = linear(jnp.ones_like(y))
        is_flat = slope == 0
        return jnp.where(is_flat, 0, y / jnp.where(is_flat, 1, slope))

    return jax.lax.custom_root(g, root, lambda _, t: jax.lax.stop_gradient(t), solve_tangent)


def _samples(g, t0, t1):
    """Times and values at the ends of the intervals and at one point within each, and the slopes at the ends."""
    grid = t0 + (t1 - t0) * jnp.linspace(0, 1, SAMPLES + 1, dtype=t1.dtype)
    slope = lambda t: jax.jvp(g, (t,), (jnp.ones_like(t),))
    values, slopes = jax.vmap(slope)(grid)
    width = (t1 - t0) / SAMPLES
    fraction = _extremum(values[:-1], values[1:], width * slopes[:-1], width * slopes[1:])
    inner = grid[:-1] + width * fraction
    interleave = lambda a, b: jnp.concatenate([jnp.stack([a[:-1], b], axis=1).ravel(), a[-1:]])
    return interleave(grid, inner), interleave(values, jax.vmap(g)(inner)), slopes


def _extremum(a, b, da, db):
    """The extremum, on the side of zero, of the cubic with these values and slopes at 0 and 1; otherwise one half."""
    c3, c2 = 2 * (a - b) + da + db, 3 * (b - a) - 2 * da - db
    # s solves 3 c3 s^2 + 2 c2 s + da = 0; the extremum towards zero is a minimum where a > 0
    rising = jnp.where(a > 0, 1, -1)
    disc = c2 * c2 - 3 * c3 * da
    root = jnp.sqrt(jnp.maximum(disc, 0))
    below = c2 + rising * root
    s = -da / jnp.where(below == 0, 1, below)
    is_inside = (disc > 0) & (below != 0) & (s > 0.01) & (s < 0.99)
    return jnp.where(is_inside, s, 0.5)


def _has_crossing(values, direction: int):
    before, after = values[:-1], values[1:]
    down, up = (before > 0) & (after <= 0), (before < 0) & (after >= 0)
    return down if direction < 0 else up if direction > 0 else down | up


def _newton_iterate(g, t):
    value, slope = jax.jvp(g, (t,), (jnp.ones_like(t),))
    is_flat = slope == 0
    return t - jnp.where(is_flat, 0, value / jnp.where(is_flat, 1, slope))
