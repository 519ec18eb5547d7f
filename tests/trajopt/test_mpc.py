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


@pytest.mark.slow
def test_a_pendulum_is_swung_up_and_held_with_a_weak_motor():
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
    law = to.ModelPredictive(problem, intervals=30, iterations=10, feedback=True)
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


def test_only_robots_are_driven():
    field = to.VectorField(lambda t, x, u, p: u, ("x",), ("u",))
    with pytest.raises(jd.ModelError, match="drives a Robot"):
        to.ModelPredictive(to.Problem(field, 1.0, start=jnp.zeros(1)))
