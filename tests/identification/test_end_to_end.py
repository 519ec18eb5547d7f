"""From a simulated robot under a controller, through a raw log with all its defects, to the robot's parameters."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor
from jaxdyn.identification import Log, OutputError, Physical, Preparation, Table, Windows, fit, prepare
from jaxdyn.simulation import cubic_signal, simulate

from .synthetic_logs import arm, perturb_model

SMOOTH = lambda m: eqx.tree_at(lambda m: m.properties.friction_velocity, m, jnp.full(m.nv, 0.2))
TRUTH = SMOOTH(arm(2))
W = 2 * np.pi * np.array([[0.31, 0.83], [0.47, 1.1]])
SIZE = np.array([[0.9, 0.3], [0.8, 0.3]])


def _controlled_run(seed: int, late: int = 6) -> Table:
    """A log of a robot under a controller: noise, quantisation, lost rows, and efforts with a delay of 12 ms."""
    reference = lambda t, k: jnp.sum(SIZE * W**k * jnp.sin(W * t + k * jnp.pi / 2 + seed), axis=1)

    def law(t, q, v):
        return 60 * (reference(t, 0) - q) + 12 * (reference(t, 1) - v)

    ts = jnp.arange(0.0, 16.0, 0.002)
    run = simulate(TRUTH, reference(0.0, 0), reference(0.0, 1), ts, effort=law, dt=0.001).checked()
    efforts = np.asarray(jax.vmap(law)(ts, run.q, run.v))
    rng = np.random.default_rng(seed)
    noisy = lambda x, noise, step: step * np.round((x + noise * rng.normal(size=x.shape)) / step)
    q = noisy(np.asarray(run.q)[late:], 1e-5, 2 * np.pi / 2**16)
    u = noisy(efforts[:-late], 0.05, 0.02)
    rows = np.sort(rng.choice(len(q), len(q) - 100, replace=False))  # some rows are lost
    names = TRUTH.joint_names
    columns = {"t": np.asarray(ts)[late:]}
    columns |= {f"q.{n}": q[:, k] for k, n in enumerate(names)} | {f"effort.{n}": u[:, k] for k, n in enumerate(names)}
    return Table(f"run {seed}", {name: x[rows] for name, x in columns.items()})


@pytest.mark.slow
def test_controlled_robot_is_identified_within_its_standard_deviations():
    tables = [_controlled_run(seed) for seed in (0, 1)]
    logs, report = prepare(tables, TRUTH, None, Preparation(cutoff=12.0, effort_delay=None, longest_delay=0.05))
    np.testing.assert_allclose(list(report.runs[0].effort_delay.values()), 0.012, atol=1e-3)
    paths = ("links[*].inertial", "joints[*].damping", "joints[*].friction")
    start = perturb_model(TRUTH)
    found = fit(start, logs[:1], paths, Physical(), held_out=logs[1:]).checked()
    known = fit(TRUTH, logs[:1], paths, Physical()).base  # the same base parameters of the true robot
    assert [b.name for b in known] == [b.name for b in found.base] and found.is_physical
    errors = np.array([(b.value - k.prior) / b.deviation for b, k in zip(found.base, known, strict=True)])
    assert np.abs(errors).max() < 4 and np.sqrt(np.mean(errors**2)) < 2
    before = np.array([(b.prior - k.prior) / b.deviation for b, k in zip(found.base, known, strict=True)])
    assert np.abs(before).max() > 30  # the initial error is many standard deviations
    assert found.relative_error_held_out < 1.2 * found.relative_error


@pytest.mark.exhaustive
def test_inductance_of_a_motor_from_motion():
    """The current is a state without a column; `L di/dt = u - R i - K n v` delays the effort by `L / R` = 0.1 s."""
    robot = jd.robots.pendulum(damping=0.2)
    t = jnp.arange(0.0, 3.0, 0.01)
    path = cubic_signal(t, (6 * jnp.sin(5 * t) + 4 * jnp.cos(11 * t))[:, None]).path
    law = lambda t, q, v: path.evaluate(t)[0]
    motor = lambda inductance, gear: jd.System(
        robot,
        (DcMotor(robot.joint_names[0], law, constant=0.1, resistance=0.8, inductance=inductance, gear=gear),),
    )
    ts = jnp.arange(0.0, 2.0, 0.01)
    run = simulate(motor(0.08, 8.0), jnp.array([0.3]), jnp.zeros(1), ts)
    # windows start without current, as the log does
    log = Log(t=ts, q=run.q, v=run.v, a=None, effort=jnp.zeros_like(run.v))
    method = OutputError(Windows(length=1.9, every=5, lead=0.0, substeps=2), Physical(reweight=0), chunk=1)
    paths = ("parts[DcMotor].inductance", "parts[DcMotor].gear")
    found = fit(motor(0.05, 7.0), log, paths, method, weights=[1e3]).checked()
    assert found.value("parts[DcMotor].inductance") == pytest.approx(0.08, rel=0.01)
    assert found.value("parts[DcMotor].gear") == pytest.approx(8.0, rel=0.01)
