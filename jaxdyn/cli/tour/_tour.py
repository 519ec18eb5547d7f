"""The tour: the library demonstrated on a seven-joint arm, with checks of the results."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.cli.terminal import Report, compile_and_time, run_and_time
from jaxdyn.cli.tour import _motions, _plots, _recover, _swing
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
    """Sizes of the parts of the tour."""

    samples: int = 1000
    duration: float = 2.0  # s, of each swing of the batch
    segments: int = 20
    differentiated: float = 0.8  # s, of the differentiated swing
    log: int = 1000  # samples
    noise: float = 0.1  # N m
    linkage: float = 5.0  # s, of the motion of the closed loop
    intervals: int = 40  # of the optimal trajectory


DAMPING = 1.0  # N m s/rad
DIFFERENCE = 1e-5  # m and kg, of the central differences


def tour(out: Path, size: Size | None = None) -> Report:
    """Runs every part, prints its results, and saves the figures in `out`."""
    size = Size() if size is None else size
    start = time.perf_counter()
    report = Report(steps=2 * size.segments + 10)
    background = ThreadPoolExecutor(1)  # compiles two independent parts on another core
    try:
        linkage = background.submit(
            run_and_time, _motions.simulate_linkage, 4.0, size.linkage, round(60 * size.linkage) + 1
        )
        swing_up = background.submit(run_and_time, _motions.solve_swing_up, size.intervals)
        robot = panda()
        describe_robot(report, robot)
        check_urdf_round_trip(report, robot, out)
        evaluate_dynamics(report, robot)
        check_inverse_kinematics(report, robot)
        swings = simulate_swings(report, robot, size)
        gradients = differentiate_swing(report, robot, size)
        fit = identify_parameters(report, robot, size)
        loop = report_linkage(report, size, linkage)
        optimum = report_swing_up(report, size, swing_up)
        report.advance("plotting")
        files = _plots.save_figures(out, _plots.Results(robot, *swings, *gradients, fit, loop, optimum))
        report.section("Plots")
        for path in files:
            report.text(f"  {path}")
        report.text()
        verdict = "every check passed" if report.passed else "FAILED: " + "; ".join(report.failures)
        report.text(f"{verdict} in {time.perf_counter() - start:.0f} s")
    finally:
        background.shutdown(wait=False, cancel_futures=True)
        report.close()
    return report


def describe_robot(report: Report, robot: Model):
    """Prints the size of the robot and the properties of the machine."""
    device = jax.devices()[0]
    report.section("The robot: a seven-joint arm, a pytree whose leaves are its physical numbers")
    report.row("links, moving joints", f"{robot.num_links}, {robot.nv}")
    report.row("mass", f"{float(robot.links.mass.sum()):.2f} kg")
    report.row("numbers with derivatives", f"{sum(x.size for x in jax.tree.leaves(robot))}")
    report.row("jax, device, precision", f"{jax.__version__}, {device.device_kind}, {robot.dtype}")


def check_urdf_round_trip(report: Report, robot: Model, out: Path):
    """Writes the robot to a URDF, reads it, and compares the inverse dynamics."""
    report.advance("files")
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{robot.name}.urdf"
    write_urdf(robot, path, without=("friction_velocity",))  # has no place in a URDF
    start = time.perf_counter()
    loaded = load_urdf(path)
    seconds = time.perf_counter() - start
    q, v, a = jax.random.normal(jax.random.key(6), (3, robot.nv))
    expected, found = (jax.jit(rnea)(model, q, v, a) for model in (robot, loaded))
    report.section("Files: written to a URDF and read again")
    report.row("file, time to read", f"{path}, {1e3 * seconds:.0f} ms")
    report.check(
        "inverse dynamics, relative difference", float(jnp.abs(expected - found).max() / jnp.abs(expected).max()), 1e-9
    )


def check_inverse_kinematics(report: Report, robot: Model):
    """Inverse kinematics for the tool poses of random configurations."""
    report.advance("inverse kinematics")
    targets = _swing.random_configurations(robot, jax.random.key(7), 100)
    middle = (robot.limits.lower + robot.limits.upper) / 2

    def solve_for_pose(model, q):
        target = frame_pose(model, q, _swing.TOOL)
        found = inverse_kinematics(model, _swing.TOOL, target, q0=(q + middle) / 2)
        return found.converged, found.error, found.iterations

    run, compiling = compile_and_time(jax.vmap(solve_for_pose, in_axes=(None, 0)), robot, targets)
    (good, error, iterations), seconds = run_and_time(run, robot, targets)
    report.section("Inverse kinematics: a hundred poses of the tool, within the joint limits")
    report.row(
        "converged, mean number of iterations", f"{int(good.sum())} of {good.size}, {float(iterations.mean()):.0f}"
    )
    report.row("time", f"{1e3 * seconds:.0f} ms in total, compiled in {compiling:.1f} s")
    report.check("largest error if converged, rad and m", float(jnp.where(good, error, 0).max()), 1e-6)
    report.check("share not converged", float(1 - good.mean()), 0.1)


def evaluate_dynamics(report: Report, robot: Model):
    """Forward and inverse dynamics of one state."""
    report.advance("dynamics")
    q = random_configuration(robot, jax.random.key(1))
    v, tau = jax.random.normal(jax.random.key(2), (2, robot.nv))

    def quantities(model, q, v, tau):
        a = forward_dynamics(model, q, v, tau)
        return gravity_forces(model, q), mass_matrix(model, q), a, rnea(model, q, v, a) - tau

    run, compiling = compile_and_time(quantities, robot, q, v, tau)
    (gravity, mass, a, residual), _ = run_and_time(run, robot, q, v, tau)
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
    report.row("compilation", f"{compiling:.2f} s")
    report.check("smallest eigenvalue, negated", -float(moments.min()), 0.0)
    report.check("RNEA(FD(tau)) - tau, relative", float(jnp.abs(residual).max() / jnp.abs(tau).max()), 1e-10)


def simulate_swings(report: Report, robot: Model, size: Size):
    """Simulates a batch of swings with friction, and the same without."""
    report.advance("compiling the batch")
    segment = size.duration / size.segments
    q, v = _swing.random_starts(robot, size.samples)
    frictionless, damped = _swing.without_friction(robot), _swing.with_damping(robot, DAMPING)
    saved = 5
    run, compiling = compile_and_time(_swing.segment_function(segment, saved), frictionless, q, v)
    report.section(f"Simulation: {size.samples} arms released at random, {size.duration:g} s each")
    report.row("solver", f"Tsit5, {round(segment / saved * 1e3):d} ms saved, {_swing.STEP * 1e3:g} ms steps")
    report.row("compilation", f"{compiling:.1f} s")
    results = []
    for name, model in (("with friction", damped), ("without friction", frictionless)):
        state, parts, seconds = (q, v), [], 0.0
        for _ in range(size.segments):
            report.advance(f"{size.samples} swings, {name}")
            part, elapsed = run_and_time(run, model, *state)
            state = (part[0][:, -1], part[1][:, -1])
            parts.append(part)
            seconds += elapsed
        swings = _swing.concatenate_segments(model, (q, v), parts, size.duration)
        simulated = size.samples * size.duration
        report.row(f"{name}: time", f"{seconds:.2f} s, {simulated / seconds:,.0f} times real time")
        results.append(swings)
    damped, ideal = results
    scale = float(np.ptp(ideal.energy[:, 0]))
    drift = np.abs(ideal.energy - ideal.energy[:, :1]).max(1) / scale
    gain = np.diff(damped.energy, axis=1).max() / scale
    report.row("without friction: energy drift, median", f"{np.median(drift):.1e} of the batch's range")
    report.check("without friction: energy drift, worst", float(drift.max()), 1e-3)
    report.check("with friction: largest gain of energy", float(gain), 1e-6)
    return damped, ideal


def differentiate_swing(report: Report, robot: Model, size: Size):
    """Derivatives of the final height of one swing with respect to lengths and masses, and central differences."""
    report.advance("gradient of a swing")
    model = _swing.with_damping(robot, DAMPING)
    q, v = random_configuration(robot, jax.random.key(3)), jnp.zeros(robot.nv)
    height = lambda m: _swing.final_height(m, q, v, size.differentiated)
    run, compiling = compile_and_time(jax.value_and_grad(height), model)
    (value, gradient), seconds = run_and_time(run, model)
    report.advance("central differences")
    gradients = _swing.select_sensitivities(model, gradient)
    batch = jax.tree.map(np.asarray, _swing.perturbed_models(model, DIFFERENCE))
    each = (jax.tree.map(lambda x, k=k: x[k], batch) for k in range(batch.links.mass.shape[0]))
    differences = _swing.central_differences(model, [run(other)[0] for other in each], DIFFERENCE)
    report.section(f"Derivatives: height of the tool after {size.differentiated:g} s of one swing")
    report.row("height", f"{float(value):.4f} m")
    report.row("gradient with respect to every leaf", f"{seconds * 1e3:.0f} ms, compiled in {compiling:.1f} s")
    report.table(
        ("link", "length [m/m]", "differences", "mass [m/kg]", "differences"),
        (
            (name, *(f"{x:+.7f}" if has else "" for x in (a, b)), f"{c:+.7f}", f"{d:+.7f}")
            for name, has, a, b, c, d in zip(
                gradients.links,
                gradients.has_length,
                gradients.length,
                differences.length,
                gradients.mass,
                differences.mass,
                strict=True,
            )
        ),
    )
    for name in ("length", "mass"):
        a, b = getattr(gradients, name), getattr(differences, name)
        report.check(f"{name}: largest difference, relative", np.abs(a - b).max() / np.abs(b).max(), 1e-6)
    return gradients, differences


def identify_parameters(report: Report, robot: Model, size: Size) -> _plots.Fit:
    """Identifies perturbed masses and friction from a noisy log."""
    report.advance("identifying parameters")
    true_robot = _swing.with_damping(robot, DAMPING)
    start = _recover.perturb_model(true_robot, jax.random.key(4))
    log = _recover.generate_log(true_robot, jax.random.key(5), size.log, size.noise)
    begin = time.perf_counter()
    result = _recover.identify_losses_and_masses(start, log)
    seconds = time.perf_counter() - begin
    true = np.asarray(collect(System(true_robot), _recover.fitted_parameters(true_robot)).read())
    columns = np.array([(row.prior, row.value, row.deviation) for row in result.parameters]).T
    names = [row.name for row in result.parameters]
    fit = _plots.Fit(names, columns[0], columns[1], true, columns[2])
    report.section("Identification: parameters from a log of one exciting motion")
    report.row("log", f"{size.log} samples in {log.t[-1]:.0f} s, noise {size.noise:g} N m, {fit.true.size} parameters")
    report.row(
        "Levenberg-Marquardt", f"{result.status.name}, {result.steps} steps, {seconds:.1f} s including compilation"
    )
    report.table(
        ("parameter", "start", "identified", "true", "standard error"),
        ((n, *(f"{x:.3f}" for x in row)) for n, *row in zip(*fit, strict=True)),
    )
    deviation = max(abs(error.fit / size.noise - 1) for error in result.errors)
    report.check("residuals relative to the noise, largest deviation", deviation, 0.1)
    worst = np.abs((fit.identified - fit.true) / fit.error).max()
    report.check("largest error, in standard errors", float(worst), 5.0)
    return fit


def report_linkage(report: Report, size: Size, linkage: Future) -> _motions.Loop:
    """Prints the result for the four-bar linkage, simulated with Lagrange multipliers."""
    report.advance("a closed loop")
    loop, seconds = linkage.result()
    report.section(f"Closed loop: {size.linkage:g} s of a four-bar linkage")
    report.row("time", f"{seconds:.1f} s including compilation, in the background")
    drift = np.abs(loop.energy - loop.energy[0]).max() / loop.energy[0]
    report.check("largest gap of the closure [m]", float(loop.gap.max()), 1e-9)
    report.check("energy drift, relative", float(drift), 1e-6)
    return loop


def report_swing_up(report: Report, size: Size, swing_up: Future) -> Solution:
    """Prints the result for the swing-up of a cart-pole with the minimal integral of force squared."""
    report.advance("an optimal trajectory")
    optimum, seconds = swing_up.result()
    report.section("Optimal control: swing-up of a cart-pole in 2 s")
    report.row(
        "method", f"Hermite-Simpson, {size.intervals} intervals, interior point: {int(optimum.iterations)} iterations"
    )
    report.row(
        "time", f"{1e3 * (optimum.run_seconds or 0.0):.0f} ms, {seconds:.1f} s including compilation, in the background"
    )
    report.row("cost, published cost", f"{float(optimum.cost):.4f}, {_motions.OPTIMUM} N2 s")
    report.check("relative difference", abs(float(optimum.cost) / _motions.OPTIMUM - 1), 1e-4)
    return optimum
