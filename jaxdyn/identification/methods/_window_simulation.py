"""Simulation of a window of a log under the measured efforts and inputs."""

from collections.abc import Mapping
from typing import Any, cast

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._types import Array
from jaxdyn.actuators import Drive
from jaxdyn.dynamics import AbstractActuator, AbstractMeasuredActuator
from jaxdyn.identification.logs import LoggedInputs
from jaxdyn.identification.methods._windows import UniformPath, Windows, WindowSample
from jaxdyn.simulation import Inputs, Signal, State, System, integrate_fixed_steps, simulate


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


def replace_measured(system: System, parts: tuple[Any, ...], values: Mapping[str, Array]) -> tuple[Any, ...]:
    """The states of the parts with measured values in place of the entries that `values` names."""
    return tuple(
        part.replace_measured(x, values) if isinstance(part, AbstractMeasuredActuator) else x
        for part, x in zip(system.parts, parts, strict=True)
    )


def check_delays(system: System, lead: float):
    """Raises `ModelError` if a delay exceeds the `lead` seconds of efforts and inputs before the start of a window."""
    for part in system.parts:
        if isinstance(part, Drive) and part.command is None:
            _check_delay("the Drive", part.delay, lead)
        elif _is_logged(part):
            _check_delay("LoggedInputs", cast(Any, part).controller.delay, lead)


def _check_delay(owner: str, delay: Array, lead: float):
    most, least = float(jnp.max(delay)), float(jnp.min(delay))
    if most > lead * (1 + 1e-6) or least < 0:
        raise ModelError(
            f"a delay of {owner} is {least if least < 0 else most:.4g} s; windows hold the efforts of "
            f"{lead:.4g} s before their start, so expected 0 to {lead:.4g}; give Windows a longer lead (and "
            "logs that begin that long before the first window), or keep the delay small by a stronger prior"
        )


def _is_logged(part: Any) -> bool:
    return isinstance(part, Inputs) and isinstance(part.controller, LoggedInputs) and part.controller.path is None


def simulate_window(
    system: System, windows: Windows, sample: WindowSample, q0=None, v0=None, measured_parts: bool = True
) -> tuple[Array, dict[str, Array]]:
    """Configurations `(times, nq)` and measurements `(times,)` by name at the times of one window.

    The simulation starts in the state measured at the start of the window, or in `(q0, v0)`, and with the measured
    states of the parts if `measured_parts`.
    """
    if q0 is None or v0 is None:
        q0, v0 = sample.q[0], sample.v
    full = _with_measured_sources(system, sample)
    start = full.initial(q0, jnp.asarray(v0), sample.ts[0])
    names = sample.measured or {}
    parts = start.parts
    if measured_parts and names:
        parts = replace_measured(full, parts or (), {name: x[0] for name, x in names.items()})
    path = _simulate_rows(full, windows, sample, q0, v0, parts)
    if not names:
        return path.q, {}
    values = jax.vmap(lambda t, state: measurements(full, t, state))(sample.ts, path)
    return path.q, {name: values[name] for name in names}


def _simulate_rows(full: System, windows: Windows, sample: WindowSample, q0, v0, parts) -> State:
    """The states at the times of one window."""
    ts = jnp.asarray(sample.ts)
    steps = (ts.shape[0] - 1) * windows.every * windows.substeps
    adjoint, dt = diffrax.ForwardMode(), sample.step / windows.substeps
    if not full.updates_between_steps:
        path = integrate_fixed_steps(
            full, q0, v0, ts[0], dt, steps, solver=windows.solver, adjoint=adjoint, parts=parts
        )
        return jax.tree.map(lambda x: x[:: steps // (len(ts) - 1)], path)
    options = {"solver": windows.solver, "adjoint": adjoint, "max_steps": steps + 16}
    run = simulate(full, q0, jnp.asarray(v0), ts, dt=dt, parts=parts, **options)
    return State(run.q, run.v, run.parts)


def _with_measured_sources(system: System, sample: WindowSample) -> System:
    """The system under the measured efforts, through its drive, and the measured inputs of its actuators."""
    efforts = _path(sample, sample.efforts)
    parts, has_drive, has_source = [], False, False
    for part in system.parts:
        if isinstance(part, Drive) and part.command is None:
            part, has_drive = Drive(part.gain, part.offset, part.delay, efforts), True
        elif _is_logged(part):
            part = eqx.tree_at(lambda p: p.controller.path, part, _input_path(sample), is_leaf=lambda x: x is None)
            has_source = True
        parts.append(part)
    if not has_drive:
        parts.append(Signal(efforts))
    if sample.inputs is not None and not has_source:
        parts.append(Inputs(_input_path(sample)))
    return System(system.model, tuple(parts), system.motion, system.passive)


def _input_path(sample: WindowSample) -> UniformPath:
    if sample.inputs is None:
        raise ModelError("the system has LoggedInputs, but a log has no inputs; give Log(..., inputs=)")
    return _path(sample, sample.inputs)


def _path(sample: WindowSample, values: Any) -> UniformPath:
    return UniformPath(jnp.asarray(sample.start), jnp.asarray(sample.step), jnp.asarray(values))
