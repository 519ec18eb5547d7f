"""Events: instants at which a function of the state changes its sign."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._errors import ModelError
from jaxdyn.dynamics import mass_matrix
from jaxdyn.model import Model
from jaxdyn.simulation._function import as_function


class Event(eqx.Module):
    """An instant at which `condition(model, t, q, v)`, a smooth real function, passes through zero.

    There the state becomes `(q, v) = reset(model, t, q, v)`, and if the event is `terminal` the simulation ends. The
    time is the root of the condition along the simulated motion, and its derivative `dt/dp = -(dg/dp) / (dg/dt)`; what
    comes after the event depends on it through the reset and through the time that is left (the saltation matrix, e.g.
    Kong, Payne, Zhu and Johnson 2024, "Saltation matrices"). `direction` is 1 if only upward passages count, -1 if only
    downward ones, and 0 for both. Conditions and resets may be modules whose leaves are parameters.
    """

    condition: Callable[..., Any] = eqx.field(converter=as_function)
    reset: Callable[..., Any] | None = eqx.field(converter=as_function, default=None)
    terminal: bool = eqx.field(static=True, default=False)
    direction: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        if self.direction not in (-1, 0, 1):
            raise ModelError(
                f"the direction of an event is {self.direction!r}; it can be -1 (down), 0 (both) or 1 (up)"
            )

    def value(self, model: Model, t, q, v):
        """The condition, checked to be one real number."""
        value = jnp.asarray(self.condition(model, t, q, v))
        if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
            raise ModelError(
                f"the condition of an event gives {value.dtype}{list(value.shape)}; it has to be one real number that "
                "changes its sign, such as q[0] - limit: a comparison has no root and no derivative"
            )
        return value.astype(q.dtype)


class Coordinate(eqx.Module):
    """`sign * (q_i - bound)`: one joint's coordinate at a bound."""

    index: int = eqx.field(static=True)
    bound: Any
    sign: float = eqx.field(static=True, default=1.0)

    def __call__(self, model, t, q, v):
        return self.sign * (q[self.index] - self.bound)


class Rebound(eqx.Module):
    """One coordinate's velocity is turned round, times the restitution, by an impulse along this coordinate.

    `v+ = v - (1 + e) v_i M^-1 e_i / (M^-1)_ii`: what hangs on the joint is thrown about as well.
    """

    index: int = eqx.field(static=True)
    restitution: Any

    def __call__(self, model, t, q, v):
        unit = jnp.zeros_like(v).at[self.index].set(1)
        push = cho_solve(cho_factor(mass_matrix(model, q)), unit)
        return q, v - (1 + self.restitution) * v[self.index] * push / push[self.index]


def joint_stops(model: Model, restitution: Any = 0.5) -> tuple[Event, ...]:
    """Events at all finite limits of joints with one coordinate, where they rebound (`Rebound`)."""
    stops: list[Event] = []
    for name in model.joint_names:
        view = model.joint(name)
        if view.joint.nq != 1 or view.joint.nv != 1:
            continue
        q, v = view.q.start, view.v.start
        for limit, sign in ((model.limits.lower, 1.0), (model.limits.upper, -1.0)):
            if bool(jnp.isfinite(limit[q])):
                stops.append(Event(Coordinate(q, limit[q], sign), Rebound(v, jnp.asarray(restitution)), direction=-1))
    return tuple(stops)


class Log(eqx.Module):
    """What has happened up to a step; all floating point, as a solver's state must be."""

    time: Any
    index: Any
    q_before: Any
    v_before: Any
    q: Any
    v: Any
    count: Any
    #: the events that happened at the end of the last step
    fired: Any
    #: whether a terminal event has happened
    ended: Any
    #: within the step just made, a time before its end at which an event waits, or infinity
    root: Any


def empty_log(num_events: int, cap: int, q, v) -> Log:
    """A log with room for `cap` events."""
    full = lambda *shape: jnp.full(shape, jnp.nan, q.dtype)
    zero = jnp.zeros((), q.dtype)
    qs, vs = full(cap, q.size), full(cap, v.size)
    index, fired = jnp.full((cap,), -1, q.dtype), jnp.zeros(num_events, q.dtype)
    return Log(full(cap), index, qs, vs, qs, vs, zero, fired, zero, zero + jnp.inf)


def written(log: Log, happened, t, index: int, before, after) -> Log:
    """The log with one more entry, if the event happened and there is room."""
    at = jnp.where(happened, log.count, log.time.shape[0]).astype(int)
    put = lambda rows, row: rows.at[at].set(row, mode="drop")
    return eqx.tree_at(
        lambda g: (g.time, g.index, g.q_before, g.v_before, g.q, g.v, g.count),
        log,
        (
            put(log.time, t),
            put(log.index, jnp.asarray(index, log.index.dtype)),
            put(log.q_before, before[0]),
            put(log.v_before, before[1]),
            put(log.q, after[0]),
            put(log.v, after[1]),
            jnp.minimum(log.count + happened, log.time.shape[0]),
        ),
    )


# Roots of a function g of time over one step

SAMPLES = 8
_BISECTIONS = 12


def first_root(g, t0, t1, direction: int, fired, near):
    """The first passage of g through zero in `(t0, t1 + near]`, or infinity, differentiable in all g depends on.

    g is looked at in `SAMPLES` intervals, and inside of each where its cubic through values and slopes is extreme,
    so that two roots close together are seen as well. A root at the very start, where an event has just happened or
    g is exactly zero, is left behind: the slope tells to which side.
    """
    times, values, slope0 = jax.lax.stop_gradient(_samples(g, t0, t1))
    start = jnp.where(fired | (values[0] == 0), slope0, values[0])
    values = values.at[0].set(start)
    crossed = _crossings(values, direction)
    found = jnp.any(crossed)
    i = jnp.argmax(crossed)

    def locate():
        lo, hi = times[i], times[i + 1]
        side = jnp.where(values[i] > 0, 1.0, -1.0).astype(values.dtype)

        def halve(_, bracket):
            lo, hi = bracket
            mid = (lo + hi) / 2
            before = side * jax.lax.stop_gradient(g(mid)) > 0
            return jnp.where(before, mid, lo), jnp.where(before, hi, mid)

        lo, hi = jax.lax.fori_loop(0, _BISECTIONS, halve, (lo, hi))
        root = (lo + hi) / 2
        for _ in range(3):
            root = jax.lax.stop_gradient(jnp.clip(_newton(g, root), lo, hi))
        return _newton(g, root)

    return jax.lax.cond(found, locate, lambda: _just_ahead(g, t1, direction, near))


def _just_ahead(g, t, direction: int, near):
    """t itself if a root in the right direction is within `near` of it, or infinity."""
    value, slope = jax.lax.stop_gradient(jax.jvp(g, (t,), (jnp.ones_like(t),)))
    right = direction * slope > 0 if direction else slope != 0
    return jnp.where(right & (jnp.abs(value) <= near * jnp.abs(slope)), t, jnp.inf)


def _samples(g, t0, t1):
    """Times and values at the ends of the intervals and at one point within each, and the first slope."""
    grid = t0 + (t1 - t0) * jnp.linspace(0, 1, SAMPLES + 1, dtype=t1.dtype)
    slope = lambda t: jax.jvp(g, (t,), (jnp.ones_like(t),))
    values, slopes = jax.vmap(slope)(grid)
    width = (t1 - t0) / SAMPLES
    share = _extremum(values[:-1], values[1:], width * slopes[:-1], width * slopes[1:])
    inner = grid[:-1] + width * share
    mix = lambda a, b: jnp.concatenate([jnp.stack([a[:-1], b], axis=1).ravel(), a[-1:]])
    return mix(grid, inner), mix(values, jax.vmap(g)(inner)), slopes[0]


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
    slope = jax.lax.stop_gradient(slope)
    flat = slope == 0
    return t - jnp.where(flat, 0, value / jnp.where(flat, 1, slope))
