"""Single shooting against the other methods."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn import trajopt as to
from jaxdyn.trajopt import SolveStatus

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


def test_bad_starts_have_a_status():
    bad = to.single_shooting(double_integrator(running=lambda t, x, u: jnp.nan * u[0]), intervals=20)
    assert bad.status == SolveStatus.NOT_FINITE
    assert np.isfinite(jax.device_get(bad.u)).all()
