"""Drives: efforts at the joints from commands or measured currents."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import core
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_function
from jaxdyn._types import Array, Float, Law
from jaxdyn.actuators._friction import per_coordinate
from jaxdyn.dynamics import AbstractPart, Action
from jaxdyn.model import Model


class Drive(AbstractPart):
    """A drive on every velocity coordinate: `effort(t) = gain * command(t - delay) + offset`.

    `command` is a path over time, a control law `(t, q, v)`, or None for identification, which takes the measured
    efforts of a log as commands; if the log holds currents, the gain is gear ratio times motor constant. A control law
    depends on the present state and cannot be delayed: a delay raises `ModelError`, or gives NaN efforts where the
    delay is traced. Use a sampled part (`jaxdyn.simulation.SampledFeedback`) to delay a control law.
    """

    #: effort per unit of command
    gain: Float[Array, "*batch nv"]
    #: N m or N
    offset: Float[Array, "*batch nv"]
    #: dead time, s
    delay: Float[Array, "*batch nv"]
    command: diffrax.AbstractPath | Law | None = eqx.field(converter=as_function, default=None)

    def __check_init__(self):
        if self._is_law and not isinstance(self.delay, core.Tracer) and np.any(np.asarray(self.delay) != 0):
            raise ModelError(
                f"a Drive delays a path over time, but this command is a law (t, q, v) and the delay {self.delay} s; "
                "give a path, leave the delay out, or use jaxdyn.simulation.SampledFeedback, which delays a law"
            )

    @property
    def _is_law(self) -> bool:
        return self.command is not None and not isinstance(self.command, diffrax.AbstractPath)

    def effort(self, command: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """The effort of a command after the delay, N m or N."""
        return self.gain * command + self.offset

    def inverse(self, effort: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """The command for a given effort, `(effort - offset) / gain`."""
        return (effort - self.offset) / self.gain

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v, state):
        return Action(self.effort(self._delayed_command(t, q, v)))

    def _delayed_command(self, t, q, v):
        if self.command is None:
            raise ModelError("a Drive without a command cannot act; give it a path over time or a law (t, q, v)")
        path = self.command
        if not isinstance(path, diffrax.AbstractPath):
            return jnp.where(self.delay == 0, path(t, q, v), jnp.nan)
        evaluate = lambda s: path.evaluate(jnp.clip(s, path.t0, path.t1))
        return jnp.diagonal(jax.vmap(evaluate)(t - self.delay))


def drive(
    model: Model,
    *,
    gain: ArrayLike = 1.0,
    offset: ArrayLike = 0.0,
    delay: ArrayLike = 0.0,
    command: diffrax.AbstractPath | Law | None = None,
) -> Drive:
    """A `Drive` for all velocity coordinates of a model: `effort(t) = gain * command(t - delay) + offset`.

    Arguments:

    * `model`: the robot
    * `gain`: effort per unit of command, a number or `(nv,)`
    * `offset`: constant effort, N m or N, a number or `(nv,)`
    * `delay`: dead time, s, a number or `(nv,)`
    * `command`: a diffrax path with values `(nv,)`, a function `(t, q, v) -> (nv,)`, or None for identification

    Returns the `Drive`, a part of a `System`. Raises `ShapeError` for an array of another shape, and `ModelError` for a
    function with a delay.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import drive

    model = jd.robots.double_pendulum()
    motors = drive(model, gain=jnp.array([50.0, 30.0]), command=lambda t, q, v: -0.1 * v)
    effort = motors.effort(jnp.array([0.2, 0.1]))
    ```
    """
    expand = lambda name, x: per_coordinate(model, name, x)
    return Drive(expand("gain", gain), expand("offset", offset), expand("delay", delay), command)
