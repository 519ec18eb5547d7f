"""Optimal control of a point mass, with the optimum of the discretised problem in closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import trajopt as to
from jaxdyn.joints import Prismatic

MASS, INTERVALS, DURATION = 2.0, 4, 1.0


def _effort(t, x, u):
    return u @ u


def _slider():
    b = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    return b.add_link("mass", "world", Prismatic((1, 0, 0)), jd.spatial.point_mass(MASS)).build()


def _field(t, x, u, parameters):
    return jnp.stack([x[1], u[0] / MASS])


def _problem(dynamics):
    return to.Problem(dynamics, DURATION, start=jnp.zeros(2), end=jnp.array([1.0, 0.0]), running=_effort)


def test_collocation_and_its_errors():
    """The optimal force is linear in time and the position a cubic: exact in one interval of Hermite-Simpson."""
    problem = _problem(to.VectorField(_field, ("x", "v"), ("force",)))
    found = to.solve_refined(problem, intervals=INTERVALS, error=1e-6, rounds=1)
    solution = found.checked().solutions[-1]
    assert abs(solution.cost - 12 * MASS**2) < 1e-6
    np.testing.assert_allclose(to.interval_errors(solution), 0, atol=1e-6)


def test_ipopt():
    pytest.importorskip("ipyopt")
    found = to.ipopt(_problem(to.VectorField(_field, ("x", "v"), ("force",))), intervals=INTERVALS)
    assert found.status == to.SolveStatus.SOLVED
    assert abs(found.cost - 12 * MASS**2) < 1e-6


def _least_forces():
    """Forces held over the intervals: the least-norm solution of the terminal conditions."""
    h = DURATION / INTERVALS
    ends = np.arange(INTERVALS, 0, -1) * h
    response = np.stack([(ends**2 - (ends - h) ** 2) / 2, np.full(INTERVALS, h)]) / MASS
    return np.linalg.pinv(response) @ [1.0, 0.0]


def test_multi_start_and_tracking():
    model, h, force = _slider(), DURATION / INTERVALS, _least_forces()
    problem = _problem(to.Robot(model))
    guesses = to.draw_guesses(problem, jax.random.key(0), 2, spread=0.3)
    best = to.multi_start(problem, guesses, method=to.ilqr, intervals=INTERVALS, batch=1).best
    assert best.status == to.SolveStatus.SOLVED
    np.testing.assert_allclose(best.u[:-1, 0], force, rtol=1e-4)
    law = to.tracking_law(model, best)
    np.testing.assert_allclose(law(0.0, best.x[0, :1], best.x[0, 1:])[0], force[0], rtol=1e-4)
    np.testing.assert_allclose(law(h, best.x[1, :1], best.x[1, 1:])[0], force[1], rtol=1e-4)


def test_single_shooting():
    found = to.single_shooting(_problem(to.VectorField(_field, ("x", "v"), ("force",))), intervals=INTERVALS)
    assert found.status == to.SolveStatus.SOLVED
    np.testing.assert_allclose(found.u[:-1, 0], _least_forces(), rtol=1e-3)


def test_runge_kutta_step():
    """Exact for polynomials in time up to the third degree."""
    assert abs(to.rk4(lambda t, y: 4 * t**3, 0.5, 0.0, 1.0) - (1.5**4 - 0.5**4)) < 1e-14
