"""Measurements of the actuators of a system: names, units, values, and entries of the states of the parts."""

from collections.abc import Mapping, Sequence
from typing import Any

from jaxdyn._types import Array
from jaxdyn.dynamics import AbstractActuator, AbstractMeasuredActuator
from jaxdyn.simulation.system._state import State
from jaxdyn.simulation.system._system import System


def measurement_units(system: System) -> dict[str, str]:
    """The unit of each measurement that the actuators of a system have."""
    units: dict[str, str] = {}
    for part in system.parts:
        if isinstance(part, AbstractMeasuredActuator):
            units |= part.measurement_units
    return units


def measurements(system: System, t, state: State) -> dict[str, Array]:
    """The values of all measurements of the actuators of a system."""
    inputs, used, values = system.inputs(t, state), 0, {}
    for part, x in zip(system.parts, state.parts or (), strict=True):
        if not isinstance(part, AbstractActuator):
            continue
        own = inputs[used : used + part.num_inputs]
        used += part.num_inputs
        if isinstance(part, AbstractMeasuredActuator):
            values |= part.measurements(system.mounted_model, t, state.q, state.v, x, own)
    return values


def state_measurements(system: System, parts: Sequence[Any] | None) -> dict[str, Array]:
    """The measurements that are entries of the states of the parts; applied to their rates, the rates."""
    values: dict[str, Array] = {}
    for part, x in zip(system.parts, parts or (), strict=True):
        if isinstance(part, AbstractMeasuredActuator):
            values |= part.state_measurements(x)
    return values


def replace_measured(system: System, parts: Sequence[Any] | None, values: Mapping[str, Array]) -> tuple[Any, ...]:
    """The states of the parts with measured values in place of the entries that `values` names."""
    return tuple(
        part.replace_measured(x, values) if isinstance(part, AbstractMeasuredActuator) else x
        for part, x in zip(system.parts, parts or (), strict=True)
    )
