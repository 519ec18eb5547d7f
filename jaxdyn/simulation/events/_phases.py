"""The modes that a simulation carries from step to step, their record, and the search for the end of a mode."""

from collections.abc import Callable

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


def find_guard_roots(guards: Callable[[Array], Array], t0, t1) -> GuardRoots:
    """The first root of any guard in `(t0, t1]`, differentiable with respect to everything that the guards depend on.

    Guards are positive within a mode. At the start of a step one may be zero, up to rounding, because its switch has
    just happened; it counts as positive there. All guards are sampled at the ends of `_INTERVALS` intervals, and at the
    minima of parabolas through three samples.
    """
    times = t0 + (t1 - t0) * jnp.linspace(0, 1, _INTERVALS + 1, dtype=t1.dtype)
    values = jax.lax.stop_gradient(jax.vmap(guards)(times))
    values = values.at[0].set(jnp.maximum(values[0], jnp.finfo(values.dtype).tiny))
    low, where = _lowest(times, values)
    falls = (values[:-1] > 0) & (values[1:] <= 0)  # intervals by guards
    dips = (values[:-1] > 0) & (values[1:] > 0) & (low < 0)
    crosses = jnp.any(falls | dips, axis=1)
    is_found = jnp.any(crosses)
    i = jnp.argmax(crosses)
    joins = (falls | dips)[i]
    end = jnp.min(jnp.where(dips[i], where[i], times[i + 1]))

    def locate():
        lowest = lambda t: jnp.min(jnp.where(joins, jax.lax.stop_gradient(guards(t)), jnp.inf))

        def halve(_, bracket):
            lo, hi, f_lo, f_hi = bracket
            secant = hi - f_hi * (hi - lo) / jnp.where(f_hi == f_lo, 1, f_hi - f_lo)
            is_inside = (secant > lo) & (secant < hi)
            mid = jnp.where(is_inside, secant, (lo + hi) / 2)
            f = lowest(mid)
            # Illinois: halve the value of an end that stays
            above = f > 0
            new_lo, new_hi = jnp.where(above, mid, lo), jnp.where(above, hi, mid)
            return new_lo, new_hi, jnp.where(above, f, f_lo / 2), jnp.where(above, f_hi / 2, f)

        f_lo = jnp.maximum(lowest(times[i]), jnp.finfo(times.dtype).tiny)
        f_end = lowest(end)
        lo, hi, *_ = jax.lax.fori_loop(0, _BISECTIONS, halve, (times[i], end, f_lo, f_end))
        return jnp.where(f_end <= 0, hi, jnp.inf)

    near = time_tolerance(t1)
    root = jax.lax.cond(is_found, locate, lambda: jnp.full_like(t1, jnp.inf))
    falling = (values[-1] - values[-2]) / jnp.maximum(times[-1] - times[-2], jnp.finfo(t1.dtype).tiny)
    ends = (falling < 0) & (jnp.abs(values[-1]) <= -4 * near * falling)
    is_at_end = jnp.any(ends) | (root >= t1 - near) & is_found & jnp.isfinite(root)
    k = jnp.where(is_found, _first_guard(guards, root, t1, joins), jnp.argmax(ends))
    guess = jnp.where(jnp.isfinite(root), root, t1)
    g = lambda t: guards(t)[k]
    time = jnp.where(jnp.isfinite(root) | is_at_end, differentiable_root(g, jax.lax.stop_gradient(guess)), jnp.inf)
    fired = ends | ((root >= t1 - near) & joins & (values[-1] <= -4 * near * falling))
    fired = (fired | (jnp.arange(values.shape[1]) == k)) & is_at_end
    slope = jnp.where(falling[k] < 0, falling[k], 0)
    return GuardRoots(time, fired.astype(t1.dtype), slope)


def _first_guard(guards, root, t1, joins):
    at = jax.lax.stop_gradient(guards(jnp.where(jnp.isfinite(root), root, t1)))
    return jnp.argmin(jnp.where(joins, jnp.abs(at), jnp.inf))


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
