"""Single shooting against the other methods."""

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
def test_it_finds_the_optimum_of_differential_dynamic_programming():
    problem = double_integrator(1.5, running=quadratic)
    other = to.ilqr(problem, intervals=20)
    found = to.single_shooting(problem, intervals=20, tolerance=1e-6)
    assert found.status == SolveStatus.SOLVED
    np.testing.assert_allclose(found.cost, other.cost, rtol=1e-8)
    np.testing.assert_allclose(found.u, other.u, atol=1e-4)


@pytest.mark.slow
def test_ends_are_met_by_multipliers_and_other_optimisers_work():
    other = to.ilqr(box_problem(), intervals=20)
    found = to.single_shooting(box_problem(), intervals=20, tolerance=1e-4)
    assert found.status == SolveStatus.SOLVED
    np.testing.assert_allclose(found.cost, other.cost, rtol=1e-3)
    problem = double_integrator(1.5, running=quadratic)
    slow = to.single_shooting(problem, intervals=20, optimiser=optax.adam(0.05), steps=2000, rounds=1, tolerance=1e-3)
    np.testing.assert_allclose(slow.cost, to.ilqr(problem, intervals=20).cost, rtol=1e-4)


@pytest.mark.slow
def test_derivatives_are_those_of_the_optimum():
    """The cost grows with the square of the mass and of the distance; the controls in proportion, the motion not."""
    n, m, d, T = 10, 2.0, 1.5, 1.2

    def moves(m, d):
        found = to.single_shooting(push(m, d), intervals=n, tolerance=1e-6, rounds=20)
        return found.cost, found.u, found.x

    cost, u, x = moves(m, d)
    by_mass, by_distance = zip(*jax.jit(jax.jacfwd(moves, (0, 1)))(m, d), strict=True)
    # ends are met to 1e-6, and a metre costs 84
    assert cost == pytest.approx(12 * (m * d) ** 2 / T**3 / (1 - 1 / n**2), rel=5e-6)
    np.testing.assert_allclose([by_mass[0], by_distance[0]], [2 * cost / m, 2 * cost / d], rtol=1e-4)
    for slope, number in ((by_mass, m), (by_distance, d)):
        np.testing.assert_allclose(slope[1], u / number, atol=1e-3 * np.abs(u).max() / number)
    np.testing.assert_allclose(by_mass[2], 0, atol=1e-3)
    np.testing.assert_allclose(by_distance[2], x / d, atol=1e-3)
    back = jax.grad(lambda m: to.single_shooting(push(m, d), intervals=n, tolerance=1e-6, rounds=20).cost)(m)
    np.testing.assert_allclose(back, by_mass[0], rtol=1e-8)


@pytest.mark.slow
def test_bad_starts_have_a_status():
    bad = to.single_shooting(double_integrator(running=lambda t, x, u: jnp.nan * u[0]), intervals=20)
    assert bad.status == SolveStatus.NOT_FINITE
    assert np.isfinite(jax.device_get(bad.u)).all()
