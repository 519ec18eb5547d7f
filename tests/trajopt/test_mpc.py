"""Model-predictive control in closed loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import trajopt as to
from jaxdyn.simulation import System
from jaxdyn.trajopt import SolveStatus

PENDULUM = jd.robots.pendulum(damping=0.05)


def upright(t, x, u):
    return 10 * (1 + jnp.cos(x[0])) + 0.1 * x[1] ** 2 + 0.01 * u @ u


def arrived(t, x):
    return 100 * (1 + jnp.cos(x[0])) + 10 * x[1] ** 2


@pytest.mark.exhaustive
def test_swing_up_and_balance_of_a_pendulum_with_a_weak_motor():
    limit = 4.0  # holding it level takes 9.81 N m
    problem = to.Problem(
        to.Robot(PENDULUM),
        1.5,
        start=jnp.zeros(2),
        running=upright,
        final=arrived,
        bounds=to.Bounds(lower_control=-limit, upper_control=limit),
        guess=to.Guess(jnp.array([0.0, 1.0]), jnp.zeros((2, 2)), 0.5 * jnp.ones((2, 1))),
    )
    law = to.ModelPredictive(problem, intervals=30, solver=to.WarmILQR(10), feedback=True)
    assert law.period == pytest.approx(0.05)
    run = jax.jit(
        lambda q: jd.simulate(System(PENDULUM, (law,)), q, jnp.zeros(1), jnp.linspace(0.0, 5.0, 101), dt=0.025)
    )
    path = run(jnp.array([0.05]))
    assert path.status == jd.SimulationStatus.FINISHED
    plans = path.parts[0].acting
    assert np.abs(plans.u).max() <= limit
    assert abs(np.cos(path.q[-1, 0]) + 1) < 1e-4
    assert abs(path.v[-1, 0]) < 0.02
    # warm starts: near the end the old plan is as good as optimal
    assert plans.iterations[-1] <= 3
    assert plans.status[-1] == SolveStatus.SOLVED


def wave(t, x, u):
    """The pendulum is to follow sin 2t."""
    return 100 * (x[0] - jnp.sin(2 * t)) ** 2 + (x[1] - 2 * jnp.cos(2 * t)) ** 2 + 1e-4 * u @ u


def pendulum(t, x, u, p):
    """The equations of `PENDULUM` written by hand, which compile faster."""
    return jnp.stack([x[1], u[0] - 0.05 * x[1] - p * jnp.sin(x[0])])


def push(t, x, u):
    return u


def follower(dynamics, **options):
    bounds = to.Bounds(lower_control=-30.0, upper_control=30.0)
    problem = to.Problem(dynamics, 0.5, start=jnp.zeros(2), running=wave, bounds=bounds)
    return to.ModelPredictive(problem, intervals=10, **options)


@pytest.mark.slow
def test_tracking_of_a_moving_reference_with_a_delay_of_one_sample():
    field = to.VectorField(pendulum, ("angle", "rate"), ("effort",), jnp.asarray(9.81))
    law = follower(field, efforts=push, delay=0.05)
    ts = jnp.linspace(0.0, 2.0, 41)
    path = jax.jit(lambda q: jd.simulate(System(PENDULUM, (law,)), q, jnp.zeros(1), ts, dt=0.025))(jnp.array([0.05]))
    late = np.asarray(ts) > 0.7
    assert np.abs(path.q[:, 0] - np.sin(2 * ts))[late].max() < 1e-3
    # plans begin where the robot is when they begin to act, although they are made a sample before
    plans = path.parts[0].acting
    begun = np.round(np.asarray(plans.time) / 0.05).astype(int)
    there = np.stack([path.q[begun, 0], path.v[begun, 0]], 1)
    np.testing.assert_allclose(plans.x[late, 0], there[late], atol=1e-4)  # one Runge-Kutta step of 50 ms
    assert (begun[late] >= np.arange(41)[late] - 1).all()


@pytest.mark.exhaustive
def test_both_replanners_agree_and_derivatives_equal_the_gains():
    field = to.VectorField(pendulum, ("angle", "rate"), ("effort",), jnp.asarray(9.81))
    direct = follower(field, efforts=push, solver=to.WarmILQR(30, tolerance=1e-12, second_order=True))
    interior = follower(field, efforts=push, solver=to.WarmInteriorPoint(60, tolerance=1e-9))
    state = jnp.array([0.3, -0.4])

    def planned(law, x):
        before = law.initial(PENDULUM, jnp.zeros(1), jnp.zeros(1))
        return law.sample(PENDULUM, 1.2, x[:1], x[1:], before)

    ours, other = (jax.jit(lambda x, law=law: planned(law, x))(state) for law in (direct, interior))
    assert ours.status == other.status == SolveStatus.SOLVED
    np.testing.assert_allclose(ours.u, other.u, atol=1e-4 * np.abs(other.u).max())
    np.testing.assert_allclose(ours.x, other.x, atol=1e-6)
    by_state = jax.jit(jax.jacfwd(lambda x: planned(direct, x).u[0]))(state)
    np.testing.assert_allclose(by_state, ours.gain, rtol=1e-6)
    with pytest.raises(jd.ModelError, match="have no gains"):
        follower(to.Robot(PENDULUM), solver=to.WarmInteriorPoint(), feedback=True)


def test_dynamics_other_than_robots_need_efforts():
    field = to.VectorField(lambda t, x, u, p: u, ("x",), ("u",))
    with pytest.raises(jd.ModelError, match="needs the dynamics of a Robot"):
        to.ModelPredictive(to.Problem(field, 1.0, start=jnp.zeros(1)))


def test_unsupported_problems_raise():
    field = to.VectorField(pendulum, ("angle", "rate"), ("effort",), jnp.asarray(9.81))
    given = {"start": jnp.zeros(2), "running": wave}
    controller = lambda **options: to.ModelPredictive(to.Problem(field, 0.5, **given, **options), efforts=push)
    with pytest.raises(jd.ModelError, match="ModelPredictive cannot solve this problem: its horizon is free"):
        controller(free_duration=True)
    with pytest.raises(jd.ModelError, match="it limits control rates"):
        controller(bounds=to.Bounds(control_rate=1.0))
