"""The double pendulum of `benchmarks.identification`: simulated against measured motion.

The error is the root mean square of positions over consecutive windows of half a second, rad. Each window is simulated
from its measured position and low-pass filtered velocity, with the commanded efforts.
"""

import time
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from benchmarks import _identification_mujoco as mujoco_fits
from benchmarks._identification_logs import resample, smooth
from jaxdyn.actuators import add_rotor, drive, joint_friction
from jaxdyn.identification import (
    Candidate,
    CrossValidation,
    FreeStart,
    Linear,
    Log,
    MeasuredStart,
    OutputError,
    Physical,
    Windows,
    cross_validate,
    fold_runs,
    simulation_error,
)

FITTED, HELD_OUT = ("143339", "143601"), ("143524", "143704", "143747", "144115")
LINEAR = ("links[*].inertial", "joints[Joint1].armature", "joints[*].damping", "joints[*].friction")
SELECTION = (
    "links[Link?].inertial",
    "links[Joint2_rotor].inertial",
    "joints[Joint1].armature",
    "joints[*].damping",
    "joints[*].friction",
    "joints[*].friction_velocity",
    "parts[Drive].delay",
    "parts[JointFriction].stribeck",
    "parts[JointFriction].stribeck_velocity",
)
#: windows of the error
JUDGED = Windows(length=0.5, stride=0.5)
CUTOFFS = (8.0, 12.0, 25.0)


def prior_model(folder: Path) -> jd.Model:
    """The published parameters, with the counter-rotating rotor of the elbow on the upper arm."""
    model = jd.load_urdf(folder / "double_pendulum_C1.urdf")
    rotor, gear = 6.287203962819607e-05, 6.0
    armature = model.properties.armature.at[0].set(gear**2 * rotor)
    model = eqx.tree_at(lambda m: m.properties.armature, model, armature)
    model = eqx.tree_at(lambda m: m.properties.friction_velocity, model, jnp.full(2, 0.05))
    return add_rotor(model, "Joint2", gear=-gear, inertia=rotor, mass=1e-3)


def read_log(folder: Path, name: str, cutoff: float, accelerations: bool = False) -> Log:
    """One log: measured positions and filtered velocities, or all signals filtered, with accelerations."""
    columns = np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)
    commands = slice(13, 15) if name.startswith("swingup") else slice(9, 11)
    t, q, u = resample(columns[:, 0], 500, columns[:, 1:3], columns[:, commands])
    v = np.gradient(smooth(q, cutoff, 500), 1 / 500, axis=0)
    if not accelerations:
        return Log(t - t[0], q, v, None, u, name)
    inner = slice(50, -50)  # transients of the filter at the ends
    a = np.gradient(v, 1 / 500, axis=0)
    return Log(*(x[inner] for x in (t, smooth(q, cutoff, 500), v, a, smooth(u, cutoff, 500))), name)


def read_runs(folder: Path, cutoff: float, names: tuple[str, ...], accelerations: bool = False) -> list[Log]:
    """The logs of several excitation runs."""
    return [read_log(folder, f"sysid_20230629-{name}", cutoff, accelerations) for name in names]


def window_error(system, logs) -> float:
    """Root mean square error over both joints of a set of logs, rad."""
    return float(np.sqrt(np.mean(simulation_error(system, logs, JUDGED) ** 2)))


def candidates(folder: Path, free: bool = True) -> dict[str, Candidate]:
    """Output error with measured and, if `free`, with free starts, each with three priors."""
    model = prior_model(folder)
    parts = (drive(model, delay=0.01), joint_friction(model, stribeck=0.02, stribeck_velocity=0.3, width=0.05))
    windows = Windows(length=0.5, stride=0.25, every=10)
    found = {}
    # residuals are some 0.01 rad for measured starts and 0.001 rad for free starts; both parts of the prior
    # measure relative changes
    starts = (("measured starts", MeasuredStart(), 0.02), ("free starts", FreeStart(), 0.005))
    for label, start, size in starts if free else starts[:1]:
        method = OutputError(windows, Physical(reweight=0, max_steps=20, rtol=1e-5), start)
        candidate = Candidate(jd.System(model, parts), SELECTION, method, weights=np.full(2, 1 / size))
        priors = candidate.with_priors((100.0, 100.0, 1000.0), (100.0, 1000.0, 1000.0))
        found |= {f"{label}, {name}": one for name, one in priors.items()}
    return found


def select_candidate(folder: Path, cutoffs=CUTOFFS, free: bool = True) -> tuple[float, CrossValidation]:
    """The cut-off frequency and candidate with the least cross-validation error over the runs of the fit."""

    def error(result, logs):
        return sum(log.num_samples * window_error(result.system, [log]) ** 2 for log in logs), sum(
            log.num_samples for log in logs
        )

    found = {}
    for cutoff in cutoffs:
        folds = fold_runs(read_runs(folder, cutoff, FITTED))
        found[cutoff] = cross_validate(
            candidates(folder, free), folds, error=error, tell=lambda line: print(line, flush=True)
        )
        print(f"double pendulum, velocities filtered at {cutoff:g} Hz", found[cutoff], sep="\n", flush=True)
    cutoff = min(found, key=lambda c: min(found[c].scores))
    return cutoff, found[cutoff]


def rows(folder: Path, cutoffs=CUTOFFS, free: bool = True) -> list[tuple[str, ...]]:
    """Rows of the table: published, ordinary least squares, `mujoco.sysid` if available, and output error."""
    begin = time.perf_counter()
    cutoff, best = select_candidate(folder, cutoffs, free)
    result = best.best.fit(read_runs(folder, cutoff, FITTED))
    spent = time.perf_counter() - begin
    sets = [read_runs(folder, cutoff, names) for names in (FITTED, HELD_OUT)]
    sets.append([read_log(folder, "swingup_20230629-154548", cutoff)])
    row = lambda label, errors, bodies="", seconds="": (
        "double pendulum",
        label,
        f"{errors[0]:.4f}",
        f"{errors[1]:.4f}, swing-up {errors[2]:.4f}",
        bodies,
        seconds,
    )
    count = lambda found: f"{sum(c.physical for c in found.physical)} of {len(found.physical)}"
    model = prior_model(folder)
    system = jd.System(model, (drive(model),))
    table = [row("published", [window_error(system, logs) for logs in sets])]
    begin = time.perf_counter()
    plain = Candidate(system, LINEAR, Linear(reweight=0)).fit(read_runs(folder, 10.0, FITTED, accelerations=True))
    seconds = f"{time.perf_counter() - begin:.1f}"
    errors = [window_error(plain.system, logs) for logs in sets]
    table.append(row("ordinary least squares, 10 Hz", errors, count(plain), seconds))
    if mujoco_fits.is_available():
        other = mujoco_fits.Pendulum(folder / "double_pendulum_C1.urdf", ["Joint1", "Joint2"], 0.5)
        params, seconds = other.fit(sets[0], 30)
        table.append(row("mujoco.sysid", [other.error(params, x) for x in sets], "2 of 2", f"{seconds:.1f}"))
    errors = [window_error(result.system, logs) for logs in sets]
    table.append(row(f"physical, output error, {best.name}, {cutoff:g} Hz", errors, count(result), f"{spent:.1f}"))
    return table
