"""The modes that a simulation carries from step to step, their record, and the search for the end of a mode."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from jaxdyn._types import Array, Float, PyTree
from jaxdyn.dynamics import Switch
from jaxdyn.simulation.events._roots import differentiable_root, time_tolerance

_INTERVALS = 8
_BISECTIONS = 40


class PhaseEntry(NamedTuple):
    """A switch and the phase that begins with it, or, with a leading axis, several of them."""

    time: Array
    #: modes after the switch, as a vector
    modes: Array
    #: impulses
    impulse: Array
    #: guards that became zero
    fired: Array
    q: Array
    v_before: Array
    v: Array
    #: rate of the guard that became zero, and the second derivative
    slope: Array
    curvature: Array


class Phases(eqx.Module):
    """The modes of the motion, and the switches up to a step.

    Loops of diffrax treat each array of a state separately; so all entries, each a row, are one array, and all numbers
    another. All leaves are floating-point numbers, as the state of a solver must be.
    """

    #: modes from now on
    modes: PyTree
    #: a row for each switch, the first one at the start
    entries: Float[Array, "cap width"]
    #: number of entries in use; a `SwitchFailure`; the contact that it concerns; root; whether it is inside; whether a
    #: switch is due; rate and second derivative of the guard that has become zero; then 1 for each guard that has
    numbers: Float[Array, " numbers"]
    #: sizes of the fields of an entry
    sizes: tuple[int, ...] = eqx.field(static=True)

    @property
    def count(self):
        """Number of entries in use."""
        return self.numbers[0]

    @property
    def failure(self):
        """A `SwitchFailure`."""
        return self.numbers[1]

    @property
    def culprit(self):
        """The contact that a failure concerns."""
        return self.numbers[2]

    @property
    def fired(self):
        """1 for the guards that became zero at the end of the last step."""
        return self.numbers[8:]

    @property
    def root(self):
        """Time of the first switch within the last step or at its end, otherwise infinity."""
        return self.numbers[3]

    @property
    def is_inside(self):
        """Whether that switch is before the end of the step."""
        return self.numbers[4] > 0

    @property
    def is_due(self):
        """Whether the next step begins with a switch."""
        return self.numbers[5] > 0

    @property
    def ends(self):
        """Whether the simulation ends with the last switch: it failed, or there is no room for another one."""
        return (self.failure > 0) | (self.count >= self.entries.shape[0])

    def table(self) -> PhaseEntry:
        """All entries."""
        columns = jnp.split(self.entries, np.cumsum(self.sizes)[:-1], axis=1)
        entry = PhaseEntry(*columns)
        return entry._replace(time=entry.time[:, 0], slope=entry.slope[:, 0], curvature=entry.curvature[:, 0])


def empty_phases(modes: PyTree, cap: int, guards: int, impulses: int, q, v) -> Phases:
    """A record with room for `cap` switches, of which the first one is due."""
    sizes = 1, ravel_pytree(modes)[0].size, impulses, guards, q.size, v.size, v.size, 1, 1
    head = jnp.array([0, 0, 0, jnp.inf, 0, 1, jnp.nan, jnp.nan], q.dtype)
    numbers = jnp.concatenate([head, jnp.zeros(guards, q.dtype)])
    return Phases(modes, jnp.full((cap, sum(sizes)), jnp.nan, q.dtype), numbers, sizes)


def append_switch(phases: Phases, t, q, v_before, switch: Switch) -> Phases:
    """The record with the switch that is due."""
    modes = ravel_pytree(switch.modes)[0]
    slopes = phases.numbers[6:8]
    row = jnp.concatenate([t[None], modes, switch.impulse, phases.fired, q, v_before, switch.v, slopes])
    entries = phases.entries.at[phases.count.astype(int)].set(row, mode="drop")
    count = jnp.minimum(phases.count + 1, entries.shape[0])
    head = jnp.stack([count, switch.failure, switch.culprit])
    numbers = phases.numbers.at[:3].set(head).at[5].set(0)
    return Phases(switch.modes, entries, numbers, phases.sizes)


class GuardRoots(eqx.Module):
    """The first instant of a step at which a guard becomes zero."""

    #: or infinity
    time: Float[Array, ""]
    #: 1 for the guards that are zero at the end of the step
    fired: Float[Array, " guards"]
    #: rate of the guard that becomes zero, and the second derivative
    slope: Float[Array, ""]
    curvature: Float[Array, ""]


def no_roots(guards: int, t1) -> GuardRoots:
    """The result for a step without roots."""
    return GuardRoots(jnp.full_like(t1, jnp.inf), jnp.zeros(guards, t1.dtype), jnp.zeros_like(t1), jnp.zeros_like(t1))


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
    minima of parabolas through three samples; the Illinois method on the least guard locates the first root. Samples
    and bracket share one loop, so that the equations of motion are compiled once.
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
    slope, curvature = _end_derivatives(s.values[-3:, k], jnp.maximum(times[-1] - times[-2], tiny))
    return GuardRoots(time, fired.astype(t1.dtype), jnp.minimum(slope, 0), curvature)


def _end_derivatives(values, step):
    """First and second derivative at the last of three samples, of the parabola through them."""
    a, b, c = values
    second = c - 2 * b + a
    is_rounding = jnp.abs(second) <= 16 * jnp.finfo(values.dtype).eps * (1 + jnp.abs(a))
    second = jnp.where(is_rounding, 0, second)
    return ((c - b) + second / 2) / step, second / step**2


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
