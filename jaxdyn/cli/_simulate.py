"""`jaxdyn simulate`: the motion of a robot from a file or from the shelf."""

import argparse
import contextlib
import inspect
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn import robots, simulation
from jaxdyn._errors import ConvergenceError, JaxdynError, ModelError
from jaxdyn.cli._control import read_control
from jaxdyn.cli._info import read_model
from jaxdyn.cli._simulate_arguments import SOLVERS
from jaxdyn.constraints import assemble, described_constraints
from jaxdyn.kinematics import neutral
from jaxdyn.model import Model
from jaxdyn.simulation import (
    SimulationStatus,
    System,
    Trajectory,
    coordinate_names,
    joint_stops,
    simulate,
    to_csv,
    to_npz,
    to_parquet,
    velocity_names,
)

_WRITERS = {".csv": to_csv, ".npz": to_npz, ".parquet": to_parquet}
_PICTURES = (".png", ".pdf", ".svg")


def run(arguments: argparse.Namespace):
    """Reads, simulates, writes and reports; what is wrong with the input raises before anything is computed."""
    _check_files(arguments)
    model = _robot(arguments)
    q = _numbers("--q", arguments.q, coordinate_names(model), neutral(model))
    v = _numbers("--v", arguments.v, velocity_names(model), jnp.zeros(model.nv, model.dtype))
    system, driven = _system(model, arguments)
    q, v = _assembled(system, q, v)
    count = round(arguments.time * arguments.rate)
    ts = jnp.linspace(0.0, arguments.time, max(count, 1) + 1)
    solver = _solver(arguments.solver)
    trajectory, compiling, seconds = _timed(system, (q, v, ts), solver, arguments)
    rows = [*_facts(model, driven, arguments), *_course(trajectory, solver, arguments, compiling, seconds)]
    written = _written(trajectory, arguments)
    try:
        trajectory.checked()
    except ConvergenceError as error:
        kept = f" What it reached is in {', '.join(map(str, written))}." if written else ""
        raise ConvergenceError(f"{error}{kept}") from None
    rows += [("written", str(path)) for path in written]
    width = max(len(label) for label, _ in rows)
    print("\n".join(f"{label:<{width}}  {text}" for label, text in rows))


def _check_files(arguments: argparse.Namespace):
    for path, endings in ((arguments.out, tuple(_WRITERS)), (arguments.plot, _PICTURES)):
        if path is not None and path.suffix.lower() not in endings:
            raise ModelError(f"{path}: ends in {path.suffix!r}, expected one of {', '.join(endings)}")
        if path is not None and not path.parent.is_dir():
            raise ModelError(f"{path}: there is no folder {path.parent}; make it first")


def shelf() -> dict[str, Any]:
    """The bundled robots that need no arguments, by name."""

    def needs_none(make) -> bool:
        return all(p.default is not p.empty for p in inspect.signature(make).parameters.values())

    makers = {name: make for name, make in vars(robots).items() if callable(make) and not name.startswith("_")}
    return {name: make for name, make in sorted(makers.items()) if needs_none(make)}


def _robot(arguments: argparse.Namespace) -> Model:
    makers, path = shelf(), Path(arguments.robot)
    if arguments.robot in makers:
        if arguments.floating_base or arguments.package_dir:
            raise ModelError(f"{path}: --floating-base and --package-dir are for files that end in .urdf")
        return makers[arguments.robot]()
    if not path.suffix and not path.exists():
        raise ModelError(f"{path}: is neither a file nor a robot on the shelf; these are {', '.join(makers)}")
    model = read_model(path, arguments.floating_base, arguments.package_dir)
    if model.links.mass.ndim != 1:
        raise ModelError(f"{path}: is a batch of shape {model.links.mass.shape[:-1]}; save one robot of it")
    return jax.tree.map(jnp.asarray, model)


def _numbers(option: str, given: list[str], names, default) -> Any:
    """A vector from the command line: all entries in order, or some by name."""
    given = [part for text in given for part in text.replace(",", " ").split()]
    if not given:
        return default
    known = [name for name, _ in names]
    values = np.array(default, float)
    named = [part.rpartition("=") for part in given if "=" in part]
    try:
        if not named and len(given) == len(known):
            return jnp.asarray(np.array(given, float), default.dtype)
        if len(named) == len(given):
            for name, _, number in named:
                values[known.index(name)] = float(number)
            return jnp.asarray(values, default.dtype)
    except ValueError:
        pass
    raise ModelError(
        f"{option} {' '.join(given)}: expected {len(known)} numbers, or NAME=NUMBER with some of {', '.join(known)}"
    )


def _system(model: Model, arguments: argparse.Namespace) -> tuple[System, list[str]]:
    if arguments.control is None:
        return System(model), []
    part, driven = read_control(arguments.control, model, arguments.interpolation)
    return System(model, (part,)), driven


def _assembled(system: System, q, v):
    """The nearest state that meets the closures."""
    if not system.model.closures:
        return q, v
    found = assemble(system.model, described_constraints(system.model), q, v).checked()
    return found.q, found.v


def _solver(name: str) -> Any:
    kind = SOLVERS[name]
    if kind == "MomentumForm":
        return simulation.MomentumForm(diffrax.Tsit5())
    return getattr(simulation if hasattr(simulation, kind) else diffrax, kind)()


def _timed(system: System, start, solver, arguments: argparse.Namespace) -> tuple[Trajectory, float, float]:
    """The trajectory, and the seconds to compile and to run."""
    shown = sys.stderr.isatty()
    options: dict[str, Any] = {"dt": arguments.dt, "rtol": arguments.tolerance, "atol": arguments.tolerance}
    if arguments.stops is not None:
        options["events"] = joint_stops(system, arguments.stops)
    if arguments.dt is not None and arguments.tolerance is not None:
        raise ModelError("--dt fixes the steps and --tolerance adapts them; give one of the two")

    def motion(system, start):
        meter = diffrax.TqdmProgressMeter(refresh_steps=100) if shown else diffrax.NoProgressMeter()
        return simulate(system, *start, solver=solver, max_steps=arguments.max_steps, progress_meter=meter, **options)

    with _at_once():
        began = time.perf_counter()
        compiled = eqx.filter_jit(motion).lower(system, start).compile()
        compiling = time.perf_counter() - began
        began = time.perf_counter()
        trajectory = jax.block_until_ready(compiled(system, start))
        return trajectory, compiling, time.perf_counter() - began


@contextlib.contextmanager
def _at_once():
    """An interrupt ends the process here, since Python would hear of it only when the compiled loop has ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _facts(model: Model, driven: list[str], arguments) -> list[tuple[str, str]]:
    moving = len(model.topology.bodies)
    rows = [("robot", f"{model.name or 'robot'}: {moving} joints that move, nq {model.nq}, nv {model.nv}")]
    if model.closures:
        rows.append(("closures", f"{len(model.closures)}, by multipliers"))
    if driven:
        rows.append(("driven", f"{len(driven)} of {model.nv} efforts: {', '.join(driven)}"))
    limited = int(np.isfinite([model.limits.lower, model.limits.upper]).any(axis=0).sum())
    if limited:
        how = (
            f"rebound with restitution {arguments.stops:g}" if arguments.stops is not None else "not kept; see --stops"
        )
        rows.append(("limits", f"{limited} coordinates have some, {how}"))
    if model.actuators:
        rows.append(("actuators", f"{len(model.actuators)} described, not simulated; efforts act on the joints"))
    if model.report:
        rows.append(("notes", f"{len(model.report)} on how the file was read; see jaxdyn info"))
    return rows


def _course(trajectory: Trajectory, solver, arguments, compiling: float, seconds: float) -> list[tuple[str, str]]:
    steps = f"{int(trajectory.num_steps)} of {type(solver).__name__}"
    steps += f", {arguments.dt:g} s each" if arguments.dt else ", adapted"
    return [
        ("time", f"{arguments.time:g} s in {len(trajectory.t)} rows"),
        ("steps", steps),
        ("compiled", f"in {compiling:.2f} s"),
        ("ran", f"in {seconds:.3g} s, {arguments.time / max(seconds, 1e-9):.3g} times real time"),
        _energy(trajectory),
        ("status", SimulationStatus(int(trajectory.status)).name),
    ]


def _energy(trajectory: Trajectory) -> tuple[str, str]:
    """Drift where nothing but gravity acts, and otherwise the change."""
    energy = np.asarray(trajectory.energy)
    kinetic = float(np.max(np.asarray(trajectory.kinetic_energy)))
    free = not np.any(np.asarray(trajectory.action.effort))
    if free:
        drift = float(np.max(np.abs(energy - energy[0])))
        return "energy drift", f"{drift:.2g} J, with kinetic energy up to {kinetic:.3g} J"
    return "energy", f"{energy[0]:.6g} J at the start, {energy[-1]:.6g} J at the end; efforts act"


def _written(trajectory: Trajectory, arguments: argparse.Namespace) -> list[Path]:
    written = []
    if arguments.out is not None:
        extra = {"effort": trajectory.action.effort, "energy": trajectory.energy}
        _WRITERS[arguments.out.suffix.lower()](trajectory, arguments.out, extra=extra, units={"energy": "J"})
        written.append(arguments.out)
    if arguments.plot is not None:
        from jaxdyn.viz import plot_trajectory

        plot_trajectory(trajectory, arguments.plot)
        written.append(arguments.plot)
    return written


def command(arguments: argparse.Namespace) -> int:
    """The exit code: 0, 1 with one line on the standard error, or 130 when interrupted."""
    try:
        run(arguments)
    except JaxdynError as error:
        print(f"jaxdyn simulate: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("jaxdyn simulate: interrupted; nothing half-written is left", file=sys.stderr)
        return 130
    return 0
