"""A robot with all that acts on it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import core

from jaxdyn._errors import ModelError, check_shape
from jaxdyn.constraints import ConstrainedMotion
from jaxdyn.dynamics import (
    AbstractMotion,
    AbstractPart,
    AbstractSampledPart,
    Action,
    FreeMotion,
    passive_forces,
)
from jaxdyn.joints import has_vector_rate
from jaxdyn.model import Model
from jaxdyn.simulation._state import State


class Held(eqx.Module):
    """State of a sampled part between samples: what acts, what waits, and how many instants have passed."""

    acting: Any
    waiting: Any
    #: time of the first sample, s
    start: Any
    #: numbers of samples taken and taken effect
    samples: Any
    updates: Any


class System(eqx.Module):
    """A robot, the parts that act on it, and how it moves under them: one vector field with one state.

    With the efforts and wrenches of all parts and, if `passive`, those of the joints themselves,

        effort = sum of part.act(t, q, v, x).effort + passive_forces(q, v),  a = motion.acceleration(effort, wrenches)

    Parts are any objects with the contract of `AbstractPart` or `AbstractSampledPart`; they and the model are leaves
    like any others, so that gains, motor constants and masses have derivatives. By default a robot moves as the
    mechanism that its model describes: freely, or where there are `model.closures` along these.
    """

    model: Model
    #: objects with the contract of `AbstractPart` or `AbstractSampledPart`
    parts: tuple[Any, ...]
    motion: AbstractMotion
    #: whether damping, friction and springs of the joints act
    passive: bool = eqx.field(static=True)

    def __init__(
        self,
        model: Model,
        parts: tuple[Any, ...] = (),
        motion: AbstractMotion | None = None,
        passive: bool = True,
    ):
        self.model = model
        self.parts = parts
        self.motion = described_motion(model) if motion is None else motion
        self.passive = passive

    def __check_init__(self):
        for part in self.parts:
            if not isinstance(part, AbstractPart | AbstractSampledPart):
                raise ModelError(
                    f"a part of a System is {type(part).__name__}, which is neither an AbstractPart nor an "
                    "AbstractSampledPart; wrap a function of (t, q, v) into jaxdyn.simulation.Feedback"
                )
            if isinstance(part, AbstractSampledPart):
                _check_timing(part)

    @property
    def sampled(self) -> tuple[AbstractSampledPart, ...]:
        """The parts that have a sample rate."""
        return tuple(p for p in self.parts if isinstance(p, AbstractSampledPart))

    def initial(self, q, v, t=0.0) -> State:
        """The state of rest of all parts, at configuration q and velocity v."""
        dtype = jnp.result_type(q, v)
        number = lambda x: jnp.asarray(x, dtype)
        states = []
        for part in self.parts:
            x = jax.tree.map(number, part.initial(self.model, q, v))
            if isinstance(part, AbstractSampledPart):
                x = Held(x, x, number(t), number(0), number(0))
            states.append(x)
        return State(q, v, tuple(states) or None)

    def action(self, t, state: State) -> Action:
        """Efforts and wrenches of everything that acts, and the rates of the parts' states."""
        model, q, v = self.model, state.q, state.v
        effort = passive_forces(model, q, v) if self.passive else jnp.zeros_like(v)
        external, rates = None, []
        for part, x in zip(self.parts, state.parts or (), strict=True):
            sampled = isinstance(part, AbstractSampledPart)
            action = part.act(model, t, q, v, x.acting if sampled else x)
            if action.effort is not None:
                effort = effort + check_shape(f"effort of {type(part).__name__}", action.effort, (model.nv,))
            if action.external is not None:
                name = f"external of {type(part).__name__}"
                wrench = check_shape(name, action.external, (model.num_links, 6)).astype(v.dtype)
                external = wrench if external is None else external + wrench
            rates.append(jax.tree.map(jnp.zeros_like, x) if sampled else _rate(part, x, action.rate))
        return Action(effort.astype(v.dtype), external, tuple(rates) or None)

    def rate(self, t, state: State) -> State:
        """Velocity, acceleration and the rates of the parts' states: the vector field."""
        action = self.action(t, state)
        a = self.motion.acceleration(self.model, t, state.q, state.v, action.effort, action.external)
        return State(self.motion.velocity(self.model, t, state.q, state.v), a, action.rate)

    def sample(self, t, state: State) -> tuple[State, Any]:
        """The state after the samples that are due at time t, and whether there were any."""
        parts, due = [], jnp.asarray(False)
        for part, x in zip(self.parts, state.parts or (), strict=True):
            if isinstance(part, AbstractSampledPart):
                x, now = _sample(self.model, part, t, state, x)
                due = due | now
            parts.append(x)
        return State(state.q, state.v, tuple(parts) or None), due


def as_system(system: Model | System) -> System:
    """A system, which a model alone is."""
    return System(system) if isinstance(system, Model) else system


def described_motion(model: Model) -> AbstractMotion:
    """That of the tree, or along the closures which the model describes."""
    along: Any = ConstrainedMotion
    return along() if model.closures else FreeMotion()


def has_vector_coordinates(model: Model) -> bool:
    """Whether `qdot = v`, so that configurations need no care."""
    return all(has_vector_rate(joint) for joint in model.joints)


def _check_timing(part: AbstractSampledPart):
    """Refuses times that are known and make no sense; `0 <= delay <= period` and `period > 0`."""
    times = (part.period, part.delay)
    if any(isinstance(x, core.Tracer) or not eqx.is_array_like(x) for x in times):
        return
    period, delay = (np.asarray(x) for x in times)
    if not (np.all(period > 0) and np.all(delay >= 0) and np.all(delay <= period)):
        raise ModelError(
            f"{type(part).__name__} has period {period} s and delay {delay} s; expected a positive period and a delay "
            "from 0 to the period, longer dead times being whole periods to wait and a rest"
        )


def _rate(part, state, rate):
    if jax.tree.structure(rate) != jax.tree.structure(state):
        raise ModelError(
            f"{type(part).__name__}: act returns a rate of structure {jax.tree.structure(rate)}, but its state has "
            f"{jax.tree.structure(state)}; return Action(..., rate=the time derivative of the state)"
        )
    return jax.tree.map(lambda r, x: jnp.broadcast_to(jnp.asarray(r, x.dtype), x.shape), rate, state)


def _early(part: AbstractSampledPart, t):
    """An instant so near ahead counts as reached: some units of rounding, and less than a period."""
    return jnp.minimum(64 * jnp.finfo(t.dtype).eps * jnp.maximum(jnp.abs(t), 1), part.period / 4)


def _sample(model: Model, part: AbstractSampledPart, t, state: State, held: Held):
    """Updates and samples in the order of their times; with the longest delay an update comes first."""
    early = _early(part, t)

    def updated(h):
        due = (h.updates < h.samples) & (t + early >= h.start + h.updates * part.period + part.delay)
        acting = jax.tree.map(lambda a, w: jnp.where(due, w, a), h.acting, h.waiting)
        return Held(acting, h.waiting, h.start, h.samples, h.updates + due), due

    def sampled(waiting):
        new = part.sample(model, t, state.q, state.v, waiting)
        return jax.tree.map(lambda x, w: jnp.broadcast_to(jnp.asarray(x, w.dtype), w.shape), new, waiting)

    held, first = updated(held)
    due = t + early >= held.start + held.samples * part.period
    waiting = jax.lax.cond(due, sampled, lambda w: w, held.waiting)
    held, last = updated(Held(held.acting, waiting, held.start, held.samples + due, held.updates))
    return held, first | due | last


def next_instant(part: AbstractSampledPart, start, t):
    """The first time after t at which a sampled part samples or takes effect."""
    passed = lambda first: jnp.floor((t - first + _early(part, t)) / part.period)
    after = lambda first: first + jnp.maximum(passed(first) + 1, 0) * part.period
    return jnp.minimum(after(start), after(start + part.delay))
