"""Quantities of a motor that sensors measure: current, rotor velocity and temperatures."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.actuators.motors._motor_state import MotorFlow, MotorState

if TYPE_CHECKING:
    from jaxdyn.actuators.motors._motor import DcMotor

_NODES = ("temperature", "housing_temperature")


def measurement_units_of_motor(motor: "DcMotor") -> dict[str, str]:
    """`current`, `rotor_velocity` and the temperatures of the nodes, each with the joint, and their units."""
    nodes = _NODES[: 0 if motor.thermal is None else motor.thermal.num_nodes]
    units = {"current": "A", "rotor_velocity": "rad/s"} | dict.fromkeys(nodes, "degC")
    return {f"{name}.{motor.joint}": unit for name, unit in units.items()}


def measurements_of_motor(motor: "DcMotor", flow: MotorFlow, state: MotorState | None) -> dict[str, Float[Array, ""]]:
    """The values of the measurements from the quantities of the motor."""
    values = {f"current.{motor.joint}": flow.current, f"rotor_velocity.{motor.joint}": flow.velocity}
    return values | state_measurements_of_motor(motor, state)


def state_measurements_of_motor(motor: "DcMotor", state: MotorState | None) -> dict[str, Float[Array, ""]]:
    """The current, if it is a state, and the temperatures."""
    values = {}
    if state is not None and state.current is not None:
        values[f"current.{motor.joint}"] = state.current
    if state is not None and state.temperature is not None:
        values |= {f"{name}.{motor.joint}": state.temperature[k] for k, name in enumerate(_nodes(state))}
    return values


def replace_measured_of_motor(motor: "DcMotor", state: MotorState | None, values: Mapping[str, Array]):
    """The state with the measured current and temperatures."""
    known = {name: jnp.asarray(values.get(name, x)) for name, x in state_measurements_of_motor(motor, state).items()}
    if state is None or not known:
        return state
    nodes = [known[f"{name}.{motor.joint}"] for name in _nodes(state)]
    return MotorState(known.get(f"current.{motor.joint}"), jnp.stack(nodes) if nodes else None, state.friction)


def _nodes(state: MotorState) -> tuple[str, ...]:
    return () if state.temperature is None else _NODES[: state.temperature.shape[-1]]
