"""Speed-torque limits of motors."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._types import Array
from jaxdyn.actuators.motors._motor import DcMotor
from jaxdyn.actuators.motors._motor_equations import gear_factor
from jaxdyn.actuators.motors._synchronous import SynchronousMotor


class TorqueRange(NamedTuple):
    """Least and largest effort at a joint, N m or N."""

    low: Array
    high: Array


class MotorRatings(NamedTuple):
    """Corners of the speed-torque diagram at the rotor, without friction; infinite without the limits."""

    #: speed at which the back-EMF is the largest voltage, rad/s
    no_load_speed: Array
    #: torque at rest under the largest voltage, N m
    stall_torque: Array
    #: torque at the largest current, N m; at most the stall torque
    largest_torque: Array
    #: speed up to which the largest torque is available, rad/s
    corner_speed: Array
    #: largest mechanical power, W
    peak_power: Array


def as_dc_motor(motor: DcMotor | SynchronousMotor) -> DcMotor:
    """The motor itself, or the direct-current motor with the same equations."""
    return motor.equivalent if isinstance(motor, SynchronousMotor) else motor


def torque_range(
    motor: DcMotor | SynchronousMotor, v: ArrayLike, *, a: ArrayLike = 0.0, temperature: Array | None = None
) -> TorqueRange:
    """Efforts that a motor can exert at the joint velocity v, from its limits of voltage and current.

    At the rotor, `C_M (-u_max - C_E w) / R - B w <= M <= C_M (u_max - C_E w) / R - B w` and `|C_M i| <= C_M i_max`; at
    the joint `n M`, with the losses of the gear. Above the no-load speed, both limits are braking torques.

    Arguments: the `motor`; v, rad/s or m/s, a number or an array; `a`, the acceleration of the joint, for the inertial
    torque `n J a` of the rotor; `temperature` `(nodes,)` for a motor with a thermal model, by default the reference.

    Returns `(low, high)`, N m or N, infinite without limits. Friction with a state has its steady-state value;
    cogging is neglected.

    ```python
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor, torque_range

    motor = DcMotor("joint", constant=0.06, resistance=1.2, voltage_limit=24.0, current_limit=10.0)
    assert abs(torque_range(motor, 200.0).high - 0.6) < 1e-6  # N m
    ```
    """
    motor = as_dc_motor(motor)
    v = jnp.asarray(v, motor.gear.dtype)
    resistance, constant, back_emf = motor.constants(temperature)
    w = motor.gear * v
    friction = motor.viscous * w + steady_friction(motor, w)
    efforts = []
    for sign in (-1.0, 1.0):
        unlimited = jnp.full_like(w, sign * jnp.inf)
        current = unlimited
        if motor.voltage_limit is not None:
            current = (sign * motor.voltage_limit - back_emf * w) / resistance
        if motor.current_limit is not None:
            current = jnp.clip(current, -motor.current_limit, motor.current_limit)
        transmitted = motor.gear * (constant * current - friction - motor.gear * motor.rotor_inertia * a)
        if motor.uses_acceleration:
            transmitted = gear_factor(motor, transmitted, v) * transmitted
        efforts.append(transmitted)
    low, high = jnp.minimum(*efforts), jnp.maximum(*efforts)
    return TorqueRange(low, high)


def steady_friction(motor: DcMotor, w):
    """Friction torque of the rotor besides the viscous one, at a constant velocity."""
    return jnp.zeros_like(w) if motor.friction is None else motor.friction.steady_torque(w)


def motor_ratings(motor: DcMotor | SynchronousMotor) -> MotorRatings:
    """No-load speed, stall torque, largest torque, corner speed and peak power at the rotor.

    ```python
    from jaxdyn.actuators import DcMotor, motor_ratings

    motor = DcMotor("joint", constant=0.06, resistance=1.2, voltage_limit=24.0, current_limit=10.0)
    assert abs(motor_ratings(motor).corner_speed - 200.0) < 1e-3  # rad/s
    ```
    """
    motor = as_dc_motor(motor)
    resistance, constant, back_emf = motor.constants()
    infinite = jnp.full_like(constant, jnp.inf)
    voltage = infinite if motor.voltage_limit is None else motor.voltage_limit
    limit = infinite if motor.current_limit is None else motor.current_limit
    no_load, stall = voltage / back_emf, constant * voltage / resistance
    largest = jnp.minimum(stall, constant * limit)
    # without a limit of the voltage, the largest torque is available at any speed
    share = jnp.where(jnp.isinf(stall), 0, largest / jnp.where(jnp.isinf(stall), 1, stall))
    corner = no_load * (1 - share)
    best = jnp.maximum(corner, no_load / 2)
    # largest torque or the line from the stall torque to the no-load speed; the latter is half the stall torque at best
    torque = jnp.where(best > corner, stall / 2, largest)
    return MotorRatings(no_load, stall, largest, corner, torque * best)
