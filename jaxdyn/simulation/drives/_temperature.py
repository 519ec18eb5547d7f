"""Limits of temperature as events."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.actuators import MotorState
from jaxdyn.simulation.drives._joint_actuators import joint_actuators
from jaxdyn.simulation.events import Event
from jaxdyn.simulation.system import System


class _TemperatureExcess(eqx.Module):
    """Temperature of one node of a motor above a limit."""

    limit: Float[Array, "*batch"] = eqx.field(converter=as_float)
    part: int = eqx.field(static=True)
    node: int = eqx.field(static=True)

    def __call__(self, model, t, q, v, parts):
        return parts[self.part].temperature[self.node] - self.limit


def temperature_limit(
    system: System,
    joint: str,
    limit: ArrayLike,
    *,
    node: int = 0,
    terminal: bool = True,
    reset: Callable[..., tuple] | None = None,
) -> Event:
    """The event that a motor reaches a temperature, for `simulate(events=...)`.

    Arguments:

    * `system`: the system, whose order of parts the event uses
    * `joint`: name of the joint that the motor drives
    * `limit`: temperature on the scale of the thermal model, a leaf
    * `node`: 0 for the winding, -1 for the last node
    * `terminal`: whether the event ends the simulation
    * `reset`: `(model, t, q, v, parts) -> (q, v, parts)`, for example to switch a controller off

    Raises `ModelError` if no motor with a thermal model drives the joint.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor, ThermalModel
    from jaxdyn.simulation import temperature_limit

    model = jd.robots.pendulum()
    motor = DcMotor(model.joint_names[0], constant=0.05, resistance=1.2, gear=20.0, thermal=ThermalModel(0.5, 4.0))
    system = jd.System(model, (motor,))
    events = (temperature_limit(system, model.joint_names[0], 40.0),)
    start, ts = jnp.zeros(1), jnp.linspace(0.0, 1.0, 3)
    run = jd.simulate(system, start, start, ts, inputs=jnp.array([8.0]), events=events)
    assert run.status == jd.SimulationStatus.EVENT
    ```
    """
    model = system.model
    found = [x for x in joint_actuators(system, model) if x.actuator.joint == joint]
    zeros = jnp.zeros(model.nq, model.dtype), jnp.zeros(model.nv, model.dtype)
    states = [x.actuator.initial(model, *zeros) for x in found]
    if len(found) != 1 or not isinstance(states[0], MotorState) or states[0].temperature is None:
        kinds = [type(x.actuator).__name__ for x in found]
        raise ModelError(
            f"joint {joint!r} is driven by {kinds or 'no actuator'} without a temperature; expected one motor with "
            "thermal=ThermalModel(...)"
        )
    condition = _TemperatureExcess(limit, found[0].part, node)
    return Event(condition, reset, terminal=terminal, direction=1, sees_parts=True, resets_parts=reset is not None)
