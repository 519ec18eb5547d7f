"""Simulates a robot for `jaxdyn simulate` and writes its trajectory."""

import argparse
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from diffrax import AbstractSolver
from jax import Array

from jaxdyn import simulation
from jaxdyn._errors import ConvergenceError, ModelError
from jaxdyn.cli.robots import read_robot
from jaxdyn.cli.simulate._command import SOLVERS
from jaxdyn.cli.simulate._control_table import Control, read_control
from jaxdyn.cli.simulate._options import COORDINATE, count_rows, read_numbers
from jaxdyn.constraints import assemble, described_constraints
from jaxdyn.kinematics import neutral
from jaxdyn.model import Model
from jaxdyn.simulation import (
    SimulationStatus,
    State,
    System,
    Trajectory,
    coordinate_names,
    effort_names,
    joint_stops,
    simulate,
    to_csv,
    to_npz,
    to_parquet,
    velocity_names,
)

_WRITERS = {".csv": to_csv, ".npz": to_npz, ".parquet": to_parquet}
_FIGURES = (".png", ".pdf", ".svg")


def simulate_file(arguments: argparse.Namespace):
    """Reads the robot, simulates, writes and reports. Invalid input raises before anything is computed."""
    arguments = read_numbers(arguments)
    _check_files(arguments)
    model = read_robot(arguments)
    count, q, v = read_start(model, arguments)
    system, control = _system(model, arguments)
    q, v = _close_loops(system, jnp.asarray(q, model.dtype), jnp.asarray(v, model.dtype))
    ts = jnp.linspace(0.0, arguments.time, count + 1)
    solver = _solver(arguments.solver)
    trajectory, compiling, seconds = _simulate_and_time(system, (q, v, ts), solver, arguments)
    rows = [
        *_describe_setup(model, control, arguments),
        *_describe_saturation(trajectory, control),
        *_describe_run(trajectory, solver, arguments, compiling, seconds),
    ]
    written = _write_results(trajectory, arguments)
    try:
        trajectory.checked()
    except ConvergenceError as error:
        kept = f" The trajectory up to there is in {', '.join(map(str, written))}." if written else ""
        raise ConvergenceError(f"{error}{kept}") from None
    rows += [("written", str(path)) for path in written]
    width = max(len(label) for label, _ in rows)
    print("\n".join(f"{label:<{width}}  {text}" for label, text in rows))


def read_start(model: Model, arguments: argparse.Namespace) -> tuple[int, np.ndarray, np.ndarray]:
    """The number of output intervals and the initial state that the arguments give."""
    count = count_rows(arguments.time, arguments.rate, model.nq + model.nv)
    q = _vector("--q", arguments.q, coordinate_names(model), np.asarray(neutral(model), float))
    v = _vector("--v", arguments.v, velocity_names(model), np.zeros(model.nv))
    return count, q, v


def _check_files(arguments: argparse.Namespace):
    files = (
        (arguments.out, tuple(_WRITERS)),
        (arguments.plot, _FIGURES),
        (arguments.gif, (".gif", ".mp4")),
        (arguments.html, (".html",)),
    )
    for path, endings in files:
        if path is not None and path.suffix.lower() not in endings:
            raise ModelError(f"{path}: ends in {path.suffix!r}, expected one of {', '.join(endings)}")
        if path is not None and not path.parent.is_dir():
            raise ModelError(f"{path}: there is no folder {path.parent}; create it first")


def _vector(option: str, given: list[str], names: Sequence[tuple[str, str]], default: np.ndarray) -> np.ndarray:
    """A vector from the command line, given as all entries in order or as some by name."""
    given = [part for text in given for part in text.replace(",", " ").split()]
    if not given:
        return default
    known = [name for name, _ in names]
    named = [part.rpartition("=") for part in given if "=" in part]
    if not named and len(given) == len(known):
        return np.array([COORDINATE.parse(x, f"{option} {name}") for name, x in zip(known, given, strict=True)])
    if len(named) == len(given) and all(name in known for name, _, _ in named):
        values = default.copy()
        for name, _, number in named:
            values[known.index(name)] = COORDINATE.parse(number, f"{option} {name}")
        return values
    raise ModelError(
        f"{option} {' '.join(given)[:200]}: expected {len(known)} numbers, or NAME=NUMBER with some of "
        f"{', '.join(known)}"
    )


def _system(model: Model, arguments: argparse.Namespace) -> tuple[System, Control | None]:
    """The robot with its table of efforts or of inputs, and the table."""
    if arguments.control is None:
        return System(model), None
    control = read_control(arguments.control, model, arguments.interpolation)
    return System(model, (control.actuators, control.inputs)), control


def _close_loops(system: System, q: Array, v: Array) -> tuple[Array, Array]:
    """The nearest state that satisfies the closures."""
    if not system.model.closures:
        return q, v
    found = assemble(system.model, described_constraints(system.model), q, v).checked()
    return found.q, found.v


def _solver(name: str) -> AbstractSolver:
    kind = SOLVERS[name]
    if kind == "CanonicalMomenta":
        return simulation.CanonicalMomenta(diffrax.Tsit5())
    return getattr(simulation if hasattr(simulation, kind) else diffrax, kind)()


def _simulate_and_time(
    system: System, start: tuple[Array, Array, Array], solver: AbstractSolver, arguments: argparse.Namespace
) -> tuple[Trajectory, float, float]:
    """The trajectory, and the times to compile and to run, s."""
    is_terminal = sys.stderr.isatty()
    options: dict[str, Any] = {"dt": arguments.dt, "rtol": arguments.tolerance, "atol": arguments.tolerance}
    if arguments.stops is not None:
        options["events"] = joint_stops(system, arguments.stops)

    def rollout(system, start):
        meter = diffrax.TqdmProgressMeter(refresh_steps=100) if is_terminal else diffrax.NoProgressMeter()
        return simulate(system, *start, solver=solver, max_steps=arguments.max_steps, progress_meter=meter, **options)

    with _default_interrupt():
        start_time = time.perf_counter()
        compiled = eqx.filter_jit(rollout).lower(system, start).compile()
        compiling = time.perf_counter() - start_time
        start_time = time.perf_counter()
        trajectory = jax.block_until_ready(compiled(system, start))
        return trajectory, compiling, time.perf_counter() - start_time


@contextlib.contextmanager
def _default_interrupt() -> Iterator[None]:
    """Lets an interrupt end the process: Python's own handler would run only after the compiled loop has ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _describe_setup(model: Model, control: Control | None, arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """Rows of the report on the robot and its inputs."""
    moving = len(model.topology.bodies)
    rows = [("robot", f"{model.name or 'robot'}: {moving} moving joints, nq {model.nq}, nv {model.nv}")]
    if model.closures:
        rows.append(("closures", f"{len(model.closures)}, enforced by Lagrange multipliers"))
    if control is not None:
        what = f"{len(model.actuators)} actuators" if control.commands_actuators else f"{model.nv} efforts"
        rows.append(("driven", f"{len(control.names)} of {what}: {', '.join(control.names)}"))
    limited = int(np.isfinite([model.limits.lower, model.limits.upper]).any(axis=0).sum())
    if limited:
        how = f"rebound with restitution {arguments.stops:g}" if arguments.stops is not None else "ignored; see --stops"
        rows.append(("limits", f"on {limited} coordinates, {how}"))
    if model.actuators and (control is None or not control.commands_actuators):
        idle = "no inputs are given" if control is None else "the table gives efforts of the joints"
        rows.append(("actuators", f"{len(model.actuators)} in the file, idle: {idle}; see --control"))
    if model.report:
        rows.append(("notes", f"{len(model.report)} on how the file was read; run jaxdyn info"))
    return rows


def _describe_saturation(trajectory: Trajectory, control: Control | None) -> list[tuple[str, str]]:
    """A row of the report on inputs and efforts that reach their limits."""
    if control is None:
        return []
    system, model = trajectory.system, trajectory.system.mounted_model
    states = State(trajectory.q, trajectory.v, trajectory.parts)
    inputs = jax.vmap(system.inputs)(trajectory.t, states)
    saturated = np.asarray(jax.vmap(lambda u: control.actuators.is_saturated(model, u))(inputs))
    names = [actuator.name for actuator in model.actuators]
    names = names if control.commands_actuators else [name for name, _ in effort_names(model)]
    found = [f"{name} in {count} rows" for name, count in zip(names, saturated.sum(axis=0), strict=True) if count]
    return [("saturated", ", ".join(found) or "never: all inputs within their ranges and efforts within their limits")]


def _describe_run(
    trajectory: Trajectory, solver: AbstractSolver, arguments: argparse.Namespace, compiling: float, seconds: float
) -> list[tuple[str, str]]:
    """Rows of the report on the simulation."""
    steps = f"{int(trajectory.num_steps)} of {type(solver).__name__}"
    steps += f", {arguments.dt:g} s each" if arguments.dt else ", adaptive"
    return [
        ("time", f"{arguments.time:g} s in {len(trajectory.t)} rows"),
        ("steps", steps),
        ("compiled", f"in {compiling:.2f} s"),
        ("ran", f"in {seconds:.3g} s, {arguments.time / max(seconds, 1e-9):.3g} times real time"),
        _energy(trajectory),
        ("status", str(SimulationStatus(int(trajectory.status)))),
    ]


def _energy(trajectory: Trajectory) -> tuple[str, str]:
    """The drift if only gravity acts, otherwise the energy at both ends."""
    energy = np.asarray(trajectory.energy)
    kinetic = float(np.max(np.asarray(trajectory.kinetic_energy)))
    if not np.any(np.asarray(trajectory.action.effort)):
        drift = float(np.max(np.abs(energy - energy[0])))
        return "energy drift", f"{drift:.2g} J, with kinetic energy up to {kinetic:.3g} J"
    return "energy", f"{energy[0]:.6g} J at the start, {energy[-1]:.6g} J at the end; efforts do work"


def _write_results(trajectory: Trajectory, arguments: argparse.Namespace) -> list[Path]:
    """Writes the trajectory and the figure that the arguments ask for; returns their paths."""
    written = []
    if arguments.out is not None:
        extra = {"effort": trajectory.action.effort, "energy": trajectory.energy}
        _WRITERS[arguments.out.suffix.lower()](trajectory, arguments.out, extra=extra, units={"energy": "J"})
        written.append(arguments.out)
    if arguments.plot is not None:
        from jaxdyn.viz import plot_trajectory

        plot_trajectory(trajectory, arguments.plot)
        written.append(arguments.plot)
    if arguments.gif is not None:
        from jaxdyn.viz import animate

        written.append(animate(trajectory, arguments.gif))
    if arguments.html is not None:
        from jaxdyn.viz import to_html

        written.append(to_html(trajectory, arguments.html))
    return written
