"""Single shooting compared with the other methods."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn import trajopt as to
from jaxdyn.trajopt import SolveStatus

from .problems import push
from .test_ilqr import box_problem, double_integrator, quadratic


@pytest.mark.slow
def test_single_shooting_agrees_with_ilqr():
    problem = double_integrator(1.5, running=quadratic)
    other = to.ilqr(problem, intervals=20)
    found = to.single_shooting(problem, intervals=20, tolerance=1e-6)
    assert found.status == SolveStatus.SOLVED
    np.testing.assert_allclose(found.cost, other.cost, rtol=1e-8)
    np.testing.assert_allclose(found.u, other.u, atol=1e-4)


@pytest.mark.exhaustive
def test_terminal_conditions_and_other_optimisers():
    other = to.ilqr(box_problem(), intervals=20)
    found = to.single_shooting(box_problem(), intervals=20, tolerance=1e-4)
    assert found.status == SolveStatus.SOLVED
    np.testing.assert_allclose(found.cost, other.cost, rtol=1e-3)
    problem = double_integrator(1.5, running=quadratic)
    slow = to.single_shooting(problem, intervals=20, optimiser=optax.adam(0.05), steps=2000, rounds=1, tolerance=1e-3)
    np.testing.assert_allclose(slow.cost, to.ilqr(problem, intervals=20).cost, rtol=1e-4)


@pytest.mark.exhaustive
def test_derivatives_of_single_shooting():
    """The cost is quadratic, the controls are linear in mass and distance; the mass leaves the trajectory unchanged."""
    n, m, d, T = 10, 2.0, 1.5, 1.2

    def moves(m, d):
        found = to.single_shooting(push(m, d), intervals=n, tolerance=1e-6, rounds=20)
        return found.cost, found.u, found.x

    cost, u, x = moves(m, d)
    by_mass, by_distance = zip(*jax.jit(jax.jacfwd(moves, (0, 1)))(m, d), strict=True)
    # terminal conditions hold to 1e-6; the multiplier of the position is 84
    assert cost == pytest.approx(12 * (m * d) ** 2 / T**3 / (1 - 1 / n**2), rel=5e-6)
    np.testing.assert_allclose([by_mass[0], by_distance[0]], [2 * cost / m, 2 * cost / d], rtol=1e-4)
    for slope, number in ((by_mass, m), (by_distance, d)):
        np.testing.assert_allclose(slope[1], u / number, atol=1e-3 * np.abs(u).max() / number)
    np.testing.assert_allclose(by_mass[2], 0, atol=1e-3)
    np.testing.assert_allclose(by_distance[2], x / d, atol=1e-3)
    back = jax.grad(lambda m: to.single_shooting(push(m, d), intervals=n, tolerance=1e-6, rounds=20).cost)(m)
    np.testing.assert_allclose(back, by_mass[0], rtol=1e-8)


@pytest.mark.slow
def test_status_of_a_cost_that_is_not_finite():
    bad = to.single_shooting(double_integrator(running=lambda t, x, u: jnp.nan * u[0]), intervals=20)
    assert bad.status == SolveStatus.NOT_FINITE
    assert np.isfinite(jax.device_get(bad.u)).all()
