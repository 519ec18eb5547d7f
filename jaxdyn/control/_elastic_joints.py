"""Control of joints with elastic transmissions from the motor side, the joint side, and a torque sensor."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_float, as_function
from jaxdyn._types import Array, Config, Float, Scalar, Velocity
from jaxdyn.control._reference import Reference, as_reference, desired_motion, inverse_dynamics
from jaxdyn.kinematics import configuration_velocity
from jaxdyn.model import Model


@runtime_checkable
class ElasticTransmission(Protocol):
    """The interface of an elastic transmission that control laws use, as of `TransmissionSprings`."""

    @property
    def joint(self) -> str:
        """Name of the joint."""
        ...

    @property
    def shafts(self) -> tuple[str, ...]:
        """Names of the joints of the shafts, the motor shaft first."""
        ...

    @property
    def ratio(self) -> Scalar:
        """Turns of the motor shaft per turn of the joint."""
        ...

    def torques(self, model: Model, q: Config, v: Velocity) -> Array:
        """Torques of the springs, the torque on the joint last."""
        ...

    def shaft_angles(self, angle: Scalar, torque: Scalar) -> Array:
        """Angles of the shafts at a joint angle and torque, the motor shaft first."""
        ...


#: `(model, transmission, q, v) -> (position, velocity)` in the units of the joint
Measurement = Callable[[Model, ElasticTransmission, Config, Velocity], tuple[Scalar, Scalar]]


def motor_side(model: Model, transmission: ElasticTransmission, q: Config, v: Velocity) -> tuple[Scalar, Scalar]:
    """Position and velocity of the joint by an encoder on the motor shaft, `theta / N`."""
    shaft = model.joint(transmission.shafts[0])
    return q[shaft.q.start] / transmission.ratio, v[shaft.v.start] / transmission.ratio


def joint_side(model: Model, transmission: ElasticTransmission, q: Config, v: Velocity) -> tuple[Scalar, Scalar]:
    """Position and velocity of the joint by an encoder behind the transmission."""
    joint = model.joint(transmission.joint)
    return q[joint.q.start], v[joint.v.start]


class ElasticJointPD(eqx.Module):
    """PD control of joints with elastic transmissions, with optional feedback of the joint torque.

        u = (tau_d + Kp (y_d - y) + Kd (ydot_d - ydot) + Kt (tau_d - tau) - Ks taudot) / N

    u is the torque on the motor shaft. y is the measured position: with `motor_side`, `y = theta / N` and
    `y_d = theta_d / N`, the motor angle that holds the desired position under the torque `tau_d = M a_d + h` of the
    reference; with `joint_side`, `y = q` and `y_d = q_d`. A torque sensor measures tau; its rate is the rate of the
    spring torques along the motion.

    Motor-side feedback at a constant reference is asymptotically stable for `Kd > 0` and a large enough Kp (Tomei
    1991). Joint-side feedback without torque feedback and damping is unstable for every `Kd > 0`: the sensor is not
    collocated with the motor. Torque feedback `Kt` reduces the inertia of the rotor by the factor `1 + Kt` and `Ks`
    damps the springs (Kircanski, Timcenko and Vukobratovic 1990; Albu-Schaeffer, Ott and Hirzinger 2007).

    Arguments:

    * `model`: the robot with the shafts
    * `transmissions`: the parts of `jaxdyn.actuators.add_elastic_transmission`, one for each elastic joint
    * `reference`: of the coordinates of the model, of which the entries of shafts are ignored; see `desired_motion`
    * `kp`, `kd`: gains at the joint, N m/rad and N m s/rad, a number or one for each transmission
    * `measurement`: `motor_side`, `joint_side`, or another function
      `(model, transmission, q, v) -> (position, velocity)` in the units of the joint
    * `torque_gain` Kt, dimensionless, and `torque_rate_gain` Ks, s
    * `passive`: whether tau_d overcomes the damping, friction and springs of the joints

    Called with `(t, q, v)`, returns efforts `(nv,)`, zero except at the motor shafts.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import Stage, add_elastic_transmission
    from jaxdyn.control import ElasticJointPD

    arm = jd.robots.pendulum()
    robot, springs = add_elastic_transmission(arm, arm.joint_names[0], Stage(80.0, 5000.0, input_inertia=2.5e-4))
    law = ElasticJointPD(robot, (springs,), jnp.array([0.5, 0.0]), kp=400.0, kd=40.0)
    u = law(0.0, jnp.zeros(2), jnp.zeros(2))
    ```
    """

    model: Model
    transmissions: tuple[ElasticTransmission, ...] = eqx.field(converter=tuple)
    reference: Reference = eqx.field(converter=as_reference)
    kp: Float[Array, "..."] = eqx.field(converter=as_float)
    kd: Float[Array, "..."] = eqx.field(converter=as_float)
    measurement: Measurement = eqx.field(converter=as_function, default=motor_side)
    torque_gain: Float[Array, "..."] = eqx.field(converter=as_float, default=0.0)
    torque_rate_gain: Float[Array, "..."] = eqx.field(converter=as_float, default=0.0)
    passive: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        if not self.transmissions:
            raise ModelError(
                "ElasticJointPD has no transmissions; give the parts that add_elastic_transmission returned, or use "
                "GravityPD for joints without elasticity"
            )

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        t = as_float(t)
        (desired, tau_d), (desired_rate, _) = jax.jvp(self._desired, (t,), (jnp.ones_like(t),))
        measured = [self.measurement(self.model, part, q, v) for part in self.transmissions]
        position, velocity = (jnp.stack(x) for x in zip(*measured, strict=True))
        # spring torques alone: the rate of the damper torques depends on accelerations
        tau, tau_rate = jax.jvp(self._spring_torques, (q,), (configuration_velocity(self.model, q, v),))
        u = tau_d + self.kp * (desired - position) + self.kd * (desired_rate - velocity)
        u = u + self.torque_gain * (tau_d - tau) - self.torque_rate_gain * tau_rate
        ratios = jnp.stack([part.ratio for part in self.transmissions])
        shafts = jnp.array([self.model.joint(part.shafts[0]).v.start for part in self.transmissions])
        return jnp.zeros_like(v).at[shafts].set(u / ratios)

    def _spring_torques(self, q):
        still = jnp.zeros(self.model.nv, q.dtype)
        return jnp.stack([part.torques(self.model, q, still)[-1] for part in self.transmissions])

    def _desired(self, t):
        """Measured positions and joint torques of the reference at time t."""
        q, v, a = desired_motion(self.model, self.reference, t)
        effort = inverse_dynamics(self.model, q, v, a, self.passive)
        tau = [effort[self.model.joint(part.joint).v.start] for part in self.transmissions]
        for part, torque in zip(self.transmissions, tau, strict=True):
            angles = part.shaft_angles(q[self.model.joint(part.joint).q.start], torque)
            for name, angle in zip(part.shafts, angles, strict=True):
                q = q.at[self.model.joint(name).q.start].set(angle)
        positions = [self.measurement(self.model, part, q, v)[0] for part in self.transmissions]
        return jnp.stack(positions), jnp.stack(tau)
