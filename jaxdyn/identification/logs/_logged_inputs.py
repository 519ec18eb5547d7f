"""The inputs of actuators from a log, as a controller."""

import diffrax
import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.dynamics import AbstractController, Command


class LoggedInputs(AbstractController):
    """The inputs of the actuators that a log holds: `inputs(t) = gain u(t - delay) + offset`.

    `OutputError` simulates with the inputs u of each window in place of `path`, interpolated linearly. A fit without
    this controller takes the inputs as they are. Inputs that a digital controller holds from one row to the next
    appear half a time step late: start from this delay.

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
