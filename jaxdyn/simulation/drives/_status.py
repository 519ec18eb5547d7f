"""Direction of the power in the transmissions of a system."""

import jax.numpy as jnp

from jaxdyn._status import Status
from jaxdyn._types import Array, Int
from jaxdyn.simulation.drives._joint_actuators import joint_actuators
from jaxdyn.simulation.drives._loads import power_flows
from jaxdyn.simulation.system import State, System


class TransmissionStatus(Status):
    """Direction of the power between an actuator and its joint."""

    DRIVING = 0, "the actuator drives the joint, or transmits no power"
    BACKDRIVEN = 1, "the joint drives the actuator"
    LOCKED = 2, "a self-locking gear holds the joint"


def transmission_status(system: System, t, state: State) -> Int[Array, " actuators"]:
    """The `TransmissionStatus` of each actuator at one state, under the inputs of the system's controller.

    A gear with a reverse efficiency of zero is self-locking. It is `LOCKED` while the joint is slower than the `width`
    of the transition between the directions of power. Where such a gear is `BACKDRIVEN`, it decelerates the joint to
    rest. Raises `ModelError` for actuators without the contract `AbstractJointActuator`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor
    from jaxdyn.simulation import Inputs, TransmissionStatus, transmission_status

    model = jd.robots.pendulum()
    worm = {"efficiency": 0.45, "reverse_efficiency": 0.0}
    motor = DcMotor(model.joint_names[0], constant=0.05, resistance=1.0, gear=80.0, **worm)
    system = jd.System(model, (motor, Inputs(jnp.zeros(1))))
    status = transmission_status(system, 0.0, system.initial(jnp.ones(1), jnp.zeros(1)))
    assert status[0] == TransmissionStatus.LOCKED
    ```
    """
    rows = []
    actuators = joint_actuators(system, system.model)
    for x, flow in zip(actuators, power_flows(system, t, state), strict=True):
        moving = jnp.where(flow.mechanical < 0, TransmissionStatus.BACKDRIVEN, TransmissionStatus.DRIVING)
        rows.append(jnp.where(x.actuator.holds(state.v[x.v]), TransmissionStatus.LOCKED, moving))
    return jnp.stack(rows) if rows else jnp.zeros(0, int)
