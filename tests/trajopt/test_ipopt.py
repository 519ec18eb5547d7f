"""IPOPT finds the optima of `solve` for the same nonlinear programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn._errors import ModelError
from jaxdyn.trajopt import Bounds, MultipleShooting, SolveStatus, Trapezoidal, ipopt, solve

from .problems import cart_pole, push

pytest.importorskip("ipyopt")


@pytest.mark.slow
def test_ipopt_agrees_with_solve():
    problem = cart_pole(end_control=jnp.zeros(1))
    ours, theirs = (method(problem, transcription=Trapezoidal(), intervals=12) for method in (solve, ipopt))
    assert theirs.status == SolveStatus.SOLVED
    assert theirs.iterations < 40
    np.testing.assert_allclose(theirs.cost, ours.cost, rtol=1e-7)
    np.testing.assert_allclose(theirs.x, ours.x, atol=1e-5)
    np.testing.assert_allclose(theirs.details.middle, ours.details.middle, atol=1e-4)
    assert theirs.violation < 1e-7
    assert "SOLVED" in theirs.report()


@pytest.mark.exhaustive
def test_ipopt_reports_infeasible_problems():
    weak = ipopt(
        push(bounds=Bounds(lower_control=-1.0, upper_control=1.0)), transcription=MultipleShooting(), intervals=3
    )
    assert weak.status == SolveStatus.INFEASIBLE
    assert weak.violations()[0].name in ("end", "dynamics", "start")


def test_ipopt_rejects_transformations():
    with pytest.raises(ModelError, match="concrete numbers"):
        jax.grad(lambda m: ipopt(push(m), intervals=3).cost)(2.0)
