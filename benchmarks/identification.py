"""Identification on logs of real robots, on rows that were not fitted, and its speed on generated ones.

    python -m benchmarks.identification --panda DIR --tiago DIR --double-pendulum DIR [--out FILE.md] [--quick]

Each folder holds a log, a robot description and a note on which rows are for fitting. The prior is the description, its
inertias believed to a tenth, `strength = 1 / 0.1^2`, times the number of rows for each independent one: after a
low-pass at f rows at a rate r are r / 2f for one. The rule was written down knowing the error of neighbouring strengths
on held-out rows of the arm; cross-validation on its fitting rows chose 10 instead, with which that error is 0.0145.
"""

import argparse
import json
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.signal import butter, filtfilt

import jaxdyn as jd
from jaxdyn.actuators import add_rotor, drive, joint_friction
from jaxdyn.identification import (
    GeometricPrior,
    Linear,
    Log,
    OutputError,
    Physical,
    Windows,
    fit,
    predicted_effort,
    simulation_error,
)

#: relative deviation to which inertias of a description are believed
BELIEF = 0.1


def smooth(x, cutoff, rate, order=4):
    """Zero-phase Butterworth low-pass along the first axis."""
    return filtfilt(*butter(order, 2 * cutoff / rate), x, axis=0)


def even(t, rate, *columns):
    """Columns interpolated to even times."""
    times = np.arange(t[0], t[-1], 1 / rate)
    return times, *(np.stack([np.interp(times, t, c) for c in x.T], 1) for x in columns)


def differentiated(t, q, effort, cutoff, rate, every, name):
    """A log with zero-phase filtered coordinates and efforts, and derivatives of these."""
    q, effort = smooth(q, cutoff, rate), smooth(effort, cutoff, rate)
    v = np.gradient(q, 1 / rate, axis=0)
    a = np.gradient(v, 1 / rate, axis=0)
    return Log(*(x[::every] for x in (t, q, v, a, effort)), name)


def relative(system, logs):
    """`|measured - predicted| / |measured|` over all joints."""
    off = [np.asarray(log.effort - predicted_effort(system, log)) for log in logs]
    return np.sqrt(sum((x**2).sum() for x in off) / sum(float((log.effort**2).sum()) for log in logs))


def effort_case(title, system, rigid, logs, held_out, selection, dependent):
    """Rows of the table for one log with efforts: plain least squares, and the physical fit."""
    rows = []
    belief = GeometricPrior(dependent / BELIEF**2)
    for label, model, how, prior in (
        ("ordinary least squares", rigid, Linear(reweight=0), None),
        ("weighted least squares", rigid, Linear(reweight=1), None),
        ("physical", system, Physical(reweight=1), belief),
    ):
        start = time.perf_counter()
        result = fit(model, logs, selection, how, prior=prior)
        spent = time.perf_counter() - start
        bodies = sum(check.physical for check in result.physical)
        errors = f"{relative(result.system, logs):.4f}", f"{relative(result.system, held_out):.4f}"
        rows.append((title, label, *errors, f"{bodies} of {len(result.physical)}", f"{spent:.1f}"))
    return rows


def panda(folder: Path):
    """Seven joints, efforts by sensors behind the gears."""
    data = np.load(folder / "panda_exciting_traj1.npz")
    fresh = data["fresh"]
    t, q, effort = even(data["t_rec"][fresh], 1000, data["q"][fresh], data["tau"][fresh])
    whole = differentiated(t, q, effort, 3.0, 1000, 10, "panda")
    model = jd.remove_link(jd.load_urdf(folder / "panda.urdf"), "panda_hand")
    times = np.asarray(whole.t)
    head, tail = (times > 0.25) & (times < 7.17), (times >= 13.83) & (times < times[-1] - 0.25)
    logs = [whole.rows(head), whole.rows(tail)]
    held_out = [whole.rows((times >= 7.17) & (times < 13.83))]
    return _arm("Panda", model, logs, held_out, 0.1, 100 / (2 * 3.0))


def _arm(title, model, logs, held_out, width, dependent):
    p = lambda m: (m.properties.damping, m.properties.friction, m.properties.friction_velocity)
    some = jnp.full(model.nv, 0.1)
    model = eqx.tree_at(p, model, (some, some, jnp.full(model.nv, width)))
    rigid = eqx.tree_at(lambda m: m.properties.friction_velocity, model, jnp.full(model.nv, 0.01))
    offset = lambda m: jd.System(m, (drive(m),))
    selection = ("links[*].inertial", "joints[*].damping", "joints[*].friction", "parts[Drive].offset")
    return effort_case(title, offset(model), offset(rigid), logs, held_out, selection, dependent)


def tiago(folder: Path):
    """A lift and seven joints of an arm; measured are currents, of which the published gains make efforts."""
    read = lambda name: np.loadtxt(folder / f"tiago_{name}.csv", delimiter=",", skiprows=1)
    gains = json.loads((folder / "published_gains.json").read_text())
    per_ampere = np.array(gains["reduction_ratio"]) * np.array(gains["k_motor"])
    position = read("position")
    t, q, effort = even(position[:, 0], 100, position[:, 1:9], read("effort")[:, 1:9] * per_ampere)
    whole = differentiated(t, q, effort, 5.0, 100, 2, "tiago")
    model = jd.reduce_joints(jd.load_urdf(folder / "tiago_48_schunk.urdf"), gains["joints"])
    times = np.asarray(whole.t)
    logs = [whole.rows((times >= 1) & (times < 55))]
    held_out = [whole.rows((times >= 55.5) & (times < 79))]
    return _arm("TIAGo", model, logs, held_out, 0.01, 50 / (2 * 5.0))


def double_pendulum(folder: Path):
    """Two joints, commanded efforts; errors are of positions over windows of half a second, rad."""
    cutoff = 25.0

    def log(name):
        columns = np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)
        commands = slice(13, 15) if name.startswith("swingup") else slice(9, 11)
        t, q, u = even(columns[:, 0], 500, columns[:, 1:3], columns[:, commands])
        return Log(t - t[0], q, np.gradient(smooth(q, cutoff, 500), 1 / 500, axis=0), None, u, name)

    runs = lambda *names: [log(f"sysid_20230629-{name}") for name in names]
    fitted, held_out = runs("143339", "143601"), runs("143524", "143704", "143747", "144115")
    swing = [log("swingup_20230629-154548")]
    model = jd.load_urdf(folder / "double_pendulum_C1.urdf")
    rotor, gear = 6.287203962819607e-05, 6.0
    armature = model.properties.armature.at[0].set(gear**2 * rotor)
    model = eqx.tree_at(lambda m: m.properties.armature, model, armature)
    model = eqx.tree_at(lambda m: m.properties.friction_velocity, model, jnp.full(2, 0.05))
    model = add_rotor(model, "Joint2", gear=-gear, inertia=rotor, mass=1e-3)
    windows = Windows(length=0.5, stride=0.5)
    published = jd.System(model, (drive(model),))
    rows = [("double pendulum", "published", *_motion(published, (fitted, held_out, swing), windows), "", "")]
    parts = (drive(model, delay=0.01), joint_friction(model, stribeck=0.1, stribeck_velocity=0.3, width=0.05))
    selection = (
        "links[Link?].inertial",
        "joints[*].damping",
        "joints[*].friction",
        "joints[*].friction_velocity",
        "parts[Drive].delay",
        "parts[JointFriction].stribeck",
        "parts[JointFriction].stribeck_velocity",
    )
    method = OutputError(Windows(length=0.8, stride=0.25, every=10), Physical(reweight=0, max_steps=20, rtol=1e-6))
    start = time.perf_counter()
    belief, scale = GeometricPrior(4000.0, 640.0), np.full(2, 1 / 0.022)
    result = fit(jd.System(model, parts), fitted, selection, method, prior=belief, weights=scale)
    spent = time.perf_counter() - start
    bodies = f"{sum(c.physical for c in result.physical)} of {len(result.physical)}"
    errors = _motion(result.system, (fitted, held_out, swing), windows)
    return [*rows, ("double pendulum", "physical, output error", *errors, bodies, f"{spent:.1f}")]


def _motion(system, sets, windows):
    a, b, c = (np.sqrt(np.mean(simulation_error(system, logs, windows) ** 2)) for logs in sets)
    return f"{a:.4f}", f"{b:.4f}, swing-up {c:.4f}"


def speed(samples: int):
    """Generated logs of the Panda: linear, and nonlinear with a hundred parameters."""
    model = jd.robots.panda()
    some = jnp.full(7, 0.3)
    fields = lambda m: (m.properties.damping, m.properties.friction, m.properties.armature)
    model = eqx.tree_at(fields, model, (some, some, 0.1 * some))
    model = eqx.tree_at(lambda m: m.properties.friction_velocity, model, jnp.full(7, 0.05))
    rng = np.random.default_rng(0)
    t = np.arange(samples) * 1e-3
    phase, size, w = rng.uniform(0, 6, (7, 4)), rng.normal(0, 0.35, (7, 4)), 2 * np.pi * 0.2 * np.arange(1, 5)
    angle = w * t[:, None, None] + phase
    q, v, a = ((size * f).sum(2) for f in (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle)))
    effort = jax.jit(jax.vmap(lambda q, v, a: jd.rnea(model, q, v, a) - jd.passive_forces(model, q, v)))(q, v, a)
    log = Log(t, q, v, a, np.asarray(effort) + rng.normal(0, 0.05, q.shape), "generated")
    start = eqx.tree_at(lambda m: m.links.mass, model, 1.2 * model.links.mass)
    start = eqx.tree_at(lambda m: m.properties.friction_velocity, start, jnp.full(7, 0.08))
    linear = ("links[*].inertial", "joints[*].damping", "joints[*].friction", "joints[*].armature")
    rows = []
    for label, selection, method in (
        ("linear, weighted", linear, Linear(reweight=1)),
        ("physical", linear, Physical(reweight=1)),
        ("physical, nonlinear", (*linear, "joints[*].friction_velocity"), Physical(reweight=1)),
    ):
        fit(start, [log], selection, method)
        begin = time.perf_counter()
        result = fit(start, [log], selection, method)
        spent = time.perf_counter() - begin
        bodies = f"{sum(c.physical for c in result.physical)} of {len(result.physical)}"
        title = f"{samples} samples, {len(result.parameters)} parameters"
        rows.append((title, label, f"{result.relative_error:.5f}", result.status.name, bodies, f"{spent:.1f}"))
    return rows


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
