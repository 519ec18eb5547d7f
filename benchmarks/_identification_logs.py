"""Logs of real robots for `benchmarks.identification` and related benchmarks, with held-out data.

Each folder contains a log, a robot description and a note on the split. If the data are filtered, the fit excludes a
guard interval of 0.1 s beside held-out rows, since a zero-phase filter couples the samples on both sides of the border.
"""

import json
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.signal import butter, filtfilt

import jaxdyn as jd
from jaxdyn.actuators import drive
from jaxdyn.identification import Log, as_bodies, predicted_effort

#: cut-off frequency for the motion of predictions, Hz
MOTION = 15.0
#: guard interval beside held-out rows, s
GUARD = 0.1


def smooth(x, cutoff, rate, order=4):
    """Zero-phase Butterworth low-pass along the first axis."""
    return filtfilt(*butter(order, 2 * cutoff / rate), x, axis=0)


def resample(t, rate, *columns):
    """Columns interpolated linearly to uniform times at `rate`, Hz."""
    times = np.arange(t[0], t[-1], 1 / rate)
    return times, *(np.stack([np.interp(times, t, c) for c in x.T], 1) for x in columns)


def filter_and_differentiate(t, q, effort, cutoff, rate, name):
    """A log of zero-phase filtered coordinates and efforts, with derivatives of the coordinates."""
    q, effort = smooth(q, cutoff, rate), smooth(effort, cutoff, rate)
    v = np.gradient(q, 1 / rate, axis=0)
    return Log(t, q, v, np.gradient(v, 1 / rate, axis=0), effort, name)


class Case(NamedTuple):
    """A robot and its log, with rows for the fit and held-out rows."""

    title: str
    model: jd.Model
    #: motion and efforts filtered at the cut-off frequency of the error, and filtered at `MOTION`
    judged: Log
    whole: Log
    #: masks of the runs of the fit, and of the held-out rows
    fitted: list[np.ndarray]
    held_out: np.ndarray
    cutoff: float
    rate: float
    #: decimation for ordinary least squares, and the period of a periodic motion, s
    every: int
    period: float | None

    def system(self, width: float) -> jd.System:
        """The robot description with initial friction and effort offsets."""
        p = lambda m: (m.properties.damping, m.properties.friction, m.properties.friction_velocity)
        some = jnp.full(self.model.nv, 0.1)
        model = eqx.tree_at(p, self.model, (some, some, jnp.full(self.model.nv, width)))
        return jd.System(model, (drive(model),))

    def usual(self) -> list[Log]:
        """Runs for ordinary least squares: filtered at the cut-off frequency and decimated."""
        return [self.judged.rows(np.flatnonzero(keep)[:: self.every]) for keep in self.fitted]

    def logs(self) -> list[Log]:
        """Runs for methods that apply their own low-pass filter."""
        return [self.whole.rows(keep) for keep in self.fitted]

    def predicted(self, system: jd.System, log: Log) -> np.ndarray:
        """Predicted efforts along `judged` or `whole`, filtered at the cut-off frequency."""
        effort = np.asarray(predicted_effort(system, log))
        return effort if log is self.judged else smooth(effort, self.cutoff, self.rate)

    def errors(self, effort: np.ndarray) -> tuple[float, float, np.ndarray]:
        """`|measured - predicted| / |measured|` of the fit, of the held-out rows, and of the held-out rows by joint."""
        measured = np.asarray(self.judged.effort)
        ratio = lambda keep, axis: np.sqrt(
            np.sum((measured - effort)[keep] ** 2, axis=axis) / np.sum(measured[keep] ** 2, axis=axis)
        )
        return ratio(np.any(self.fitted, axis=0), None), ratio(self.held_out, None), ratio(self.held_out, 0)


def panda_rows(t: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Masks of the two runs of the fit and of the held-out rows, which contain another phase of the motion."""
    runs = [(t > 0.25) & (t < 7.17 - GUARD), (t >= 13.83 + GUARD) & (t < t[-1] - 0.25)]
    return runs, (t >= 7.17) & (t < 13.83)


def panda(folder: Path) -> Case:
    """Seven joints with torque sensors on the joint side; the motion has a period of 40/3 s."""
    data = np.load(folder / "panda_exciting_traj1.npz")
    fresh = data["fresh"]
    t, q, effort = resample(data["t_rec"][fresh], 1000, data["q"][fresh], data["tau"][fresh])
    judged, whole = (filter_and_differentiate(t, q, effort, cutoff, 1000, "panda") for cutoff in (3.0, MOTION))
    judged, whole = (log.rows(slice(None, None, 5)) for log in (judged, whole))
    model = jd.remove_link(jd.load_urdf(folder / "panda.urdf"), "panda_hand")
    runs, held_out = panda_rows(np.asarray(whole.t))
    return Case("Panda", model, judged, whole, runs, held_out, 3.0, 200.0, 2, 40 / 3)


def predict_published_panda(folder: Path, case: Case, rows: np.ndarray) -> np.ndarray:
    """Efforts of the published inertias and friction, plus offsets fitted to `rows`."""
    table = json.loads((folder / "published_friction.json").read_text())
    size, sign, steep = (np.array(table[key]) for key in ("A", "v_sign", "alpha"))
    v = np.asarray(case.judged.v)
    friction = size / (1 + np.exp(-steep * (v + sign))) - size / (1 + np.exp(-steep * sign))
    effort = np.asarray(predicted_effort(case.model, case.judged)) + friction
    return effort + (np.asarray(case.judged.effort) - effort)[rows].mean(axis=0)


def tiago(folder: Path, lift: bool) -> Case:
    """Seven joints of an arm on a lift; efforts are measured currents times the published gains.

    The gain of the lift is unknown. With `lift` it is assumed to be 1 and the lift is one of the joints. Otherwise the
    lift is locked at its mean position, which neglects the slow acceleration of the base.
    """
    read = lambda name: np.loadtxt(folder / f"tiago_{name}.csv", delimiter=",", skiprows=1)
    gains = json.loads((folder / "published_gains.json").read_text())
    per_ampere = np.array(gains["reduction_ratio"]) * np.array(gains["k_motor"])
    position = read("position")
    t, q, effort = resample(position[:, 0], 100, position[:, 1:9], read("effort")[:, 1:9] * per_ampere)
    # two antennas and a link of the arm have physically inconsistent inertia in the file
    model = as_bodies(jd.reduce_joints(jd.load_urdf(folder / "tiago_48_schunk.urdf"), gains["joints"]))
    if not lift:
        model = jd.lock_joints(model, {gains["joints"][0]: float(q[:, 0].mean())})
        q, effort = q[:, 1:], effort[:, 1:]
    judged, whole = (filter_and_differentiate(t, q, effort, cutoff, 100, "tiago") for cutoff in (5.0, MOTION))
    runs = [(t >= 1) & (t < 55)]
    title = "TIAGo, lift and arm" if lift else "TIAGo, arm"
    return Case(title, model, judged, whole, runs, (t >= 55.5) & (t < 79), 5.0, 100.0, 2, None)
