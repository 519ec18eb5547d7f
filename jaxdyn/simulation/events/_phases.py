"""The modes that a simulation carries from step to step, their record, and the search for the end of a mode."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Float, PyTree
from jaxdyn.dynamics import Switch
from jaxdyn.simulation.events._roots import differentiable_root, time_tolerance

_INTERVALS = 8
_BISECTIONS = 40


class Phases(eqx.Module):
    """The modes of the motion, and the switches up to a step. All leaves are floating-point numbers."""

    #: modes from now on
    modes: PyTree
    #: modes after each switch, the first entry at the start
    past: PyTree
    time: Float[Array, " cap"]
    impulse: Float[Array, "cap rows"]
    #: guards that became zero
    fired: Float[Array, "cap guards"]
    q: Float[Array, "cap nq"]
    v_before: Float[Array, "cap nv"]
    v: Float[Array, "cap nv"]
    #: rates of the guards that became zero
    slope: Float[Array, " cap"]
    #: number of entries in use
    count: Float[Array, ""]
    #: a `SwitchFailure`, and the contact that it concerns
    failure: Float[Array, ""]
    culprit: Float[Array, ""]
    #: time of the first switch within the last step or at its end, otherwise infinity
    root: Float[Array, ""]
    #: that switch is before the end of the step
    inside: Float[Array, ""]


def empty_phases(modes: PyTree, cap: int, guards: int, impulses: int, q, v) -> Phases:
    """A record with room for `cap` switches."""
    unused = lambda *shape: jnp.full(shape, jnp.nan, q.dtype)
    past = jax.tree.map(lambda x: jnp.full((cap, *x.shape), jnp.nan, x.dtype), modes)
    zero = jnp.zeros((), q.dtype)
    vs = unused(cap, v.size)
    rows = unused(cap), unused(cap, impulses), unused(cap, guards), unused(cap, q.size), vs, vs, unused(cap)
    return Phases(modes, past, *rows, zero, zero, zero, zero + jnp.inf, zero)


def append_switch(phases: Phases, happened, t, q, v_before, switch: Switch, fired, slope) -> Phases:
    """The record with one more switch, if it happened and there is room."""
    row = jnp.where(happened, phases.count, phases.time.shape[0]).astype(int)
    put = lambda rows, x: rows.at[row].set(x, mode="drop")
    keep = lambda new, old: jnp.where(happened, new, old)
    past = jax.tree.map(put, phases.past, switch.modes)
    return Phases(
        jax.tree.map(keep, switch.modes, phases.modes),
        past,
        put(phases.time, t),
        put(phases.impulse, switch.impulse),
        put(phases.fired, fired),
        put(phases.q, q),
        put(phases.v_before, v_before),
        put(phases.v, switch.v),
        put(phases.slope, slope),
        jnp.minimum(phases.count + happened, phases.time.shape[0]),
        keep(switch.failure, phases.failure),
        keep(switch.culprit, phases.culprit),
        phases.root,
        phases.inside,
    )


class GuardRoots(eqx.Module):
    """The first instant of a step at which a guard becomes zero."""

    #: or infinity
    time: Float[Array, ""]
    #: 1 for the guards that are zero at the end of the step
    fired: Float[Array, " guards"]
    #: rate of the guard that becomes zero
    slope: Float[Array, ""]


class _Search(NamedTuple):
    """The state of the search for a root: samples first, then a bracket."""

    k: Array
    #: guards at the samples
    values: Array
    lo: Array
    hi: Array
    f_lo: Array
    f_hi: Array
    #: guards at `hi`
    at_hi: Array


def find_guard_roots(guards: Callable[[Array], Array], t0, t1) -> GuardRoots:
    """The first root of any guard in `(t0, t1]`, differentiable with respect to everything that the guards depend on.

    Guards are positive within a mode. At the start of a step one may be zero, up to rounding, because its switch has
    just happened; it counts as positive there. All guards are sampled at the ends of `_INTERVALS` intervals, and at the
    minima of parabolas through three samples; the first root is bracketed by the Illinois method on the least guard. Samples and
    bracket share one loop, so that the equations of motion are compiled once.
    """
    frozen = lambda t: jax.lax.stop_gradient(guards(t))
    count = jax.eval_shape(guards, t1).shape[0]
    times = t0 + (t1 - t0) * jnp.linspace(0, 1, _INTERVALS + 1, dtype=t1.dtype)
    tiny = jnp.finfo(t1.dtype).tiny
    sampled = _INTERVALS + 1

    def advance(s: _Search) -> _Search:
        is_sample = s.k < sampled
        secant = s.hi - s.f_hi * (s.hi - s.lo) / jnp.where(s.f_hi == s.f_lo, 1, s.f_hi - s.f_lo)
        inside = (secant > s.lo) & (secant < s.hi)
        # the first point after the samples is the end of the bracket itself
        mid = jnp.where(s.k == sampled, s.hi, jnp.where(inside, secant, (s.lo + s.hi) / 2))
        t = jnp.where(is_sample, times[jnp.minimum(s.k, _INTERVALS)], mid)
        g = frozen(t)
        values = jnp.where(is_sample & (jnp.arange(sampled) == s.k)[:, None], g, s.values)
        bracket = _first_bracket(times, values, tiny)
        f = jnp.min(jnp.where(bracket.joins, g, jnp.inf))
        above = f > 0
        return _Search(
            s.k + 1,
            values,
            jnp.where(is_sample, bracket.start, jnp.where(above, mid, s.lo)),
            jnp.where(is_sample, bracket.end, jnp.where(above, s.hi, mid)),
            jnp.where(is_sample, bracket.value, jnp.where(above, f, s.f_lo / 2)),
            jnp.where(is_sample, -1, jnp.where(above, s.f_hi / 2, f)).astype(t.dtype),
            jnp.where(above | is_sample, s.at_hi, g),
        )

    def goes_on(s: _Search):
        is_found = _first_bracket(times, s.values, tiny).is_found
        is_wide = s.hi - s.lo > time_tolerance(t1) / 1024
        is_lost = (s.k > sampled) & (s.f_hi > 0)  # the parabola dips below zero, the guard does not
        return (s.k < sampled) | (is_found & is_wide & ~is_lost & (s.k < sampled + _BISECTIONS))

    values = jnp.ones((sampled, count), t1.dtype)
    start = _Search(jnp.asarray(0), values, t0, t1, jnp.ones_like(t1), jnp.ones_like(t1), values[0])
    s = jax.lax.stop_gradient(jax.lax.while_loop(goes_on, advance, jax.lax.stop_gradient(start)))
    bracket = _first_bracket(times, s.values, tiny)
    is_found = bracket.is_found & (s.f_hi <= 0)
    near = time_tolerance(t1)
    root = jnp.where(is_found, s.hi, jnp.inf)
    falling = (s.values[-1] - s.values[-2]) / jnp.maximum(times[-1] - times[-2], tiny)
    ends = (falling < 0) & (jnp.abs(s.values[-1]) <= -4 * near * falling)
    is_at_end = jnp.any(ends) | (is_found & (root >= t1 - near))
    k = jnp.where(is_found, jnp.argmin(jnp.where(bracket.joins, s.at_hi, jnp.inf)), jnp.argmax(ends))
    guess = jnp.where(is_found, s.hi, t1)
    time = jnp.where(is_found | is_at_end, differentiable_root(lambda t: guards(t)[k], guess), jnp.inf)
    fired = (ends | (jnp.arange(count) == k)) & is_at_end
    return GuardRoots(time, fired.astype(t1.dtype), jnp.minimum(falling[k], 0))


class _Bracket(NamedTuple):
    """The first interval in which a guard becomes zero, and the guards that do so in it."""

    is_found: Array
    start: Array
    end: Array
    #: the least of these guards at the start
    value: Array
    joins: Array


def _first_bracket(times, values, tiny) -> _Bracket:
    values = values.at[0].set(jnp.maximum(values[0], tiny))
    low, where = _lowest(times, values)
    falls = (values[:-1] > 0) & (values[1:] <= 0)  # intervals by guards
    dips = (values[:-1] > 0) & (values[1:] > 0) & (low < 0)
    crosses = jnp.any(falls | dips, axis=1)
    i = jnp.argmax(crosses)
    joins = (falls | dips)[i]
    end = jnp.min(jnp.where(dips[i], where[i], times[i + 1]))
    return _Bracket(jnp.any(crosses), times[i], end, jnp.min(jnp.where(joins, values[i], jnp.inf)), joins)


def _lowest(times, values):
    """In each interval the minimum of the parabola through its ends and the next sample, and its time."""
    step = times[1] - times[0]
    a, b = values[:-1], values[1:]
    c = jnp.concatenate([values[2:], values[-3:-2]])  # the last interval uses the sample before it
    is_last = (jnp.arange(a.shape[0]) == a.shape[0] - 1)[:, None]
    second = jnp.where(is_last, b - 2 * a + c, c - 2 * b + a)
    first = jnp.where(is_last, (b - c) / 2, b - a - second / 2)  # at the start of the interval, per step
    is_convex = second > 0
    s = jnp.where(is_convex, -first / jnp.where(is_convex, second, 1), 0)
    is_inside = is_convex & (s > 0) & (s < 1)
    low = jnp.where(is_inside, a + first * s + second * s**2 / 2, jnp.minimum(a, b))
    return low, times[:-1, None] + step * jnp.where(is_inside, s, 1)
