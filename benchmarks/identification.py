"""Identification on logs of real robots, judged on rows that were not fitted, and its speed on generated ones.

    python -m benchmarks.identification --panda DIR --tiago DIR --double-pendulum DIR [--out FILE.md] [--quick]

Each folder holds a log, a robot description and a note on which rows are for fitting. The prior is the description.
Its strength, and where motions are simulated the cut-off behind which velocities at their starts are taken, are chosen
by cross-validation on the rows for fitting alone; the error on those held out is computed once, at the end.

Efforts are judged behind a zero-phase Butterworth low-pass at 3 Hz (Panda) or 5 Hz (TIAGo). Ordinary least squares
gets rows so filtered, as is usual; the other methods get motion behind 15 Hz and put measured and predicted efforts
through one low-pass (`LowPassed`), which does not round friction on one side only.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.signal import butter, filtfilt

import jaxdyn as jd
from benchmarks._identification_speed import speed
from jaxdyn.actuators import add_rotor, drive, joint_friction
from jaxdyn.identification import (
    Candidate,
    Linear,
    Log,
    LowPassed,
    OutputError,
    Physical,
    Windows,
    as_bodies,
    cross_validated,
    fold_blocks,
    fold_runs,
    predicted_effort,
    simulation_error,
)

#: of the motion that goes into predictions, Hz
MOTION = 15.0
SELECTION = ("links[*].inertial", "joints[*].damping", "joints[*].friction", "parts[Drive].offset")
PENDULUM = (
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


def smooth(x, cutoff, rate, order=4):
    """Zero-phase Butterworth low-pass along the first axis."""
    return filtfilt(*butter(order, 2 * cutoff / rate), x, axis=0)


def even(t, rate, *columns):
    """Columns interpolated to even times."""
    times = np.arange(t[0], t[-1], 1 / rate)
    return times, *(np.stack([np.interp(times, t, c) for c in x.T], 1) for x in columns)


def differentiated(t, q, effort, cutoff, rate, name):
    """A log with zero-phase filtered coordinates and efforts, and derivatives of these."""
    q, effort = smooth(q, cutoff, rate), smooth(effort, cutoff, rate)
    v = np.gradient(q, 1 / rate, axis=0)
    return Log(t, q, v, np.gradient(v, 1 / rate, axis=0), effort, name)


class Case(NamedTuple):
    """A robot with rows to fit, and rows to judge by."""

    title: str
    model: jd.Model
    #: rows of motion and efforts behind the cut-off at which efforts are judged, and behind `MOTION`
    judged: Log
    whole: Log
    #: masks of the runs for fitting, and of the rows held out
    fitted: list[np.ndarray]
    held_out: np.ndarray
    cutoff: float
    rate: float
    #: the sampling for ordinary least squares, and the period of a motion that repeats, s
    every: int
    period: float | None

    def system(self, width: float) -> jd.System:
        """The description with some friction, and offsets of the sensors."""
        p = lambda m: (m.properties.damping, m.properties.friction, m.properties.friction_velocity)
        some = jnp.full(self.model.nv, 0.1)
        model = eqx.tree_at(p, self.model, (some, some, jnp.full(self.model.nv, width)))
        return jd.System(model, (drive(model),))

    def error(self, system: jd.System, log: Log, rows: list[np.ndarray]) -> str:
        """`|measured - predicted| / |measured|` over all joints, of motions in `log`, both behind the cut-off."""
        effort = np.asarray(predicted_effort(system, log))
        effort = effort if log is self.judged else smooth(effort, self.cutoff, self.rate)
        keep = np.any(rows, axis=0)
        measured = np.asarray(self.judged.effort)[keep]
        return f"{np.sqrt(((measured - effort[keep]) ** 2).sum() / (measured**2).sum()):.4f}"

    def rows(self) -> list[tuple[str, ...]]:
        """Rows of the table: plain least squares, the same behind a low-pass, and the physical fit."""
        table = []
        usual = [self.judged.rows(np.flatnonzero(keep)[:: self.every]) for keep in self.fitted]
        logs = [self.whole.rows(keep) for keep in self.fitted]
        plain = Candidate(self.system(0.01), SELECTION, Linear(reweight=0))
        filtered = Candidate(self.system(0.02), SELECTION, LowPassed(self.cutoff, Linear(reweight=1), overlap=2))
        physical = replace(filtered, method=LowPassed(self.cutoff, Physical(reweight=1), overlap=2))
        table.append(self._row("ordinary least squares", plain, usual, self.judged, time.perf_counter()))
        table.append(self._row("least squares behind the low-pass", filtered, logs, self.whole, time.perf_counter()))
        begin = time.perf_counter()
        folds = fold_blocks(logs, 4, guard=0.1, period=self.period)
        chosen = cross_validated(physical.with_priors((0.1, 1.0, 10.0, 100.0)), folds)
        print(self.title, chosen, sep="\n", flush=True)
        table.append(self._row(f"physical, {chosen.name}", chosen.best, logs, self.whole, begin))
        return table

    def _row(self, label: str, candidate: Candidate, logs, motion: Log, begin: float) -> tuple[str, ...]:
        result = candidate.fit(logs)
        spent = time.perf_counter() - begin
        bodies = f"{sum(check.physical for check in result.physical)} of {len(result.physical)}"
        errors = (self.error(result.system, motion, rows) for rows in (self.fitted, [self.held_out]))
        return self.title, label, *errors, bodies, f"{spent:.1f}"


def panda(folder: Path) -> list[tuple[str, ...]]:
    """Seven joints, efforts by sensors behind the gears; the motion repeats after 40/3 s."""
    data = np.load(folder / "panda_exciting_traj1.npz")
    fresh = data["fresh"]
    t, q, effort = even(data["t_rec"][fresh], 1000, data["q"][fresh], data["tau"][fresh])
    judged, whole = (differentiated(t, q, effort, cutoff, 1000, "panda") for cutoff in (3.0, MOTION))
    judged, whole = (log.rows(slice(None, None, 5)) for log in (judged, whole))
    model = jd.remove_link(jd.load_urdf(folder / "panda.urdf"), "panda_hand")
    t = np.asarray(whole.t)
    runs = [(t > 0.25) & (t < 7.17), (t >= 13.83) & (t < t[-1] - 0.25)]
    held_out = (t >= 7.17) & (t < 13.83)
    return Case("Panda", model, judged, whole, runs, held_out, 3.0, 200.0, 2, 40 / 3).rows()


def tiago(folder: Path) -> list[tuple[str, ...]]:
    """A lift and seven joints of an arm; measured are currents, of which the published gains make efforts."""
    read = lambda name: np.loadtxt(folder / f"tiago_{name}.csv", delimiter=",", skiprows=1)
    gains = json.loads((folder / "published_gains.json").read_text())
    per_ampere = np.array(gains["reduction_ratio"]) * np.array(gains["k_motor"])
    position = read("position")
    t, q, effort = even(position[:, 0], 100, position[:, 1:9], read("effort")[:, 1:9] * per_ampere)
    judged, whole = (differentiated(t, q, effort, cutoff, 100, "tiago") for cutoff in (5.0, MOTION))
    # two antennas and a link of the arm have moments in the file that no body has
    model = as_bodies(jd.reduce_joints(jd.load_urdf(folder / "tiago_48_schunk.urdf"), gains["joints"]))
    runs = [(t >= 1) & (t < 55)]
    return Case("TIAGo", model, judged, whole, runs, (t >= 55.5) & (t < 79), 5.0, 100.0, 2, None).rows()


def double_pendulum(folder: Path) -> list[tuple[str, ...]]:
    """Two joints, commanded efforts; errors are of positions over windows of half a second, rad."""
    windows = Windows(length=0.5, stride=0.25, every=10)
    method = OutputError(windows, Physical(reweight=0, max_steps=20, rtol=1e-5))
    model = _pendulum(folder)
    parts = (drive(model, delay=0.01), joint_friction(model, stribeck=0.02, stribeck_velocity=0.3, width=0.05))
    # residuals are some hundredths of a rad; both parts of the prior go by relative changes
    candidate = Candidate(jd.System(model, parts), PENDULUM, method, weights=np.full(2, 1 / 0.02))
    candidates = candidate.with_priors((100.0, 100.0, 1000.0), (100.0, 1000.0, 1000.0))
    fitted = lambda cutoff: _runs(folder, cutoff, "143339", "143601")
    begin, found = time.perf_counter(), {}
    for cutoff in (8.0, 12.0, 25.0):
        found[cutoff] = cross_validated(candidates, fold_runs(fitted(cutoff)))
        print(f"double pendulum, velocities at the starts behind {cutoff:g} Hz", found[cutoff], sep="\n", flush=True)
    cutoff = min(found, key=lambda c: min(found[c].scores))
    result = found[cutoff].best.fit(fitted(cutoff))
    spent = time.perf_counter() - begin
    held_out = _runs(folder, cutoff, "143524", "143704", "143747", "144115")
    sets = fitted(cutoff), held_out, [_pendulum_log(folder, "swingup_20230629-154548", cutoff)]
    bodies = f"{sum(c.physical for c in result.physical)} of {len(result.physical)}"
    label = f"physical, output error, {found[cutoff].name}, {cutoff:g} Hz"
    published = jd.System(model, (drive(model),))
    return [
        ("double pendulum", "published", *_motion(published, sets), "", ""),
        ("double pendulum", label, *_motion(result.system, sets), bodies, f"{spent:.1f}"),
    ]


def _pendulum(folder: Path) -> jd.Model:
    """The published parameters, with the rotor of the elbow, which turns backwards, on the upper arm."""
    model = jd.load_urdf(folder / "double_pendulum_C1.urdf")
    rotor, gear = 6.287203962819607e-05, 6.0
    armature = model.properties.armature.at[0].set(gear**2 * rotor)
    model = eqx.tree_at(lambda m: m.properties.armature, model, armature)
    model = eqx.tree_at(lambda m: m.properties.friction_velocity, model, jnp.full(2, 0.05))
    return add_rotor(model, "Joint2", gear=-gear, inertia=rotor, mass=1e-3)


def _pendulum_log(folder: Path, name: str, cutoff: float) -> Log:
    columns = np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)
    commands = slice(13, 15) if name.startswith("swingup") else slice(9, 11)
    t, q, u = even(columns[:, 0], 500, columns[:, 1:3], columns[:, commands])
    return Log(t - t[0], q, np.gradient(smooth(q, cutoff, 500), 1 / 500, axis=0), None, u, name)


def _runs(folder: Path, cutoff: float, *names: str) -> list[Log]:
    return [_pendulum_log(folder, f"sysid_20230629-{name}", cutoff) for name in names]


def _motion(system, sets):
    windows = Windows(length=0.5, stride=0.5)
    a, b, c = (np.sqrt(np.mean(simulation_error(system, logs, windows) ** 2)) for logs in sets)
    return f"{a:.4f}", f"{b:.4f}, swing-up {c:.4f}"


def main():
    """Prints the table, and writes it where `--out` says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("panda", "tiago", "double-pendulum"):
        parser.add_argument(f"--{name}", type=Path, metavar="DIR")
    parser.add_argument("--out", type=Path, metavar="FILE.md")
    parser.add_argument("--quick", action="store_true", help="fewer generated samples")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    table = [("case", "method", "error, fitted", "error, held out", "links that are bodies", "s")]
    for case, folder in ((panda, options.panda), (tiago, options.tiago), (double_pendulum, options.double_pendulum)):
        if folder is not None:
            table += case(folder)
            print(*table[-3:], sep="\n", flush=True)
    table += speed(2_000 if options.quick else 100_000)
    lines = [f"| {' | '.join(row)} |" for row in table]
    lines.insert(1, "|" + " --- |" * len(table[0]))
    print("\n".join(lines))
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
