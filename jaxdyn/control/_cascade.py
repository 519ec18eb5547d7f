"""Cascaded loops of servo drives: position, velocity and current, in continuous time or sampled."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError, check_count
from jaxdyn._numerics import as_float, as_function, optional_float
from jaxdyn._types import Array, Float, PyTree
from jaxdyn.control._reference import Reference, as_reference, desired_motion
from jaxdyn.dynamics import AbstractController, Command
from jaxdyn.kinematics import difference
from jaxdyn.model import Model

#: a number, or one number for each loop
Gain = Float[Array, "..."]


def proportional_integral(
    kp: Array, ki: Array, error: Array, integral: Array, feedforward: ArrayLike = 0.0, limit: Array | None = None
) -> tuple[Array, Array]:
    """Output of a PI law, `clip(feedforward + kp e + ki z, -limit, limit)`, and the rate of its integral z.

    `zdot = e - (w - clip(w)) / kp`, with w the output before the limit: while the output is limited, the integral
    follows it instead of winding up (back-calculation; Astrom and Hagglund 2006, section 3.5).
    """
    wanted = jnp.asarray(feedforward) + kp * error + ki * integral
    if limit is None:
        return wanted, error
    output = jnp.clip(wanted, -limit, limit)
    is_zero = kp == 0
    return output, error - jnp.where(is_zero, 0, (wanted - output) / jnp.where(is_zero, 1, kp))


def motor_currents(state) -> Float[Array, " motors"]:
    """The currents of all parts whose state has a current, in the order of the parts."""
    currents = [getattr(x, "current", None) for x in state.parts or ()]
    found = [x for x in currents if x is not None]
    if not found:
        raise ModelError(
            "no part of the system has a current in its state; give the motors an inductance, or give "
            "CascadedControl(..., measure=...), a function of the state that returns the currents"
        )
    return jnp.stack(found)


class ServoControl(AbstractController):
    """Position and velocity loops: a proportional law, and a proportional-integral law below it.

        w_r = k_f v_d + k_p (q_d (-) q),    y = K_a a_d + K_v (w_r - v) + K_i integral of (w_r - v)

    The output y is the current, torque or voltage that drives the joints, bounded by `limit` with anti-windup
    (`proportional_integral`). It commands motors whose `input_quantity` is the current or the torque, and is the
    reference of the current loop of `CascadedControl`.

    Arguments, each gain a number or one number for each joint, in units of y (A, N m or V):

    * `reference`: configuration `(nq,)` or any other reference of `desired_motion`.
    * `position_gain`: k_p, 1/s.
    * `velocity_gain`, `velocity_integral`: K_v, y s/rad, and K_i, y/rad.
    * `acceleration_gain`: K_a, y s^2/rad, of the feedforward of the acceleration; `(J + I/n^2) n / C_M` for a current.
    * `velocity_feedforward`: k_f, 1 for the whole velocity of the reference, 0 for none.
    * `limit`: largest y, or None.
    * `joints`: names of the joints, one velocity coordinate each, in the order of the inputs; by default all
      coordinates.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor
    from jaxdyn.control import ServoControl

    pendulum = jd.robots.pendulum()
    motor = DcMotor(pendulum.joint_names[0], constant=0.05, resistance=1.0, gear=20.0, input_quantity="torque")
    servo = ServoControl(jnp.array([0.5]), position_gain=5.0, velocity_gain=20.0, velocity_integral=50.0)
    ts = jnp.array([0.0, 6.0])
    path = jd.simulate(jd.System(pendulum, (motor,)), jnp.zeros(1), jnp.zeros(1), ts, inputs=servo)
    assert abs(path.q[-1, 0] - 0.5) < 1e-3  # rad
    ```
    """

    reference: Reference = eqx.field(converter=as_reference)
    position_gain: Gain = eqx.field(converter=as_float, kw_only=True)
    velocity_gain: Gain = eqx.field(converter=as_float, kw_only=True)
    velocity_integral: Gain = eqx.field(converter=as_float, default=0.0, kw_only=True)
    acceleration_gain: Gain = eqx.field(converter=as_float, default=0.0, kw_only=True)
    velocity_feedforward: Gain = eqx.field(converter=as_float, default=1.0, kw_only=True)
    limit: Gain | None = eqx.field(converter=optional_float, default=None, kw_only=True)
    joints: tuple[str, ...] | None = eqx.field(static=True, default=None, kw_only=True)

    def initial(self, model, q, v):
        """The integral of the velocity error, one entry for each joint."""
        return jnp.zeros_like(v[self._columns(model)])

    def command(self, model, t, state, memory):
        target, k = desired_motion(model, self.reference, t), self._columns(model)
        wanted = self.velocity_feedforward * target.v[k]
        wanted = wanted + self.position_gain * difference(model, state.q, target.q)[k]
        output, rate = proportional_integral(
            self.velocity_gain,
            self.velocity_integral,
            wanted - state.v[k],
            memory,
            self.acceleration_gain * target.a[k],
            self.limit,
        )
        return Command(output, rate)

    def _columns(self, model: Model):
        if self.joints is None:
            return slice(None)
        views = [model.joint(name) for name in self.joints]
        wrong = [x.name for x in views if x.v.stop - x.v.start != 1]
        if wrong:
            raise ModelError(f"ServoControl: joints {wrong} have not one velocity coordinate; a loop controls one")
        return jnp.array([x.v.start for x in views])


class CascadeMemory(eqx.Module):
    """Memory of a `CascadedControl`."""

    #: integral of the velocity errors
    servo: PyTree
    #: integral of the current errors, A s
    integral: Array
    #: reference of the current loop, held between samples of the servo, A; None if it has the same rate
    held: Array | None = None
    #: number of samples since the last sample of the servo
    count: Array | None = None


class CascadedControl(AbstractController):
    """Cascaded current, velocity and position loops of motors: voltages from a `ServoControl` and a PI current loop.

        u = K_c (i_r - i) + K_ci integral of (i_r - i),    |u| <= voltage_limit,    i_r from the servo

    Both integrals have anti-windup. The controller runs in continuous time, `Inputs(control)`, or sampled,
    `SampledInputs(control, period=...)`, where `period` is the sample time of the current loop and the servo is sampled
    once in `ratio` samples.

    Arguments:

    * `servo`: the outer loops, whose output is the reference of the currents, A.
    * `current_gain`, `current_integral`: K_c, V/A, and K_ci, V/(A s); `L / T` and `R / T` give the time constant T.
    * `voltage_limit`: V, or None.
    * `measure`: function of the state of the system that returns the currents, by default those of all motors.
    * `ratio`: number of samples of the current loop for one of the servo; other than 1 for `SampledInputs` only.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor
    from jaxdyn.control import CascadedControl, ServoControl

    pendulum = jd.robots.pendulum()
    motor = DcMotor(pendulum.joint_names[0], constant=0.05, resistance=1.0, inductance=2e-3, gear=20.0)
    servo = ServoControl(jnp.array([0.5]), position_gain=5.0, velocity_gain=20.0, velocity_integral=50.0, limit=15.0)
    control = CascadedControl(servo, current_gain=2.0, current_integral=1e3, voltage_limit=24.0)
    path = jd.simulate(jd.System(pendulum, (motor,)), jnp.zeros(1), jnp.zeros(1), jnp.array([0.0, 6.0]), inputs=control)
    assert abs(path.q[-1, 0] - 0.5) < 1e-3  # rad
    ```
    """

    servo: ServoControl
    current_gain: Gain = eqx.field(converter=as_float, kw_only=True)
    current_integral: Gain = eqx.field(converter=as_float, default=0.0, kw_only=True)
    voltage_limit: Gain | None = eqx.field(converter=optional_float, default=None, kw_only=True)
    measure: Callable[[Any], Array] = eqx.field(converter=as_function, default=motor_currents, kw_only=True)
    ratio: int = eqx.field(static=True, default=1, kw_only=True)

    def __check_init__(self):
        check_count("ratio", self.ratio)

    def initial(self, model, q, v):
        memory = self.servo.initial(model, q, v)
        if self.ratio == 1:
            return CascadeMemory(memory, jnp.zeros_like(memory))
        return CascadeMemory(memory, jnp.zeros_like(memory), jnp.zeros_like(memory), jnp.zeros((), memory.dtype))

    def command(self, model, t, state, memory):
        servo = self.servo.command(model, t, state, memory.servo)
        wanted, servo_rate, held, count = servo.inputs, servo.rate, memory.held, memory.count
        if self.ratio != 1:
            is_due = count == 0
            held = wanted = jnp.where(is_due, wanted, held)
            # the integral of the servo advances by the time between its own samples
            servo_rate = jax.tree.map(lambda x: jnp.where(is_due, self.ratio * x, 0), servo_rate)
            count = jnp.where(count + 1 >= self.ratio, 0, count + 1)
        error = wanted - self.measure(state)
        voltage, rate = proportional_integral(
            self.current_gain, self.current_integral, error, memory.integral, limit=self.voltage_limit
        )
        if self.ratio == 1:
            return Command(voltage, CascadeMemory(servo_rate, rate))
        still = jnp.zeros_like(held), jnp.zeros_like(count)
        return Command(
            voltage,
            CascadeMemory(servo_rate, rate, *still),
            CascadeMemory(memory.servo, memory.integral, held, count),
        )
