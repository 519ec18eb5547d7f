"""Channels of the measurements of actuators, and checks of the columns and states that logs hold."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.dynamics import AbstractMeasuredActuator
from jaxdyn.identification.logs import Log
from jaxdyn.simulation import Inputs, SampledInputs, State, System
from jaxdyn.simulation.system import measurement_units, replace_measured, state_measurements

#: units of rates where they are not the unit over a second
_RATE_UNITS = {"degC": "K/s", "": "1/s"}


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
