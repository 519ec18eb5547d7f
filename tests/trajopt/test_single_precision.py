"""Problems with float32 numbers are solved in single precision."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.trajopt import SolveStatus, ilqr, solve

from .problems import push


@pytest.mark.slow
def test_float32_problem_is_solved_in_float32():
    number = jnp.float32
    problem = push(number(2.0), number(1.5), number(1.2))
    assert problem.dtype == jnp.float32
    for found, cost in ((solve(problem, intervals=6), 62.5), (ilqr(problem, intervals=6), 62.5 / (1 - 1 / 36))):
        assert found.status == SolveStatus.SOLVED
        assert found.x.dtype == found.u.dtype == found.cost.dtype == jnp.float32
        np.testing.assert_allclose(found.cost, cost, rtol=1e-4)
        np.testing.assert_allclose(found.x[-1], [1.5, 0], atol=1e-4)
