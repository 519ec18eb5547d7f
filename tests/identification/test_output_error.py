"""Fits of simulated motion."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import drive
from jaxdyn.identification import Log, OutputError, Physical, Windows, fit, simulation_error
from jaxdyn.identification._output_error import Held, simulated
from jaxdyn.simulation import cubic_signal, simulate

TRUTH = jd.robots.pendulum(damping=0.3)
WINDOWS = Windows(length=0.3, stride=0.15, every=3, lead=0.06)


def log_of_a_drive():
    """A pendulum pushed through a drive that is late by 30 ms."""
    t = jnp.linspace(0.0, 3.0, 301)
    command = (2 * jnp.sin(7 * t) + 1.5 * jnp.cos(3 * t))[:, None]
    late = drive(TRUTH, delay=0.03, command=cubic_signal(t, command).path)
    run = simulate(jd.System(TRUTH, (late,)), jnp.array([0.3]), jnp.zeros(1), t)
    noise = np.random.default_rng(0).normal(0, 1e-4, run.q.shape)
    return Log(t, run.q + noise, run.v, None, command, "pushed")


@pytest.mark.slow
def test_damping_and_delay_are_found_without_accelerations():
    log = log_of_a_drive()
    start = eqx.tree_at(lambda m: m.properties.damping, TRUTH, jnp.array([0.1]))
    system = jd.System(start, (drive(start, delay=0.01),))
    paths = ("joints[*].damping", "parts[Drive].delay")
    method = OutputError(WINDOWS, Physical(reweight=0, rtol=1e-6))
    found = fit(system, [log], paths, method, weights=jnp.array([1e3])).checked()
    assert found.value("parts[Drive].delay[" + TRUTH.joint_names[0] + "]") == pytest.approx(0.03, abs=2e-3)
    assert found.value("joints[" + TRUTH.joint_names[0] + "].damping") == pytest.approx(0.3, abs=0.03)
    before, after = (simulation_error(s, [log], WINDOWS)[0] for s in (system, found.system))
    assert after < 0.1 * before
    assert found.errors[0].unit == "rad"


def ball() -> jd.Model:
    """A body on a spherical joint, whose rate of q is not v."""
    b = jd.ModelBuilder()
    b.add_link("bob", "world", jd.joints.Spherical(), jd.spatial.box((0.1, 0.2, 0.3), mass=1.0).moved([0, 0.1, -0.4]))
    return b.build()


@pytest.mark.slow
@pytest.mark.parametrize("model", [TRUTH, ball()], ids=["vector", "manifold"])
def test_windows_move_as_simulate_does(model):
    ts, step = jnp.linspace(0, 0.3, 11), jnp.asarray(0.01)
    q = jd.random_configuration(model, jax.random.key(0))
    v = jnp.linspace(0.5, -0.4, model.nv)
    efforts = jnp.asarray(np.random.default_rng(0).normal(size=(37, model.nv)))
    late = drive(model, delay=0.03)
    sample = (ts, jnp.tile(q, (11, 1)), v, jnp.asarray(-0.06), step, efforts)
    found = simulated(jd.System(model, (late,)), WINDOWS, sample)
    path = drive(model, delay=0.03, command=Held(jnp.asarray(-0.06), step, efforts))
    run = simulate(jd.System(model, (path,)), q, v, ts, dt=step, solver=WINDOWS.solver)
    np.testing.assert_allclose(found, run.q, atol=1e-12)


def test_windows_that_do_not_fit_are_refused():
    t = np.linspace(0, 0.2, 21)
    short = Log(t, np.zeros((21, 1)), np.zeros((21, 1)), None, np.zeros((21, 1)), "short")
    with pytest.raises(jd.ShapeError, match="holds no window"):
        simulation_error(TRUTH, [short], WINDOWS)
    uneven = eqx.tree_at(lambda x: x.t, short, jnp.asarray(t**2))
    with pytest.raises(jd.ShapeError, match="uneven"):
        simulation_error(TRUTH, [uneven], WINDOWS)
