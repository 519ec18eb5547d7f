"""Base parameters and fits beside those of FIGAROH, on the same rows of logs of real robots.

    python -m benchmarks._figaroh --panda DIR --tiago DIR [--figaroh-python PATH] [--out FILE.md] [--quick]

Each folder holds a log, a robot description and a note on which rows are for fitting. Both libraries get the
description as jaxdyn writes it, the same filtered rows, and the same model of a joint: viscous and Coulomb friction
and an offset. Coulomb friction goes by the sign of the velocity; in the physical fit of jaxdyn it changes over a
width, as its models have it. FIGAROH runs in a process of the Python that `--figaroh-python` names
(with `figaroh` 1.0.2; its package pins many others), by default this one. Seconds include compilation for jaxdyn.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from benchmarks import _identification_logs
from jaxdyn.actuators import drive
from jaxdyn.identification import GeometricPrior, Linear, Log, Physical, fit, grouping, predicted_effort

HEAD = ("log", "method", "error, fitted", "error, held out", "base parameters", "links that are bodies", "s")
SELECTION = ("links[*].inertial", "joints[*].damping", "joints[*].friction", "parts[Drive].offset")
#: a width that is a sign in double precision
SIGN = 1e-30
#: weights of the prior in FIGAROH's physically consistent fit; the first is its default
PRIORS = (1e-6, 1e-2)
WORKER = Path(__file__).with_name("_figaroh_worker.py")
NOT_IN_URDF = ("armature", "friction_velocity", "gravity", "closures", "shapes", "actuators")


class Case(NamedTuple):
    """A robot, its rows for fitting and those held out."""

    model: jd.Model
    logs: list[Log]
    held_out: list[Log]
    #: velocity over which friction changes its sign, in the physical fit
    width: float
    #: rows for each that is independent of the others, `rate / (2 cutoff)`
    dependent: float


def case_of(found: _identification_logs.Case, width: float) -> Case:
    """The rows of `benchmarks.identification` for ordinary least squares."""
    held_out = np.flatnonzero(found.held_out)[:: found.every]
    dependent = found.rate / found.every / (2 * found.cutoff)
    return Case(found.model, found.usual(), [found.judged.rows(held_out)], width, dependent)


def panda(folder: Path) -> Case:
    """Seven joints, efforts by sensors behind the gears."""
    return case_of(_identification_logs.panda(folder), 0.1)


def tiago(folder: Path) -> Case:
    """Seven joints of an arm; measured are currents, of which the published gains make efforts."""
    return case_of(_identification_logs.tiago(folder, lift=False), 0.01)


def ours(model: jd.Model, width: float, method, logs, prior=None):
    """The result and its seconds."""
    properties = lambda m: (m.properties.damping, m.properties.friction, m.properties.friction_velocity)
    some = jnp.full(model.nv, 0.1)
    start = eqx.tree_at(properties, model, (some, some, jnp.full(model.nv, width)))
    begin = time.perf_counter()
    result = fit(jd.System(start, (drive(start),)), logs, SELECTION, method, prior=prior)
    return result, time.perf_counter() - begin


def theirs(python: str, model: jd.Model, log: Log, held: Log, motion) -> dict:
    """What the worker found, or `RuntimeError` with its last words."""
    joints = [name for name, _ in jd.simulation.coordinate_names(model)]
    given = {"urdf": jd.write_urdf(model, without=NOT_IN_URDF), "joints": np.array(joints)}
    given |= {key: np.asarray(getattr(log, key)) for key in ("q", "v", "a", "effort")}
    given |= {f"held_{key}": np.asarray(getattr(held, key)) for key in ("q", "v", "a")}
    given |= dict(zip(("random_q", "random_v", "random_a"), motion, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        there, back = Path(folder, "in.npz"), Path(folder, "out.npz")
        np.savez(there, prior_weights=PRIORS, **given)
        done = subprocess.run([python, str(WORKER), str(there), str(back)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"FIGAROH ended with {done.returncode}: {done.stderr[-2000:]}")
        with np.load(back, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}


def error(measured, predicted) -> float:
    """`|measured - predicted| / |measured|` over all joints."""
    return float(np.linalg.norm(measured - predicted) / np.linalg.norm(measured))


def agreement(model: jd.Model, motion, found: dict) -> list[str]:
    """Base parameters of both on random motion: how many, whether they span the same efforts, and their numbers."""
    regressor = np.asarray(jax.jit(jax.vmap(lambda *x: jd.inertial_regressor(model, *x)))(*motion))
    w = regressor.reshape(-1, regressor.shape[-1])
    w = w[:, np.linalg.norm(w, axis=0) > 0]
    groups = grouping(tuple(str(k) for k in range(w.shape[1])), w.T @ w)
    mine, other = (np.linalg.qr(x)[0] for x in (w[:, groups.base], found["span"].reshape(len(w), -1)))
    across = lambda a, b: np.linalg.norm(b - a @ (a.T @ b), 2)
    effort = np.asarray(jax.jit(jax.vmap(lambda *x: jd.rnea(model, *x)))(*motion))
    off = np.abs(effort - found["nominal"]).max() / np.abs(effort).max()
    return [
        f"base inertial parameters, jaxdyn {mine.shape[1]}, FIGAROH {other.shape[1]}",
        f"sine of the largest angle between what they span: {max(across(mine, other), across(other, mine)):.1e}",
        f"FIGAROH's base parameters of the description against jaxdyn's rnea, relative: {off:.1e}",
    ]


def _their_row(found: dict, label: str, log: Log, held: Log) -> tuple[str, ...]:
    k = label.removeprefix("physical")
    title, bodies = f"FIGAROH, {label}", ""
    if k != label:
        title = f"FIGAROH, physical, prior {PRIORS[int(k)]:g}: {found[f'status{k}']}"
        bodies = str(found.get(f"bodies{k}", ""))
    if f"held_{label}" not in found:
        return title, "", "", "", "", ""
    errors = (f"{error(x.effort, found[f'{part}_{label}']):.4f}" for part, x in (("fitted", log), ("held", held)))
    return title, *errors, str(found["rank"]), bodies, f"{float(found[f'seconds_{label}']):.1f}"


def compared(name: str, case: Case, python: str, every: int) -> tuple[list[tuple[str, ...]], list[str]]:
    """Rows of the table for one log, and lines on how far both agree."""
    model = case.model
    keep = slice(None, None, every)
    joined = lambda some: Log(*(np.concatenate([np.asarray(getattr(x, k))[keep] for x in some]) for k in _FIELDS))
    log, held = joined(case.logs), joined(case.held_out)
    rng = np.random.default_rng(0)
    motion = tuple(rng.uniform(-s, s, (200, model.nv)) for s in (1.5, 2.0, 5.0))
    found = theirs(python, model, log, held, motion)
    lines = agreement(model, motion, found)
    rows, held_out = [], {}
    belief = GeometricPrior(max(1.0, case.dependent / every) / 0.1**2)  # a description is believed to a tenth
    for label, method, width, prior in (
        ("ordinary", Linear(reweight=0), SIGN, None),
        ("weighted", Linear(reweight=1), SIGN, None),
        ("physical", Physical(reweight=1), case.width, belief),
    ):
        result, spent = ours(model, width, method, [log], prior)
        held_out[label] = np.asarray(predicted_effort(result.system, held))
        bodies = f"{sum(c.physical for c in result.physical)} of {len(result.physical)}"
        errors = f"{result.relative_error:.4f}", f"{error(held.effort, held_out[label]):.4f}"
        rows.append((name, f"jaxdyn, {label}", *errors, str(len(result.base)), bodies, f"{spent:.1f}"))
    for label in ("ordinary", "weighted", *(f"physical{k}" for k in range(len(PRIORS)))):
        rows.append((name, *_their_row(found, label, log, held)))
    off = error(held_out["ordinary"], found["held_ordinary"])
    lines.append(f"ordinary least squares of both, predictions held out, relative: {off:.1e}")
    return rows, [f"{name}: {line}" for line in lines]


_FIELDS = ("t", "q", "v", "a", "effort")


def main():
    """Prints the table, and writes it where `--out` says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panda", type=Path, metavar="DIR")
    parser.add_argument("--tiago", type=Path, metavar="DIR")
    parser.add_argument("--figaroh-python", default=sys.executable, metavar="PATH", help="a Python that has figaroh")
    parser.add_argument("--out", type=Path, metavar="FILE.md")
    parser.add_argument("--quick", action="store_true", help="every tenth row")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    table, notes = [HEAD], []
    for name, case, folder in (("Panda", panda, options.panda), ("TIAGo", tiago, options.tiago)):
        if folder is not None:
            rows, lines = compared(name, case(folder), options.figaroh_python, 10 if options.quick else 1)
            table += rows
            notes += lines
    text = [f"| {' | '.join(row)} |" for row in table]
    text.insert(1, "|" + " --- |" * len(HEAD))
    text += ["", *(f"* {line}" for line in notes)]
    print("\n".join(text))
    if options.out is not None:
        options.out.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
