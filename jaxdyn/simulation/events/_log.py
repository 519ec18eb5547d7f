"""The log of events that a simulation carries from step to step."""

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Float


class Log(eqx.Module):
    """The events up to a step. All leaves are floating-point, as the state of a solver must be."""

    time: Float[Array, " cap"]
    index: Float[Array, " cap"]
    q_before: Float[Array, "cap nq"]
    v_before: Float[Array, "cap nv"]
    q: Float[Array, "cap nq"]
    v: Float[Array, "cap nv"]
    #: number of entries in use
    count: Float[Array, ""]
    #: for each event: it happened at the end of the last step, or its condition has been zero since
    fired: Float[Array, " events"]
    #: a terminal event has happened
    ended: Float[Array, ""]
    #: time of the first event within the last step or at its end, otherwise infinity
    root: Float[Array, ""]
    #: that event is before the end of the step
    inside: Float[Array, ""]
    #: the motion cannot continue, because an event would have to last
    held: Float[Array, ""]


def empty_log(num_events: int, cap: int, q: Array, v: Array) -> Log:
    """A log with room for `cap` entries."""
    unused = lambda *shape: jnp.full(shape, jnp.nan, q.dtype)
    zero = jnp.zeros((), q.dtype)
    qs, vs = unused(cap, q.size), unused(cap, v.size)
    index, fired = jnp.full((cap,), -1, q.dtype), jnp.zeros(num_events, q.dtype)
    return Log(unused(cap), index, qs, vs, qs, vs, zero, fired, zero, zero + jnp.inf, zero, zero)


def append_entry(
    log: Log, happened: jax.Array, t: jax.Array, index: int, before: tuple[Array, Array], after: tuple[Array, Array]
) -> Log:
    """The log with one more entry, if the event happened and there is room; states are `(q, v)`."""
    row = jnp.where(happened, log.count, log.time.shape[0]).astype(int)
    put = lambda rows, x: rows.at[row].set(x, mode="drop")
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
