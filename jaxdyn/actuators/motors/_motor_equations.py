"""Equations of a motor besides its simulation: canonical form, inverse, and balance of power."""

from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn.actuators.contract import CanonicalForm, JointMotion, PowerFlow, Requirement, transmitted_fraction
from jaxdyn.actuators.motors._motor_state import MotorFlow, MotorState

if TYPE_CHECKING:
    from jaxdyn.actuators.motors._motor import DcMotor


def canonical_form_of_motor(motor: "DcMotor", q, v, state: MotorState | None) -> CanonicalForm:
    """The affine form of a motor without gear losses, with the states i (with an inductance) or none (20.65, 20.67)."""
    reason = (
        "its gear has losses" if motor.uses_acceleration else
        "it has a thermal model" if motor.thermal is not None else
        "its friction has a state" if motor.has_friction_state else
        f"its input is the {motor.input_quantity}" if motor.input_quantity != "voltage" else
        "its voltage is given" if motor.voltage is not None else None
    )  # fmt: skip
    if reason is not None:
        raise ModelError(
            f"the motor on joint {motor.joint!r} has no canonical form xdot = C x + f M + d u: {reason}; leave this "
            "option out, or linearise the System"
        )
    resistance, constant, back_emf = motor.constants()
    n, speed = motor.gear, motor.gear * v
    friction, _, cogging = motor.friction_and_cogging(q, v, None)
    effort = n * (cogging - friction)
    inertia = n**2 * motor.rotor_inertia
    if motor.inductance is None:
        none = jnp.zeros(0, inertia.dtype)
        effort = effort - n * constant * back_emf * speed / resistance
        return CanonicalForm(inertia, effort, n * constant / resistance, none, none, none)
    current = jnp.reshape(jnp.asarray(state.current if isinstance(state, MotorState) else state), (1,))
    rate = -(resistance * current + back_emf * speed) / motor.inductance
    zero = jnp.zeros_like(inertia)
    return CanonicalForm(
        inertia, effort + n * constant * current[0], zero, rate, jnp.zeros_like(rate), (1 / motor.inductance)[None]
    )


def gear_factor(motor: "DcMotor", torque, v):
    """Torque behind the gear over the torque before it."""
    one = jnp.ones_like(motor.gear)
    forward = one if motor.efficiency is None else motor.efficiency
    reverse = one if motor.reverse_efficiency is None else motor.reverse_efficiency
    return transmitted_fraction(torque, v, forward, reverse, motor.width)


def required_current(motor: "DcMotor", motion: JointMotion, state: MotorState):
    """`i = (M + J n a + B n v + friction - cogging) / C_M`, with M from the joint effort and the losses of the gear."""
    inertial = motor.gear**2 * motor.rotor_inertia * motion.a
    tau = motion.effort - inertial
    transmitted = tau / gear_factor(motor, tau, motion.v) if motor.uses_acceleration else tau
    friction, _, cogging = motor.friction_and_cogging(motion.q, motion.v, state.friction)
    _, constant, _ = motor.constants(state.temperature)
    return ((transmitted + inertial) / motor.gear + friction - cogging) / constant


def requirement_of_motor(motor: "DcMotor", motion: JointMotion, rate: JointMotion, state: MotorState | None):
    """Current, its rate by forward mode, and the command; temperatures and the state of the friction are as given."""
    if motor.voltage is not None:
        raise ModelError(
            f"the motor on joint {motor.joint!r} has its own voltage and takes no input; leave `voltage` out to "
            "compute the voltage that a motion requires"
        )
    given = MotorState() if state is None else state
    current = required_current(motor, motion, given)
    resistance, constant, back_emf = motor.constants(given.temperature)
    emf = back_emf * motor.gear * motion.v
    drop = resistance * current
    if motor.inductance is not None:
        given = MotorState(current, given.temperature, given.friction)
        rates = motor.state_rate(given, motor.flow(motion.q, motion.v, given, emf)) or given
        frozen = MotorState(None, given.temperature, given.friction)
        along = MotorState(None, rates.temperature, rates.friction)
        _, current_rate = eqx.filter_jvp(lambda m, s: required_current(motor, m, s), (motion, frozen), (rate, along))
        drop = drop + motor.inductance * current_rate
    voltage = drop + emf
    margins = {}
    if motor.voltage_limit is not None:
        margins["voltage"] = motor.voltage_limit - jnp.abs(voltage)
    if motor.current_limit is not None:
        # with an inductance, the limiter bounds the voltage across the winding too
        largest = jnp.maximum(jnp.abs(current), jnp.abs(drop) / resistance)
        margins["current"] = motor.current_limit - largest
    command = {"voltage": voltage, "current": current, "torque": current * motor.gear * constant}
    known = {f"current.{motor.joint}": current, f"rotor_velocity.{motor.joint}": motor.gear * motion.v}
    return Requirement(command[motor.input_quantity][None], None if state is None else given, margins, known)


def power_flow_of_motor(motor: "DcMotor", flow: MotorFlow, v, a, state: MotorState | None) -> PowerFlow:
    """Balance of power from the electrical and mechanical quantities of the motor."""
    scale, w, i = motor.phase_factor, flow.velocity, flow.current
    _, _, back_emf = motor.constants(None if state is None else state.temperature)
    magnetic = jnp.zeros_like(i) if motor.inductance is None else scale * motor.inductance * i * flow.current_rate
    friction = motor.friction_heat(state, flow)
    torque = flow.air_gap_torque + flow.cogging_torque - flow.friction_torque
    inertial = motor.gear**2 * motor.rotor_inertia * a
    transmitted = motor.gear * torque - inertial
    tau = gear_factor(motor, transmitted, v) * transmitted if motor.uses_acceleration else transmitted
    stored = magnetic + inertial * v - flow.cogging_torque * w + flow.friction_torque * w - friction
    return PowerFlow(
        scale * flow.voltage * i,
        flow.copper_loss,
        (scale * back_emf * i - flow.air_gap_torque) * w,
        friction,
        (transmitted - tau) * v,
        stored,
        tau * v,
    )
