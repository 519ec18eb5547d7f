"""Measurements of the actuators of a system: names, units, values, and rates of the measured states."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array
from jaxdyn.dynamics import AbstractActuator, AbstractMeasuredActuator
from jaxdyn.identification.logs import Log
from jaxdyn.simulation import Inputs, SampledInputs, State, System

#: units of rates where they are not the unit over a second
_RATE_UNITS = {"degC": "K/s"}


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


def initial_state(system: System) -> State:
    """The state of a system at rest, with its parts in their initial states."""
    model = system.model
    return system.initial(model.properties.rest, jnp.zeros(model.nv, model.dtype))


def measured_channels(system: System, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and units of the residuals of measurements: of the rate where the measurement is a state."""
    units, states = measurement_units(system), state_measurements(system, initial_state(system).parts)
    rows = [(f"{x} rate", _RATE_UNITS.get(units[x], f"{units[x]}/s")) if x in states else (x, units[x]) for x in names]
    return tuple(name for name, _ in rows), tuple(unit for _, unit in rows)


def check_columns(system: System, logs: Sequence[Log]):
    """Raises `ModelError` for inputs or measurements that the actuators of the system do not have."""
    known, expected = measurement_units(system), system.num_inputs
    has_source = any(isinstance(part, SampledInputs | Inputs) for part in system.parts)
    for log in logs:
        given = 0 if log.inputs is None else log.inputs.shape[1]
        if given != expected and not (log.inputs is None and has_source):
            raise ModelError(
                f"log {log.name!r} has {given} inputs, and the actuators of the system have {expected}; give "
                "Log(..., inputs=) one column for each input, in the order of the parts"
            )
        names = set(log.measured or {})
        unknown = sorted(names - set(known))
        if unknown:
            raise ModelError(
                f"log {log.name!r} measures {unknown[0]!r}, which no actuator of the system has; expected names among "
                f"{', '.join(sorted(known)) or 'none'}"
            )
        if names != set(logs[0].measured or {}):
            raise ModelError(
                f"logs {logs[0].name!r} and {log.name!r} measure different quantities; leave out those that one lacks"
            )


def check_states(system: System, names: Sequence[str]):
    """Raises `ModelError` for parts with states that are not among the measurements `names`."""
    start = initial_state(system)
    known = state_measurements(system, start.parts)
    unknown = {name: jnp.full_like(x, jnp.nan) for name, x in known.items()}
    measured = {name: x for name, x in unknown.items() if name in names}
    given, most = (replace_measured(system, start.parts, values) for values in (measured, unknown))
    for part, own, best in zip(system.parts, given, most, strict=True):
        if _is_replaced(own):
            continue
        remedy = "fit its parameters with OutputError, which simulates the part"
        lacking = [
            name
            for name in (part.state_measurements(own) if isinstance(part, AbstractMeasuredActuator) else ())
            if name not in names
        ]
        if lacking and _is_replaced(best):
            remedy = f"measure {', '.join(lacking)} (Log(..., measured=)), or {remedy}"
        raise ModelError(f"{type(part).__name__} has a state, which no column of the logs holds; {remedy}")


def _is_replaced(state: Any) -> bool:
    """Whether measurements, which are NaN here, determine all entries of a state."""
    return all(bool(np.isnan(np.asarray(x)).all()) for x in jax.tree.leaves(state))
