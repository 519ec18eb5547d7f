"""Events: instants at which a function of the state changes its sign."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn.model import Model
from jaxdyn.simulation._function import as_function
from jaxdyn.simulation._state import State


class Event(eqx.Module):
    """An instant at which `condition(model, t, q, v)`, a smooth real function, passes through zero.

    There the state becomes `(q, v) = reset(model, t, q, v)`, and if the event is `terminal` the simulation ends. The
    time is the root of the condition along the simulated motion, and its derivative `dt/dp = -(dg/dp) / (dg/dt)`; what
    comes after the event depends on it through the reset and through the time that is left (the saltation matrix, e.g.
    Kong, Payne, Zhu and Johnson 2024, "Saltation matrices"). `direction` is 1 if only upward passages count, -1 if only
    downward ones, and 0 for both. Conditions and resets may be modules whose leaves are parameters. With `sees_parts`
    the condition gets the states of the system's parts as a fifth argument, a tuple with one a part.

    A `barrier` is not to be passed: with direction -1 the condition stays positive, with 1 negative. An event lasts
    no time, so it cannot hold a robot that rests against a barrier and is pushed on, nor bring back one that starts
    beyond. Such a simulation ends with the status `HELD`; so does one whose reset, with a direction, leaves it at rest
    where the motion would pass.
    """

    condition: Callable[..., Any] = eqx.field(converter=as_function)
    reset: Callable[..., Any] | None = eqx.field(converter=as_function, default=None)
    terminal: bool = eqx.field(static=True, default=False)
    direction: int = eqx.field(static=True, default=0)
    barrier: bool = eqx.field(static=True, default=False)
    sees_parts: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if self.direction not in (-1, 0, 1):
            raise ModelError(
                f"the direction of an event is {self.direction!r}; it can be -1 (down), 0 (both) or 1 (up)"
            )
        if self.barrier and self.direction == 0:
            raise ModelError(
                "a barrier has direction 0; give -1 if its condition is to stay positive, 1 if it is to stay negative"
            )

    @property
    def stops(self) -> bool:
        """Whether it is an error that the motion rests at the event and is pushed through."""
        return self.barrier or (self.direction != 0 and self.reset is not None)

    def value(self, model: Model, t, y: State):
        """The condition, checked to be one real number."""
        more = (y.parts or (),) if self.sees_parts else ()
        value = jnp.asarray(self.condition(model, t, y.q, y.v, *more))
        if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
            raise ModelError(
                f"the condition of an event gives {value.dtype}{list(value.shape)}; it has to be one real number that "
                "changes its sign, such as q[0] - limit: a comparison has no root and no derivative"
            )
        return value.astype(y.q.dtype)

    def after(self, model: Model, t, q, v):
        """The state after the reset, in the precision of that before."""
        if self.reset is None:
            return q, v
        new_q, new_v = self.reset(model, t, q, v)
        return jnp.asarray(new_q, q.dtype), jnp.asarray(new_v, v.dtype)


class Log(eqx.Module):
    """What has happened up to a step; all floating point, as a solver's state must be."""

    time: Any
    index: Any
    q_before: Any
    v_before: Any
    q: Any
    v: Any
    count: Any
    #: the events that happened at the end of the last step, or whose condition has been zero since
    fired: Any
    #: whether a terminal event has happened
    ended: Any
    #: the first event within the step just made or at its end, or infinity
    root: Any
    #: whether that is before the end
    inside: Any
    #: whether the motion cannot go on: an event would have to last
    held: Any


def empty_log(num_events: int, cap: int, q, v) -> Log:
    """A log with room for `cap` events."""
    full = lambda *shape: jnp.full(shape, jnp.nan, q.dtype)
    zero = jnp.zeros((), q.dtype)
    qs, vs = full(cap, q.size), full(cap, v.size)
    index, fired = jnp.full((cap,), -1, q.dtype), jnp.zeros(num_events, q.dtype)
    return Log(full(cap), index, qs, vs, qs, vs, zero, fired, zero, zero + jnp.inf, zero, zero)


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
