"""A robot with the parts that act on it, as one vector field."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import core
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError, check_instance, check_shape
from jaxdyn._types import Array, Float, PyTree
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
from jaxdyn.simulation.system._state import State


class SampledState(eqx.Module):
    """State of a sampled part between its samples."""

    #: the part's state that `act` receives
    acting: PyTree
    #: the part's state after the last sample, which acts when the delay has passed
    waiting: PyTree
    #: time of the first sample, s
    start: Float[Array, "*batch"]
    #: number of samples taken
    samples: Float[Array, "*batch"]
    #: number of samples that have taken effect
    updates: Float[Array, "*batch"]


class System(eqx.Module):
    """A robot, the parts that act on it, and its motion under them: one vector field with one state.

    With the efforts and wrenches of all parts and, if `passive`, the passive forces of the joints,

        effort = sum of part.act(t, q, v, x).effort + passive_forces(q, v),  a = motion.acceleration(effort, wrenches)

    The numbers of parts and model are leaves, so gains, motor constants and masses have derivatives.

    Arguments:

    * `model`: the robot.
    * `parts`: objects with the contract of `AbstractPart` or `AbstractSampledPart`, such as `Feedback`.
    * `motion`: an `AbstractMotion`. By default the robot moves as the mechanism that its model describes: freely, or
      along `model.closures` if there are any.
    * `passive`: whether damping, friction and springs of the joints act.

    Raises `ModelError` if a part has neither contract, or a sampled part an impossible period or delay.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import Effort, Feedback


    def damping(t, q, v):
        return -0.5 * v


    system = jd.System(jd.robots.pendulum(), (Effort(jnp.array([2.0])), Feedback(damping)))
    state = system.initial(jnp.zeros(1), jnp.array([1.0]))
    assert jnp.allclose(system.action(0.0, state).effort, 1.5)  # N m
    ```
    """

    model: Model
    #: objects with the contract of `AbstractPart` or `AbstractSampledPart`
    parts: tuple[AbstractPart | AbstractSampledPart, ...]
    motion: AbstractMotion
    passive: bool = eqx.field(static=True)

    def __init__(
        self,
        model: Model,
        parts: tuple[PyTree, ...] = (),
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
        """The parts with a sample rate."""
        return tuple(p for p in self.parts if isinstance(p, AbstractSampledPart))

    @property
    def updates_between_steps(self) -> bool:
        """Whether samples or projections change the state between the steps of a solver."""
        return bool(self.sampled) or self.motion.projects

    def initial(self, q, v, t: ArrayLike = 0.0) -> State:
        """The state at configuration q `(nq,)` and velocity v `(nv,)`, with all parts in their initial states."""
        dtype = jnp.result_type(q, v)
        as_number = lambda x: jnp.asarray(x, dtype)
        states = []
        for part in self.parts:
            x = jax.tree.map(as_number, part.initial(self.model, q, v))
            if isinstance(part, AbstractSampledPart):
                x = SampledState(x, x, as_number(t), as_number(0), as_number(0))
            states.append(x)
        return State(q, v, tuple(states) or None)

    def action(self, t, state: State) -> Action:
        """Efforts and wrenches of all parts and of the joints, and the rates of the parts' states."""
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
            rates.append(jax.tree.map(jnp.zeros_like, x) if sampled else _check_rate(part, x, action.rate))
        return Action(effort.astype(v.dtype), external, tuple(rates) or None)

    def rate(self, t, state: State) -> State:
        """The vector field: velocity, acceleration and the rates of the parts' states."""
        action = self.action(t, state)
        a = self.motion.acceleration(self.model, t, state.q, state.v, action.effort, action.external)
        return State(self.motion.velocity(self.model, t, state.q, state.v), a, action.rate)

    def sample(self, t, state: State) -> tuple[State, Array]:
        """The state after the samples that are due at time t, and whether any were due."""
        parts, due = [], jnp.asarray(False)
        for part, x in zip(self.parts, state.parts or (), strict=True):
            if isinstance(part, AbstractSampledPart):
                x, now = _sample(self.model, part, t, state, x)
                due = due | now
            parts.append(x)
        return State(state.q, state.v, tuple(parts) or None), due


def as_system(system: Model | System) -> System:
    """The system itself, or the system of a model without parts."""
    check_instance("system", system, (Model, System), "pass the robot, or jaxdyn.System(model, parts)")
    return System(system) if isinstance(system, Model) else system


def described_motion(model: Model) -> AbstractMotion:
    """The motion along the closures of the model, or the free motion if there are none."""
    constrained: Any = ConstrainedMotion
    return constrained() if model.closures else FreeMotion()


def has_vector_coordinates(model: Model) -> bool:
    """Whether `qdot = v`, so that the configuration manifold is a vector space."""
    return all(has_vector_rate(joint) for joint in model.joints)


def _check_timing(part: AbstractSampledPart):
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


def _check_rate(part: AbstractPart, state, rate):
    """The rate of the part's state, in its shapes and precision."""
    if jax.tree.structure(rate) != jax.tree.structure(state):
        raise ModelError(
            f"{type(part).__name__}: act returns a rate of structure {jax.tree.structure(rate)}, but its state has "
            f"{jax.tree.structure(state)}; return Action(..., rate=the time derivative of the state)"
        )
    return jax.tree.map(lambda r, x: jnp.broadcast_to(jnp.asarray(r, x.dtype), x.shape), rate, state)


def _time_margin(part: AbstractSampledPart, t):
    """An instant ahead by at most this time counts as reached: some units of rounding, less than a period."""
    return jnp.minimum(64 * jnp.finfo(t.dtype).eps * jnp.maximum(jnp.abs(t), 1), part.period / 4)


def _sample(model: Model, part: AbstractSampledPart, t, state: State, x: SampledState):
    """Updates and samples in the order of their times. With the longest delay an update precedes the sample."""
    margin = _time_margin(part, t)

    def update(x):
        is_due = (x.updates < x.samples) & (t + margin >= x.start + x.updates * part.period + part.delay)
        acting = jax.tree.map(lambda a, w: jnp.where(is_due, w, a), x.acting, x.waiting)
        return SampledState(acting, x.waiting, x.start, x.samples, x.updates + is_due), is_due

    def take_sample(waiting):
        new = part.sample(model, t, state.q, state.v, waiting)
        return jax.tree.map(lambda x, w: jnp.broadcast_to(jnp.asarray(x, w.dtype), w.shape), new, waiting)

    x, first = update(x)
    is_due = t + margin >= x.start + x.samples * part.period
    waiting = jax.lax.cond(is_due, take_sample, lambda w: w, x.waiting)
    x, last = update(SampledState(x.acting, waiting, x.start, x.samples + is_due, x.updates))
    return x, first | is_due | last


def next_instant(part: AbstractSampledPart, start, t):
    """The first time after t at which a sampled part takes a sample or a sample takes effect."""
    periods_since = lambda first: jnp.floor((t - first + _time_margin(part, t)) / part.period)
    next_after = lambda first: first + jnp.maximum(periods_since(first) + 1, 0) * part.period
    return jnp.minimum(next_after(start), next_after(start + part.delay))
