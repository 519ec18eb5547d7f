"""The tour: what the library does, shown on a seven-joint arm."""

import time
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.cli import _fit, _plots, _swing
from jaxdyn.cli._report import Report, compiled, timed
from jaxdyn.dynamics import forward_dynamics, gravity_forces, mass_matrix, rnea
from jaxdyn.kinematics import random_configuration
from jaxdyn.model import Model
from jaxdyn.robots import panda


@dataclass(frozen=True)
class Size:
    """How much the tour does."""

    samples: int = 1000
    duration: float = 2.0  # s, of each swing of the batch
    segments: int = 20
    differentiated: float = 0.8  # s, of the swing that is differentiated
    log: int = 1000
    noise: float = 0.1  # N m
    fit_steps: int = 1500
    fit_chunks: int = 10


DAMPING = 1.0  # N m s/rad
DIFFERENCE = 1e-5  # m and kg, of the central differences


def tour(out: Path, size: Size | None = None) -> Report:
    """Runs every part, prints what it found, and saves the plots in `out`."""
    size = Size() if size is None else size
    start = time.perf_counter()
    report = Report(steps=2 * size.segments + size.fit_chunks + 6)
    try:
        robot = panda()
        introduce(report, robot)
        evaluate(report, robot)
        swings = simulate(report, robot, size)
        slopes = differentiate(report, robot, size)
        fit = identify(report, robot, size)
        report.advance("plotting")
        files = _plots.save(out, _plots.Results(robot, *swings, *slopes, fit))
        report.section("Plots")
        for path in files:
            report.text(f"  {path}")
        report.text()
        verdict = "every check passed" if report.passed else "FAILED: " + "; ".join(report.failures)
        report.text(f"{verdict} in {time.perf_counter() - start:.0f} s")
    finally:
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
    batch = _swing.variants(model, DIFFERENCE)
    theirs = _swing.central_differences(model, jax.jit(jax.vmap(height))(batch), DIFFERENCE)
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
    report.advance("compiling the fit")
    true_robot = _swing.damped(robot, DAMPING)
    start = _fit.perturbation(robot, jax.random.key(4))
    log = jax.jit(lambda m, k: _fit.generated_log(m, k, size.log, size.noise))(true_robot, jax.random.key(5))
    init, run = _fit.descent(true_robot, size.noise, 0.03, size.fit_steps)
    state, losses = init(start), []
    count = size.fit_steps // size.fit_chunks
    chunk, compiling = compiled(lambda log, state: run(log, state, count), log, state)
    seconds = 0.0
    for _ in range(size.fit_chunks):
        report.advance("recovering parameters")
        (state, loss), spent = timed(chunk, log, state)
        losses.append(np.asarray(loss))
        seconds += spent
    found, losses = state[0], np.concatenate(losses)
    errors = jax.jit(lambda log, p: _fit.standard_errors(true_robot, log, size.noise, p))(log, found)
    fit = _plots.Fit(losses, *_table(true_robot, start, found, errors))
    report.section("Identification: parameters recovered from a log of one exciting motion")
    report.row("log", f"{size.log} samples in 10 s, noise {size.noise:g} N m, {fit.true.size} unknowns")
    report.row("fit", f"{losses.size} Adam steps in {seconds:.1f} s, compiled in {compiling:.1f} s")
    report.table(
        ("parameter", "start", "recovered", "true", "standard error"),
        ((n, *(f"{x:.3f}" for x in row)) for n, *row in zip(*fit[1:], strict=True)),
    )
    report.row("mean square residual, in units of the noise", f"{losses[0]:.3g} -> {losses[-1]:.3f}")
    worst = np.abs((fit.found - fit.true) / fit.error).max()
    report.check("largest error, in standard errors", float(worst), 5.0)
    return fit


def _table(robot: Model, start, found, errors):
    """Names, then start, recovered and true values and standard errors, of all that was fitted."""
    rows = _fit.fitted_links(robot)
    joints = [f"joint {k + 1}" for k in range(robot.nv)]
    names = [f"mass of {robot.link_names[i]} [kg]" for i in rows]
    names += [f"damping of {j} [N m s/rad]" for j in joints] + [f"friction of {j} [N m]" for j in joints]
    properties = robot.properties
    reference = np.concatenate([robot.links.mass[rows], properties.damping, properties.friction])
    start, found, errors = (np.concatenate(x) for x in (start, found, errors))
    value = reference * np.exp(found)
    return names, reference * np.exp(start), value, reference, value * errors
