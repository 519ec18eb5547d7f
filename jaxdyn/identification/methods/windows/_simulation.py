"""Simulation of a window of a log under the measured efforts and inputs."""

from collections.abc import Mapping
from typing import Any, cast

import diffrax
import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._types import Array
from jaxdyn.actuators import Drive
from jaxdyn.identification.logs import has_logged_inputs, with_logged_inputs
from jaxdyn.identification.methods.windows._windows import UniformPath, Windows, WindowSample
from jaxdyn.simulation import Signal, State, System, integrate_fixed_steps, simulate
from jaxdyn.simulation.system import measurements, replace_measured


def check_delays(system: System, lead: float):
    """Raises `ModelError` if a delay exceeds the `lead` seconds of efforts and inputs before the start of a window."""
    for part in system.parts:
        if isinstance(part, Drive) and part.command is None:
            _check_delay("the Drive", part.delay, lead)
        elif has_logged_inputs(part):
            _check_delay("LoggedInputs", cast(Any, part).controller.delay, lead)


def _check_delay(owner: str, delay: Array, lead: float):
    most, least = float(jnp.max(delay)), float(jnp.min(delay))
    if most > lead * (1 + 1e-6) or least < 0:
        raise ModelError(
            f"a delay of {owner} is {least if least < 0 else most:.4g} s; windows hold the efforts of "
            f"{lead:.4g} s before their start, so expected 0 to {lead:.4g}; give Windows a longer lead (and "
            "logs that begin that long before the first window), or keep the delay small by a stronger prior"
        )


def simulate_window(
    system: System,
    windows: Windows,
    sample: WindowSample,
    q0=None,
    v0=None,
    measured_parts: bool = True,
    part_offsets: Mapping[str, Array] | None = None,
) -> tuple[Array, dict[str, Array]]:
    """Configurations `(times, nq)` and measurements `(times,)` by name at the times of one window.

    The simulation starts in the state measured at the start of the window, or in `(q0, v0)`, and, if `measured_parts`,
    with the measured states of the parts plus `part_offsets` by name.
    """
    if q0 is None or v0 is None:
        q0, v0 = sample.q[0], sample.v
    full = _with_measured_sources(system, sample)
    start = full.initial(q0, jnp.asarray(v0), sample.ts[0])
    names = sample.measured or {}
    parts = start.parts
    if measured_parts and names:
        offsets = part_offsets or {}
        parts = replace_measured(full, parts, {name: x[0] + offsets.get(name, 0) for name, x in names.items()})
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
    parts, has_drive = [], False
    for part in system.parts:
        if isinstance(part, Drive) and part.command is None:
            part, has_drive = Drive(part.gain, part.offset, part.delay, efforts), True
        elif has_logged_inputs(part) and sample.inputs is None:
            raise ModelError("the system has LoggedInputs, but a log has no inputs; give Log(..., inputs=)")
        parts.append(part)
    if not has_drive:
        parts.append(Signal(efforts))
    full = System(system.model, tuple(parts), system.motion, system.passive)
    return full if sample.inputs is None else with_logged_inputs(full, _path(sample, sample.inputs))


def _path(sample: WindowSample, values: Any) -> UniformPath:
    return UniformPath(jnp.asarray(sample.start), jnp.asarray(sample.step), jnp.asarray(values))
