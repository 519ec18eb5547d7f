"""Parts with a sample rate: their schedules, their states between samples, and the samples that are due."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import core

from jaxdyn._errors import ModelError
from jaxdyn.dynamics import AbstractSampledPart
from jaxdyn.model import Model
from jaxdyn.simulation.system._controllers import SampledInputs
from jaxdyn.simulation.system._state import SampledState, State


def check_timing(part: AbstractSampledPart | SampledInputs):
    """Raises `ModelError` unless `period > 0` and `0 <= delay <= period`, where the values are known."""
    times = (part.period, part.delay)
    if any(isinstance(x, core.Tracer) or not eqx.is_array_like(x) for x in times):
        return
    period, delay = (np.asarray(x) for x in times)
    if not (np.all(period > 0) and np.all(delay >= 0) and np.all(delay <= period)):
        raise ModelError(
            f"{type(part).__name__} has period {period} s and delay {delay} s; expected a positive period and a delay "
            "from 0 to the period; split a longer dead time into whole periods (SampledFeedback(wait=...)) and a rest"
        )


def take_due_sample(model: Model, part: AbstractSampledPart | SampledInputs, t, state: State, x: SampledState):
    """Updates and samples in the order of their times. With the longest delay an update precedes the sample."""
    margin = _time_margin(part, t)

    def update(x):
        is_due = (x.updates < x.samples) & (t + margin >= x.start + x.updates * part.period + part.delay)
        acting = jax.tree.map(lambda a, w: jnp.where(is_due, w, a), x.acting, x.waiting)
        return SampledState(acting, x.waiting, x.start, x.samples, x.updates + is_due), is_due

    def take_sample(waiting):
        if isinstance(part, SampledInputs):
            new = part.sample(model, t, state, waiting)
        else:
            new = part.sample(model, t, state.q, state.v, waiting)
        return jax.tree.map(lambda x, w: jnp.broadcast_to(jnp.asarray(x, w.dtype), w.shape), new, waiting)

    x, first = update(x)
    is_due = t + margin >= x.start + x.samples * part.period
    waiting = jax.lax.cond(is_due, take_sample, lambda w: w, x.waiting)
    x, last = update(SampledState(x.acting, waiting, x.start, x.samples + is_due, x.updates))
    return x, first | is_due | last


def next_instant(part: AbstractSampledPart | SampledInputs, start, t):
    """The first time after t at which a sampled part takes a sample or a sample takes effect."""
    periods_since = lambda first: jnp.floor((t - first + _time_margin(part, t)) / part.period)
    next_after = lambda first: first + jnp.maximum(periods_since(first) + 1, 0) * part.period
    return jnp.minimum(next_after(start), next_after(start + part.delay))


def _time_margin(part: AbstractSampledPart | SampledInputs, t):
    """An instant ahead by at most this time counts as reached: some units of rounding, less than a period."""
    return jnp.minimum(64 * jnp.finfo(t.dtype).eps * jnp.maximum(jnp.abs(t), 1), part.period / 4)
