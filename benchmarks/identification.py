"""Identification on logs of real robots, judged on rows that were not fitted, and its speed on generated ones.

    python -m benchmarks.identification --panda DIR --tiago DIR --double-pendulum DIR [--out FILE.md] [--quick]

Each folder holds a log, a robot description and a note on which rows are for fitting. The prior is the description.
Its strength, and where motions are simulated the cut-off behind which velocities at their starts are taken and how
windows start, are chosen by cross-validation on the rows for fitting alone; the error on those held out is computed
once, at the end.

Efforts are judged behind a zero-phase Butterworth low-pass at 3 Hz (Panda) or 5 Hz (TIAGo). Ordinary least squares
gets rows so filtered, as is usual; the other methods get motion behind 15 Hz and put measured and predicted efforts
through one low-pass (`LowPassed`), which does not round friction on one side only.

FIGAROH 1.0.2 gets the rows of ordinary least squares, in the Python that `--figaroh-python` names (by default this
one). `mujoco.sysid` (mujoco 4.0, with `pip install "mujoco[sysid]"`) gets these rows through `mj_inverse`, and the
windows of the double pendulum through its simulations. A line says where one of them is not installed.
"""

import argparse
import importlib.util
import sys
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

import jaxdyn as jd
from benchmarks import _identification_mujoco, _identification_pendulum
from benchmarks._figaroh import NOT_IN_URDF, PRIORS, theirs
from benchmarks._identification_coverage import coverage
from benchmarks._identification_logs import Case, panda, predict_published_panda, tiago
from benchmarks._identification_speed import speed
from jaxdyn.identification import Candidate, Linear, Log, LowPassed, Physical, cross_validate, fold_blocks

SELECTION = ("links[*].inertial", "joints[*].damping", "joints[*].friction", "parts[Drive].offset")
STRENGTHS = (0.1, 1.0, 10.0, 100.0)
HEAD = ("case", "method", "error, fitted", "error, held out", "links that are bodies", "s")


class Table:
    """Rows of errors over all joints, and of each joint."""

    def __init__(self):
        self.rows: list[tuple[str, ...]] = [HEAD]
        self.joints: list[tuple[str, ...]] = []

    def add(self, case: Case, label: str, effort: np.ndarray, bodies: str = "", seconds: str = ""):
        """The errors of these efforts."""
        fitted, held_out, each = case.errors(effort)
        self.rows.append((case.title, label, f"{fitted:.4f}", f"{held_out:.4f}", bodies, seconds))
        self.joints.append((case.title, label, *(f"{x:.3f}" for x in each)))
        print(self.rows[-1], self.joints[-1][2:], flush=True)

    def fit(self, case: Case, label: str, candidate: Candidate, logs: list[Log], motion: Log, begin: float):
        """Fits a candidate and adds its errors."""
        result = candidate.fit(logs)
        spent = time.perf_counter() - begin
        bodies = f"{sum(check.physical for check in result.physical)} of {len(result.physical)}"
        self.add(case, label, case.predicted(result.system, motion), bodies, f"{spent:.1f}")


def efforts(table: Table, case: Case, figaroh: str | None, mujoco: bool):
    """Least squares, by others too where asked, the same behind a low-pass, and the physical fit."""
    plain = Candidate(case.system(0.01), SELECTION, Linear(reweight=0))
    for label, passes in (("ordinary", 0), ("weighted", 1)):
        candidate = replace(plain, method=Linear(reweight=passes))
        table.fit(case, f"{label} least squares", candidate, case.usual(), case.judged, time.perf_counter())
    if figaroh is not None:
        _figaroh(table, case, figaroh)
    if mujoco:
        _mujoco(table, case)
    filtered = Candidate(case.system(0.02), SELECTION, LowPassed(case.cutoff, Linear(reweight=1), overlap=2))
    logs = case.logs()
    table.fit(case, "linear, low-passed", filtered, logs, case.whole, time.perf_counter())
    physical = replace(filtered, method=LowPassed(case.cutoff, Physical(reweight=1), overlap=2))
    begin = time.perf_counter()
    folds = fold_blocks(logs, 4, guard=0.1, period=case.period)
    chosen = cross_validate(physical.with_priors(STRENGTHS), folds)
    print(case.title, chosen, sep="\n", flush=True)
    table.fit(case, f"physical, low-passed, {chosen.name}", chosen.best, logs, case.whole, begin)


def _figaroh(table: Table, case: Case, python: str):
    """FIGAROH's fits of the rows for ordinary least squares, by its own predictions of all rows."""
    fields = ("t", "q", "v", "a", "effort")
    log = Log(*(np.concatenate([np.asarray(getattr(x, key)) for x in case.usual()]) for key in fields))
    rng = np.random.default_rng(0)
    motion = tuple(rng.uniform(-s, s, (200, case.model.nv)) for s in (1.5, 2.0, 5.0))
    found = theirs(python, case.model, log, case.judged, motion)
    for key in ("ordinary", "weighted", *(f"physical{k}" for k in range(len(PRIORS)))):
        k = key.removeprefix("physical")
        label = f"{key} least squares" if k == key else f"physical, prior {PRIORS[int(k)]:g}: {found[f'status{k}']}"
        if f"held_{key}" in found:
            bodies, seconds = str(found.get(f"bodies{k}", "")), f"{float(found[f'seconds_{key}']):.1f}"
            table.add(case, f"FIGAROH, {label}", found[f"held_{key}"], bodies, seconds)
        else:
            table.rows.append((case.title, f"FIGAROH, {label}", "", "", "", ""))


def _mujoco(table: Table, case: Case):
    """The parameters and minimiser of `mujoco.sysid` on the rows of ordinary least squares, by `mj_inverse`."""
    joints = [name for name, _ in jd.simulation.coordinate_names(case.model)]
    inverse = _identification_mujoco.Inverse(jd.write_urdf(case.model, without=NOT_IN_URDF), joints)
    # joints count by what weighted least squares leaves of them
    plain = Candidate(case.system(0.01), SELECTION, Linear(reweight=1)).fit(case.usual())
    params, seconds = inverse.fit(case.usual(), np.array([error.fit for error in plain.errors]), 12)
    bodies = f"{len(joints)} of {len(joints)}"
    table.add(case, "mujoco.sysid, 12 steps", inverse.predicted(params, case.judged), bodies, f"{seconds:.1f}")


def markdown(rows: list[tuple[str, ...]]) -> str:
    """A table in Markdown; rows are as long as the first."""
    lines = [f"| {' | '.join((*row, *[''] * (len(rows[0]) - len(row))))} |" for row in rows]
    lines.insert(1, "|" + " --- |" * len(rows[0]))
    return "\n".join(lines) + "\n"


def _figaroh_python(named: str | None) -> str | None:
    if named is None and importlib.util.find_spec("figaroh") is None:
        print("figaroh is not installed here: its rows are left out; name a Python by --figaroh-python", flush=True)
        return None
    return named or sys.executable


def main():
    """Prints the tables, and writes them where `--out` says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("panda", "tiago", "double-pendulum"):
        parser.add_argument(f"--{name}", type=Path, metavar="DIR")
    parser.add_argument("--figaroh-python", metavar="PATH", help="a Python that has figaroh")
    parser.add_argument(
        "--measured-starts", action="store_true", help="no free starts of the pendulum, which take long"
    )
    parser.add_argument("--without-speed", action="store_true", help="logs of real robots alone")
    parser.add_argument("--out", type=Path, metavar="FILE.md")
    parser.add_argument("--quick", action="store_true", help="fewer generated samples")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    table, figaroh = Table(), _figaroh_python(options.figaroh_python)
    mujoco = _identification_mujoco.is_available()
    if not mujoco:
        print('mujoco.sysid cannot be imported: its rows are left out; pip install "mujoco[sysid]"', flush=True)
    if options.panda is not None:
        case = panda(options.panda)
        for label, rows in (("fitted", np.any(case.fitted, axis=0)), ("held out", case.held_out)):
            table.add(case, f"published, offsets of rows {label}", predict_published_panda(options.panda, case, rows))
        efforts(table, case, figaroh, mujoco)
    if options.tiago is not None:
        efforts(table, tiago(options.tiago, lift=False), figaroh, mujoco)
        efforts(table, tiago(options.tiago, lift=True), None, False)
    if options.double_pendulum is not None:
        table.rows += _identification_pendulum.rows(options.double_pendulum, free=not options.measured_starts)
    if not options.without_speed:
        table.rows += speed(2_000 if options.quick else 100_000)
        table.rows += coverage(3 if options.quick else 30)
    text = markdown(table.rows)
    if table.joints:
        head = ("case", "relative error of each joint, held out", *(str(k + 1) for k in range(8)))
        text += "\n" + markdown([head, *table.joints])
    print(text)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
