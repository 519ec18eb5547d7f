"""Limits of actuators as path constraints of robots whose controls are efforts."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.actuators import AbstractJointActuator, JointMotion
from jaxdyn.trajopt.problem._problem import PathConstraint
from jaxdyn.trajopt.problem._robot import Robot


class _Margins(eqx.Module):
    """The distances of the efforts of a robot to the limits of its actuators."""

    robot: Robot
    actuators: tuple[AbstractJointActuator, ...]
    #: states of the actuators, such as temperatures
    states: tuple

    def __call__(self, t, x, u) -> Float[Array, " rows"]:
        robot, model = self.robot, self.robot.model
        state = robot.to_state(x)
        effort = robot.inputs @ u  # pyright: ignore[reportOptionalOperand]
        is_needed = any(part.uses_acceleration for part in self.actuators)
        a = robot.unknowns(t, x, u) if is_needed else jnp.zeros_like(state.v)
        rows = []
        for part, own in zip(self.actuators, self.states, strict=True):
            view, zero = model.joint(part.joint), jnp.zeros((), x.dtype)
            k = view.v.start
            motion = JointMotion(state.q[view.q.start], state.v[k], a[k], effort[k])
            rate = JointMotion(state.v[k], a[k], zero, zero)
            rows += list(part.requirement(motion, rate, own).margins.values())
        return jnp.stack(rows)


def actuator_limits(robot: Robot, actuators: Sequence[AbstractJointActuator]) -> PathConstraint:
    """The limits of actuators, such as the speed-torque diagrams of motors, as a path constraint on efforts.

    For plans of efforts, which need no states of actuators: the voltages and currents of motors under the efforts u
    stay within their limits (`torque_range` returns the efforts at these limits). Currents follow at once: di/dt is
    neglected. The efforts are those on the robot with the rotors: give the robot `System(...).mounted_model`.

    Arguments:

    * `robot`: a `Robot` whose controls are efforts.
    * `actuators`: each an `AbstractJointActuator` with limits, such as a `DcMotor` with a `voltage_limit`.

    Raises `ModelError` for a robot with other controls, actuators on joints without controls, and actuators without
    limits.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor
    from jaxdyn.trajopt import Robot, actuator_limits

    pendulum = jd.robots.pendulum()
    motor = DcMotor(pendulum.joint_names[0], constant=0.06, resistance=1.2, gear=50.0, voltage_limit=24.0)
    robot = Robot(jd.System(pendulum, (motor,)).mounted_model)
    limits = actuator_limits(robot, (motor,))
    margin = limits.rows(0.0, jnp.array([0.0, 4.0]), jnp.array([20.0]))  # V
    assert jnp.allclose(margin, 24.0 - 1.2 * 20.0 / 3.0 - 12.0)
    ```
    """
    if robot.inputs is None:
        raise ModelError(
            f"the controls of this Robot are the inputs {list(robot.control_names)} of its actuators, whose limits are "
            "bounds: take Bounds.of(robot)"
        )
    model, states = robot.model, []
    driven = set(robot.control_names)
    for part in actuators:
        if part.joint not in driven:
            raise ModelError(
                f"{type(part).__name__} drives the joint {part.joint!r}, whose effort is no control of this Robot; "
                f"expected one of {sorted(driven)}"
            )
        zero = jnp.zeros(model.nv, model.dtype)
        states.append(part.initial(model, model.properties.rest, zero))
        number = JointMotion(*jnp.zeros((4, 1), model.dtype)[:, 0])
        if not part.requirement(number, number, states[-1]).margins:
            raise ModelError(
                f"{type(part).__name__} on joint {part.joint!r} has no limits; give it a limit, such as voltage_limit, "
                "or leave it out"
            )
    return PathConstraint("limits of actuators", _Margins(robot, tuple(actuators), tuple(states)), lower=0.0)
