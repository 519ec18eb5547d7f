"""Events: instants at which a guard function of the state changes sign."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_function
from jaxdyn._types import Array, Config, PyTree, Scalar, Velocity
from jaxdyn.dynamics import AbstractMotion
from jaxdyn.model import Model
from jaxdyn.simulation.system import State


class AbstractReset(eqx.Module):
    """A reset map of an event that checks itself against the motion of the robot.

    A plain function `(model, t, q, v) -> (q, v)` is a reset map as well, and is not checked.
    """

    @abc.abstractmethod
    def check(self, motion: AbstractMotion) -> None:
        """Raises `ModelError` if the map does not hold for a robot with this motion."""

    @abc.abstractmethod
    def __call__(self, model: Model, t, q, v) -> tuple[Array, Array]:
        """The state `(q, v)` after the event, from the state before it."""


class Event(eqx.Module):
    """An instant at which `condition(model, t, q, v)`, a smooth real function, passes through zero.

    At this instant the state becomes `(q, v) = reset(model, t, q, v)`. The time is the root of the condition along the
    simulated motion, with the derivative `dt/dp = -(dg/dp) / (dg/dt)`. The motion after the event depends on the time
    through the reset and through the remaining time (the saltation matrix, e.g. Kong, Payne, Zhu and Johnson 2024,
    "Saltation matrices").

    Arguments:

    * `condition`: the guard `(model, t, q, v) -> scalar`. A function, or a module whose leaves are parameters.
    * `reset`: `(model, t, q, v) -> (q, v)`, such as `Rebound`; None leaves the state unchanged.
    * `terminal`: whether the event ends the simulation.
    * `direction`: 1 if only upward passages through zero count, -1 if only downward ones, 0 for both.
    * `barrier`: whether the condition has to stay positive (direction -1) or negative (direction 1). Events are
      instantaneous: resting contact is not modelled. A robot that rests against a barrier and is pushed on, or that
      starts beyond it, ends the simulation with status `HELD`; so does a robot that a reset with a direction leaves at
      rest where the motion would pass.
    * `sees_parts`: whether the condition receives the states of the system's parts, a tuple, as a fifth argument.
    * `resets_parts`: whether the reset is `(model, t, q, v, parts) -> (q, v, parts)` and may change these states, as a
      current limiter, a clutch or the reset of an integrator does.

    Raises `ModelError` for a direction other than -1, 0 and 1, and for a barrier with direction 0.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd


    def angle(model, t, q, v):
        return q[0]


    start, ts = jnp.array([0.5]), jnp.array([0.0, 2.0])
    events = (jd.Event(angle, terminal=True),)
    swing = jd.simulate(jd.robots.pendulum(), start, jnp.zeros(1), ts, events=events)
    assert swing.status == jd.SimulationStatus.EVENT
    assert abs(swing.events.time[0] - 0.509) < 1e-3  # a quarter of the period, s
    ```
    """

    condition: Callable[..., Scalar] = eqx.field(converter=as_function)
    reset: Callable[..., tuple[Config, Velocity] | tuple[Config, Velocity, PyTree]] | None = eqx.field(
        converter=as_function, default=None
    )
    terminal: bool = eqx.field(static=True, default=False)
    direction: int = eqx.field(static=True, default=0)
    barrier: bool = eqx.field(static=True, default=False)
    sees_parts: bool = eqx.field(static=True, default=False)
    resets_parts: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if self.direction not in (-1, 0, 1):
            raise ModelError(f"the direction of an event is {self.direction!r}; expected -1 (down), 0 (both) or 1 (up)")
        if self.barrier and self.direction == 0:
            raise ModelError(
                "a barrier has direction 0; give -1 if its condition has to stay positive, 1 if it has to stay negative"
            )

    def check(self, motion: AbstractMotion) -> None:
        """Raises `ModelError` if the reset map does not hold for a robot with this motion."""
        if isinstance(self.reset, AbstractReset):
            self.reset.check(motion)

    @property
    def is_stop(self) -> bool:
        """Whether a motion that rests at the event and is pushed through it is an error."""
        return self.barrier or (self.direction != 0 and self.reset is not None)

    def value(self, model: Model, t, y: State):
        """The condition at a state; raises `ModelError` unless the condition is one real number."""
        more = (y.parts or (),) if self.sees_parts else ()
        value = jnp.asarray(self.condition(model, t, y.q, y.v, *more))
        if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
            raise ModelError(
                f"the condition of an event returns {value.dtype}{list(value.shape)}; expected one real number that "
                "changes sign, such as q[0] - limit: a comparison has no root and no derivative"
            )
        return value.astype(y.q.dtype)

    def apply_reset(self, model: Model, t, q, v, parts):
        """The state after the reset, in the precision of the state before it."""
        if self.reset is None:
            return q, v, parts
        reset: Callable[..., Any] = self.reset
        if self.resets_parts:
            new_q, new_v, new_parts = reset(model, t, q, v, parts or ())
            new_parts = new_parts or None
        else:
            (new_q, new_v), new_parts = reset(model, t, q, v), parts
        if jax.tree.structure(new_parts) != jax.tree.structure(parts):
            raise ModelError(
                f"the reset of an event returns states of parts with structure {jax.tree.structure(new_parts)}; "
                f"expected {jax.tree.structure(parts)}"
            )
        new_parts = jax.tree.map(lambda x, s: jnp.broadcast_to(jnp.asarray(x, s.dtype), s.shape), new_parts, parts)
        return jnp.asarray(new_q, q.dtype), jnp.asarray(new_v, v.dtype), new_parts
