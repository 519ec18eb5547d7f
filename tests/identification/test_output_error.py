"""The output-error method: fits of simulated to measured motion."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import drive, joint_friction
from jaxdyn.identification import (
    AbstractMethod,
    FitStatus,
    FreeStart,
    GeometricPrior,
    Log,
    MeasuredStart,
    OutputError,
    Physical,
    Windows,
    fit,
    simulation_error,
)
from jaxdyn.identification.methods import Estimate
from jaxdyn.identification.methods.windows._simulation import simulate_window
from jaxdyn.identification.methods.windows._windows import UniformPath, WindowSample
from jaxdyn.simulation import cubic_signal, simulate

TRUTH = jd.robots.pendulum(damping=0.3)
WINDOWS = Windows(length=0.3, stride=0.15, every=3, lead=0.06)


def log_of_a_drive():
    """A pendulum under a drive with a delay of 30 ms."""
    t = jnp.linspace(0.0, 3.0, 301)
    command = (2 * jnp.sin(7 * t) + 1.5 * jnp.cos(3 * t))[:, None]
    late = drive(TRUTH, delay=0.03, command=cubic_signal(t, command).path)
    run = simulate(jd.System(TRUTH, (late,)), jnp.array([0.3]), jnp.zeros(1), t)
    noise = np.random.default_rng(0).normal(0, 1e-4, run.q.shape)
    return Log(t, run.q + noise, run.v, None, command, "pushed")


@pytest.mark.exhaustive
def test_damping_and_delay_from_motion():
    """Only two sums of damping and viscous friction of both directions are identifiable."""
    log, name = log_of_a_drive(), TRUTH.joint_names[0]
    start = eqx.tree_at(lambda m: m.properties.damping, TRUTH, jnp.array([0.1]))
    system = jd.System(start, (drive(start, delay=0.01), joint_friction(start, viscous=0.1)))
    slips = [f"parts[JointFriction].viscous_{way}" for way in ("forward", "backward")]
    paths = ("joints[*].damping", "parts[Drive].delay", *slips)
    method = OutputError(WINDOWS, Physical(reweight=0, rtol=1e-6))
    # far weaker than the data and far above rounding errors: it decides the unobservable direction
    prior = GeometricPrior(spread=1e-3)
    found = fit(system, [log], paths, method, prior=prior, weights=jnp.array([1e3])).checked()
    damping, forward, backward = (found.value(x) for x in (f"joints[{name}].damping", *(f"{x}[{name}]" for x in slips)))
    assert found.value(f"parts[Drive].delay[{name}]") == pytest.approx(0.03, abs=2e-3)
    assert damping + forward == pytest.approx(0.3, abs=0.03) and damping + backward == pytest.approx(0.3, abs=0.03)
    (direction,) = found.unobservable
    assert "damping" in direction and direction.count("viscous") == 2
    assert damping - forward - backward == pytest.approx(0.1 - 0.1 - 0.1, abs=1e-4)
    before, after = (simulation_error(s, [log], WINDOWS)[0] for s in (system, found.system))
    assert after < 0.1 * before
    assert found.errors[0].unit == "rad"


def upright() -> jd.Model:
    """A pole on a hinge, upright at zero: an unstable robot whose deviation grows fourfold in a third of a second."""
    b = jd.ModelBuilder()
    body = jd.spatial.box((0.1, 0.1, 0.8), mass=1.0).moved([0.0, 0, 0.5])
    b.add_link("pole", "world", jd.joints.Revolute([0, 1, 0]), body, joint_name="hinge", damping=0.3)
    return b.build()


POLE = upright()
SWAY = Windows(length=0.6, every=3, lead=0.0)


@jax.jit
def required_efforts(q, v, a):
    return jax.vmap(lambda q, v, a: jd.rnea(POLE, q, v, a) - jd.passive_forces(POLE, q, v))(q, v, a)


def noisy_log(seed: int) -> Log:
    """12 s of the pole along a motion near the upright position, with noise of 2 mrad and 0.1 rad/s."""
    t, w = np.arange(600) * 0.02, np.array([1.1, 2.3, 4.7])
    angle = np.outer(t, w) + np.arange(3)
    q, v, a = ((np.array([0.5, 0.3, 0.1]) * w**k * np.sin(angle + k * np.pi / 2)).sum(1)[:, None] for k in range(3))
    u, rng = required_efforts(q, v, a), np.random.default_rng(seed)
    return Log(t, q + rng.normal(0, 2e-3, q.shape), v + rng.normal(0, 0.1, q.shape), None, u)


@pytest.mark.exhaustive
def test_free_starts_of_an_unstable_robot_are_unbiased():
    """Mass and damping of a pole are within their standard deviations with free starts, but not with measured ones."""
    fields = lambda m: (m.links.mass, m.properties.damping)
    guess = eqx.tree_at(fields, POLE, (1.2 * POLE.links.mass, jnp.array([0.1])))
    paths, truth = ("links[*].mass", "joints[*].damping"), np.array([1.0, 0.3])
    fits = lambda start, logs: [fit(guess, noisy_log(k), paths, pole_method(start)).checked() for k in range(logs)]
    error = lambda found: np.array([row.value for row in found.parameters]) - truth
    free = fits(FreeStart(), 6)
    deviations = np.array([[row.deviation for row in found.parameters] for found in free])
    z = np.array([error(found) for found in free]) / deviations
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.5 and np.abs(z.mean(0)).max() < 1.3
    assert free[0].errors[0].fit == pytest.approx(2e-3, rel=0.1)
    measured = error(fits(MeasuredStart(), 1)[0])
    assert (np.abs(measured) > 8 * deviations[0]).any()


def pole_method(start) -> OutputError:
    return OutputError(SWAY, Physical(reweight=0, rtol=1e-6), start)


class LongDelay(AbstractMethod):
    """A solver whose estimate of the delay exceeds the lead of the windows."""

    def problem(self, parameters, logs):
        raise NotImplementedError

    def solve(self, problem, prior, weights, tell):
        unused: Any = None
        return Estimate(np.array([0.5]), FitStatus.CONVERGED, 1, (0.0, 0.0), np.ones(1), unused, unused)


def ball() -> jd.Model:
    """A body on a spherical joint, whose velocity v is not the time derivative of q."""
    b = jd.ModelBuilder()
    b.add_link("bob", "world", jd.joints.Spherical(), jd.spatial.box((0.1, 0.2, 0.3), mass=1.0).moved([0, 0.1, -0.4]))
    return b.build()


@pytest.mark.slow
@pytest.mark.parametrize("model", [TRUTH, ball()], ids=["vector", "manifold"])
def test_windows_agree_with_simulate(model):
    ts, step = jnp.linspace(0, 0.3, 11), jnp.asarray(0.01)
    q = jd.random_configuration(model, jax.random.key(0))
    v = jnp.linspace(0.5, -0.4, model.nv)
    efforts = jnp.asarray(np.random.default_rng(0).normal(size=(37, model.nv)))
    late = drive(model, delay=0.03)
    sample = WindowSample(ts, jnp.tile(q, (11, 1)), v, jnp.asarray(-0.06), step, efforts)
    found, _ = simulate_window(jd.System(model, (late,)), WINDOWS, sample)
    path = drive(model, delay=0.03, command=UniformPath(jnp.asarray(-0.06), step, efforts))
    run = simulate(jd.System(model, (path,)), q, v, ts, dt=step, solver=WINDOWS.solver)
    np.testing.assert_allclose(found, run.q, atol=1e-12)


def test_delays_beyond_the_lead_of_the_windows_are_rejected():
    t = np.linspace(0, 2, 201)
    log, late = Log(t, *np.zeros((2, 201, 1)), None, np.zeros((201, 1)), "late"), drive(TRUTH, delay=0.2)
    with pytest.raises(jd.ModelError, match="0.2 s; windows hold the efforts of 0.06 s"):
        simulation_error(jd.System(TRUTH, (late,)), [log], WINDOWS)
    with pytest.raises(jd.ModelError, match="longer lead"):
        fit(jd.System(TRUTH, (late,)), log, "parts[Drive].delay", OutputError(WINDOWS))
    few = OutputError(Windows(length=0.3, every=30, lead=0.2), start=FreeStart())
    with pytest.raises(jd.ShapeError, match="compare 2 samples"):
        fit(jd.System(TRUTH, (late,)), log, "parts[Drive].delay", few)
    method = OutputError(WINDOWS, LongDelay())
    with pytest.raises(jd.ModelError, match="longer lead"):
        fit(jd.System(TRUTH, (drive(TRUTH, delay=0.01),)), log, "parts[Drive].delay", method)


def test_short_and_uneven_logs_are_rejected():
    t = np.linspace(0, 0.2, 21)
    short = Log(t, np.zeros((21, 1)), np.zeros((21, 1)), None, np.zeros((21, 1)), "short")
    with pytest.raises(jd.ShapeError, match="holds no window"):
        simulation_error(TRUTH, [short], WINDOWS)
    uneven = eqx.tree_at(lambda x: x.t, short, jnp.asarray(t**2))
    with pytest.raises(jd.ShapeError, match="uneven"):
        simulation_error(TRUTH, [uneven], WINDOWS)
