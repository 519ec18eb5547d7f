"""The inputs of actuators from a log, as a controller."""

from typing import Any

import diffrax
import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.dynamics import AbstractController, Command
from jaxdyn.simulation import Inputs, System


class LoggedInputs(AbstractController):
    """The inputs of the actuators that a log holds: `inputs(t) = gain u(t - delay) + offset`.

    `OutputError` simulates with the inputs u of each window in place of `path`, interpolated linearly; fits without
    simulation apply the delay to second order, by the derivatives of the log. A fit without this controller takes the
    inputs as they are. Inputs that a digital controller holds from one row to the next appear half a time step late:
    start from this delay.

    Arguments:

    * `gain`, `offset`: calibration of the logged inputs, for example of an amplifier, numbers or `(inputs,)`.
    * `delay`: time from a logged input until it acts, s.
    * `path`: a path over time instead of the log.

    Every number is a leaf: `parts[Inputs].controller.delay` selects the delay for a fit.

    ```python
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor
    from jaxdyn.identification import LoggedInputs
    from jaxdyn.simulation import Inputs

    model = jd.robots.pendulum()
    motor = DcMotor(model.joint_names[0], constant=0.05, resistance=1.0, gear=20.0)
    system = jd.System(model, (motor, Inputs(LoggedInputs(delay=1e-3))))
    ```
    """

    gain: Float[Array, "*inputs"] = eqx.field(converter=as_float, default=1.0)
    offset: Float[Array, "*inputs"] = eqx.field(converter=as_float, default=0.0)
    #: s
    delay: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)
    path: diffrax.AbstractPath | None = None

    def initial(self, model, q, v):
        return None

    def command(self, model, t, state, memory):
        if self.path is None:
            raise ModelError(
                "LoggedInputs has no log outside of a fit; simulate with LoggedInputs(path=...) or other inputs"
            )
        return Command(self.gain * jnp.asarray(self.path.evaluate(t - self.delay)) + self.offset)


def has_logged_inputs(part: Any) -> bool:
    """Whether a part takes the inputs of the actuators from a log."""
    return isinstance(part, Inputs) and isinstance(part.controller, LoggedInputs) and part.controller.path is None


def with_logged_inputs(system: System, path: diffrax.AbstractPath) -> System:
    """The system with the logged inputs of its actuators: in its `LoggedInputs`, or as they are."""
    logged = [has_logged_inputs(part) for part in system.parts]
    if not any(logged):
        return System(system.model, (*system.parts, Inputs(path)), system.motion, system.passive)
    insert = lambda part: eqx.tree_at(lambda p: p.controller.path, part, path, is_leaf=lambda x: x is None)
    parts = tuple(insert(part) if own else part for part, own in zip(system.parts, logged, strict=True))
    return System(system.model, parts, system.motion, system.passive)
