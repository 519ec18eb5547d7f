"""The tour: what the library does, shown on a seven-joint arm."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.cli import _motions, _plots, _recover, _swing
from jaxdyn.cli._report import Report, compiled, timed
from jaxdyn.dynamics import forward_dynamics, gravity_forces, mass_matrix, rnea
from jaxdyn.identification import collect
from jaxdyn.io import load_urdf, write_urdf
from jaxdyn.kinematics import frame_pose, inverse_kinematics, random_configuration
from jaxdyn.model import Model
from jaxdyn.robots import panda
from jaxdyn.simulation import System
from jaxdyn.trajopt import Solution


@dataclass(frozen=True)
class Size:
    """How much the tour does."""

    samples: int = 1000
    duration: float = 2.0  # s, of each swing of the batch
    segments: int = 20
    differentiated: float = 0.8  # s, of the swing that is differentiated
    log: int = 1000
    noise: float = 0.1  # N m
    turning: float = 5.0  # s, of the closed loop
    intervals: int = 40  # of the optimal motion


DAMPING = 1.0  # N m s/rad
DIFFERENCE = 1e-5  # m and kg, of the central differences


def tour(out: Path, size: Size | None = None) -> Report:
    """Runs every part, prints what it found, and saves the plots in `out`."""
    size = Size() if size is None else size
    start = time.perf_counter()
    report = Report(steps=2 * size.segments + 10)
    beside = ThreadPoolExecutor(1)  # what needs nothing of the rest is compiled on another core
    try:
        turning = beside.submit(timed, _motions.turn, 4.0, size.turning, round(60 * size.turning) + 1)
        swinging = beside.submit(timed, _motions.swing_up, size.intervals)
        robot = panda()
        introduce(report, robot)
        exchange(report, robot, out)
        evaluate(report, robot)
        reach(report, robot)
        swings = simulate(report, robot, size)
        slopes = differentiate(report, robot, size)
        fit = identify(report, robot, size)
        loop = close(report, size, turning)
        best = optimise(report, size, swinging)
        report.advance("plotting")
        files = _plots.save(out, _plots.Results(robot, *swings, *slopes, fit, loop, best))
        report.section("Plots")
        for path in files:
            report.text(f"  {path}")
        report.text()
        verdict = "every check passed" if report.passed else "FAILED: " + "; ".join(report.failures)
        report.text(f"{verdict} in {time.perf_counter() - start:.0f} s")
    finally:
        beside.shutdown(wait=False, cancel_futures=True)
        report.close()
    return report


def introduce(report: Report, robot: Model):
    """The robot and the machine."""
    device = jax.devices()[0]
    report.section("The robot: a seven-joint arm, every number of it a leaf of a pytree")
    report.row("links, joints that move", f"{robot.num_links}, {robot.nv}")
    report.row("mass", f"{float(robot.links.mass.sum()):.2f} kg")
    report.row("numbers that can be differentiated", f"{sum(x.size for x in jax.tree.leaves(robot))}")
    report.row("jax, device, precision", f"{jax.__version__}, {device.device_kind}, {robot.dtype}")


def exchange(report: Report, robot: Model, out: Path):
    """To a URDF and back."""
    report.advance("files")
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{robot.name}.urdf"
    write_urdf(robot, path, without=("friction_velocity",))  # by which Coulomb friction is smoothed
    start = time.perf_counter()
    again = load_urdf(path)
    seconds = time.perf_counter() - start
    q, v, a = jax.random.normal(jax.random.key(6), (3, robot.nv))
    ours, theirs = (jax.jit(rnea)(model, q, v, a) for model in (robot, again))
    report.section("Files: to a URDF and back")
    report.row("written to, read in", f"{path}, {1e3 * seconds:.0f} ms")
    report.check(
        "inverse dynamics, relative difference", float(jnp.abs(ours - theirs).max() / jnp.abs(ours).max()), 1e-9
    )


def reach(report: Report, robot: Model):
    """Inverse kinematics to poses that random configurations have."""
    report.advance("inverse kinematics")
    known = _swing.configurations(robot, jax.random.key(7), 100)
    middle = (robot.limits.lower + robot.limits.upper) / 2

    def solved(model, q):
        target = frame_pose(model, q, _swing.TOOL)
        found = inverse_kinematics(model, _swing.TOOL, target, q0=(q + middle) / 2)
        return found.converged, found.error, found.iterations

    run, compiling = compiled(jax.vmap(solved, in_axes=(None, 0)), robot, known)
    (good, error, iterations), seconds = timed(run, robot, known)
    report.section("Inverse kinematics: a hundred poses of the tool, joints kept within their limits")
    report.row("reached, steps on average", f"{int(good.sum())} of {good.size}, {float(iterations.mean()):.0f}")
    report.row("took", f"{1e3 * seconds:.0f} ms together, compiled in {compiling:.1f} s")
    report.check("largest error of those reached, rad and m", float(jnp.where(good, error, 0).max()), 1e-6)
    report.check("not reached", float(1 - good.mean()), 0.1)


def evaluate(report: Report, robot: Model):
    """Inverse and forward dynamics of one state."""
    report.advance("dynamics")
    q = random_configuration(robot, jax.random.key(1))
    v, tau = jax.random.normal(jax.random.key(2), (2, robot.nv))

    def quantities(model, q, v, tau):
        a = forward_dynamics(model, q, v, tau)
        return gravity_forces(model, q), mass_matrix(model, q), a, rnea(model, q, v, a) - tau

    run, compiling = compiled(quantities, robot, q, v, tau)
    (gravity, mass, a, residual), _ = timed(run, robot, q, v, tau)
    report.section("Dynamics: one random state")
    number = lambda x: f"{float(x):.3f}"
    moments = np.linalg.eigvalsh(mass)
    names = [robot.joint_names[i] for i in robot.topology.bodies]
    columns = zip(names, q, gravity, tau, a, strict=True)
    report.table(
        ("joint", "q [rad]", "gravity [N m]", "tau [N m]", "acceleration [rad/s2]"),
        ((name, *map(number, x)) for name, *x in columns),
    )
    report.row("eigenvalues of the mass matrix [kg m2]", " ".join(f"{x:.3g}" for x in moments))
    report.row("compiled together", f"{compiling:.2f} s")
    report.check("smallest eigenvalue, negated", -float(moments.min()), 0.0)
    report.check("RNEA(FD(tau)) - tau, relative", float(jnp.abs(residual).max() / jnp.abs(tau).max()), 1e-10)


def simulate(report: Report, robot: Model, size: Size):
    """A batch of damped swings, and the same without friction."""
    report.advance("compiling the batch")
    segment = size.duration / size.segments
    q, v = _swing.starts(robot, size.samples)
    free, damped = _swing.lossless(robot), _swing.damped(robot, DAMPING)
    saved = 5
    run, compiling = compiled(_swing.segment_function(segment, saved), free, q, v)
    report.section(f"Simulation: {size.samples} arms let go at random, {size.duration:g} s each")
    report.row("method", f"Tsit5, {round(segment / saved * 1e3):d} ms saved, {_swing.STEP * 1e3:g} ms steps")
    report.row("compiled once", f"{compiling:.1f} s")
    results = []
    for name, model in (("with friction", damped), ("without friction", free)):
        state, parts, seconds = (q, v), [], 0.0
        for _ in range(size.segments):
            report.advance(f"{size.samples} swings, {name}")
            part, spent = timed(run, model, *state)
            state = (part[0][:, -1], part[1][:, -1])
            parts.append(part)
            seconds += spent
        swings = _swing.collect(model, (q, v), parts, size.duration)
        simulated = size.samples * size.duration
        report.row(f"{name}: ran in", f"{seconds:.2f} s, {simulated / seconds:,.0f} times real time")
        results.append(swings)
    lossy, ideal = results
    scale = float(np.ptp(ideal.energy[:, 0]))
    drift = np.abs(ideal.energy - ideal.energy[:, :1]).max(1) / scale
    gain = np.diff(lossy.energy, axis=1).max() / scale
    report.row("without friction: energy drift, median", f"{np.median(drift):.1e} of the batch's range")
    report.check("without friction: energy drift, worst", float(drift.max()), 1e-3)
    report.check("with friction: largest gain of energy", float(gain), 1e-6)
    return lossy, ideal


def differentiate(report: Report, robot: Model, size: Size):
    """One swing's outcome in the lengths and masses of the robot, by reverse mode and by differences."""
    report.advance("gradient of a swing")
    model = _swing.damped(robot, DAMPING)
    q, v = random_configuration(robot, jax.random.key(3)), jnp.zeros(robot.nv)
    height = lambda m: _swing.outcome(m, q, v, size.differentiated)
    slope, compiling = compiled(jax.value_and_grad(height), model)
    (value, gradient), seconds = timed(slope, model)
    report.advance("central differences")
    ours = _swing.sensitivities(model, gradient)
    batch = jax.tree.map(np.asarray, _swing.variants(model, DIFFERENCE))
    each = (jax.tree.map(lambda x, k=k: x[k], batch) for k in range(batch.links.mass.shape[0]))
    theirs = _swing.central_differences(model, [slope(other)[0] for other in each], DIFFERENCE)
    report.section(f"Derivatives: height of the tool after {size.differentiated:g} s of one swing")
    report.row("height", f"{float(value):.4f} m")
    report.row("gradient in every leaf of the robot", f"{seconds * 1e3:.0f} ms, compiled in {compiling:.1f} s")
    report.table(
        ("in the", "length [m/m]", "differences", "mass [m/kg]", "differences"),
        (
            (name, *(f"{x:+.7f}" if has else "" for x in (a, b)), f"{c:+.7f}", f"{d:+.7f}")
            for name, has, a, b, c, d in zip(
                ours.links, ours.has_length, ours.length, theirs.length, ours.mass, theirs.mass, strict=True
            )
        ),
    )
    for what in ("length", "mass"):
        a, b = getattr(ours, what), getattr(theirs, what)
        report.check(f"in the {what}, largest difference, relative", np.abs(a - b).max() / np.abs(b).max(), 1e-6)
    return ours, theirs


def identify(report: Report, robot: Model, size: Size) -> _plots.Fit:
    """Perturbed masses and losses, recovered from a noisy log."""
    report.advance("recovering parameters")
    true_robot = _swing.damped(robot, DAMPING)
    start = _recover.perturbed(true_robot, jax.random.key(4))
    log = _recover.generated_log(true_robot, jax.random.key(5), size.log, size.noise)
    begin = time.perf_counter()
    result = _recover.recovered(start, log)
    seconds = time.perf_counter() - begin
    true = np.asarray(collect(System(true_robot), _recover.selection(true_robot)).read())
    columns = np.array([(row.prior, row.value, row.deviation) for row in result.parameters]).T
    names = [row.name for row in result.parameters]
    fit = _plots.Fit(names, columns[0], columns[1], true, columns[2])
    report.section("Identification: parameters recovered from a log of one exciting motion")
    report.row("log", f"{size.log} samples in {log.t[-1]:.0f} s, noise {size.noise:g} N m, {fit.true.size} unknowns")
    report.row("Levenberg-Marquardt", f"{result.status.name}, {result.steps} steps, {seconds:.1f} s with compiling")
    report.table(
        ("parameter", "start", "recovered", "true", "standard error"),
        ((n, *(f"{x:.3f}" for x in row)) for n, *row in zip(*fit, strict=True)),
    )
    left = max(abs(error.fit / size.noise - 1) for error in result.errors)
    report.check("residuals against the noise, largest difference", left, 0.1)
    worst = np.abs((fit.found - fit.true) / fit.error).max()
    report.check("largest error, in standard errors", float(worst), 5.0)
    return fit


def close(report: Report, size: Size, turning: Future) -> _motions.Loop:
    """A four-bar linkage that turns by Lagrange multipliers."""
    report.advance("a closed loop")
    loop, seconds = turning.result()
    report.section(f"Closed loop: a four-bar linkage turns for {size.turning:g} s")
    report.row("took", f"{seconds:.1f} s with compiling, beside the rest")
    drift = np.abs(loop.energy - loop.energy[0]).max() / loop.energy[0]
    report.check("largest gap at the pin [m]", float(loop.gap.max()), 1e-9)
    report.check("energy drift, relative", float(drift), 1e-6)
    return loop


def optimise(report: Report, size: Size, swinging: Future) -> Solution:
    """A cart-pole swung up at the least integral of the force squared."""
    report.advance("an optimal motion")
    best, seconds = swinging.result()
    report.section("Optimal motion: a pole swung up by its cart in 2 s")
    report.row(
        "method", f"Hermite-Simpson, {size.intervals} intervals, interior point: {int(best.iterations)} iterations"
    )
    report.row("took", f"{1e3 * (best.run_seconds or 0.0):.0f} ms, {seconds:.1f} s with compiling, beside the rest")
    report.row("cost, published", f"{float(best.cost):.4f}, {_motions.OPTIMUM} N2 s")
    report.check("relative difference", abs(float(best.cost) / _motions.OPTIMUM - 1), 1e-4)
    return best
