"""State of a motor, and its electrical and mechanical quantities."""

from typing import NamedTuple

import equinox as eqx

from jaxdyn._types import Array, Float, PyTree


class MotorState(eqx.Module):
    """State of a motor; quantities that its model does not have are None."""

    #: A
    current: Float[Array, "*batch"] | None = None
    #: temperatures of the winding and, with two nodes, of the housing
    temperature: Float[Array, "*batch nodes"] | None = None
    #: state of the rotor friction
    friction: PyTree = None


class MotorFlow(NamedTuple):
    """Electrical and mechanical quantities of a motor at one instant, on the side of the rotor."""

    #: u after saturation, V
    voltage: Array
    #: i, A
    current: Array
    #: rate of the current, A/s; zero without inductance
    current_rate: Array
    #: angular velocity of the rotor, rad/s
    velocity: Array
    #: electromagnetic torque `C_M i`, N m
    air_gap_torque: Array
    #: torque of bearings and friction against the rotation, N m
    friction_torque: Array
    #: torque of the magnets, N m
    cogging_torque: Array
    #: heat in the winding `R i^2`, W
    copper_loss: Array
    #: rate of the state of the rotor friction
    friction_rate: PyTree
