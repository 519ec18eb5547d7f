"""Discretisation errors, their orders, and mesh refinement."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate

from jaxdyn._errors import ConvergenceError, ModelError
from jaxdyn.trajopt import (
    HermiteSimpson,
    MultipleShooting,
    Problem,
    Trapezoidal,
    VectorField,
    ilqr,
    interval_errors,
    refined_mesh,
    solve,
    solve_refined,
)
from jaxdyn.trajopt.drivers._mesh_refinement import _errors

from .problems import minimum_time, push, two_link_arm


def _decay(t, x, u, p):
    return -x


@pytest.mark.slow
@pytest.mark.parametrize("transcription", [Trapezoidal(), HermiteSimpson()], ids=("trapezoid", "simpson"))
def test_errors_decrease_with_the_order_of_the_transcription(transcription):
    """`xdot = -x`, whose discrete motions are powers of a rational function of the step."""
    problem = Problem(VectorField(_decay, ("x",), ("u",)), 1.0)

    def error(n):
        h = 1 / n
        even, odd = (1 + h * h / 12, h / 2) if isinstance(transcription, HermiteSimpson) else (1, h / 2)
        x = ((even - odd) / (even + odd)) ** np.arange(n + 1)
        zero = jnp.zeros((n + 1, 1))
        return float(_errors(problem, jnp.linspace(0, 1, n + 1), jnp.asarray(x)[:, None], zero, zero[:-1]).max())

    assert np.log2(error(8) / error(16)) == pytest.approx(transcription.order, abs=0.15)


@pytest.mark.exhaustive
def test_refinement_locates_the_switch_of_a_minimum_time_problem():
    """It is inside of the third interval, away from its middle; that one alone is cut."""
    mesh = [0, 0.3, 0.45, 0.7, 0.85, 1]
    refined = solve_refined(minimum_time(), error=1e-3, rounds=2, mesh=mesh)
    coarse, fine = refined
    best = 2 * np.sqrt(2.0 * 1.5 / 3.0)
    assert max(abs(s.duration - best) for s in refined) < 0.01
    assert refined.errors[-1] < refined.errors[0] / 8  # nearly of fourth order, in spite of the jump
    np.testing.assert_allclose(fine.t / fine.duration, [0, 0.3, 0.45, 0.575, 0.7, 0.85, 1], atol=1e-12)
    assert refined.met == (refined.errors[-1] <= 1e-3)
    # the estimate is the integral of what a cubic motion misses
    t, x = np.asarray(coarse.t), np.asarray(coarse.x)
    u = np.stack([np.asarray(coarse.u)[:-1, 0], np.asarray(coarse.details.middle)[:, 0], np.asarray(coarse.u)[1:, 0]])
    rate = np.stack([x[:, 1], np.asarray(coarse.u)[:, 0] / 2.0], 1)
    motion = scipy.interpolate.CubicHermiteSpline(t, x, rate)
    for k, found in enumerate(np.asarray(interval_errors(coarse))):
        s = np.linspace(0, 1, 4001)
        at = t[k] + s * (t[k + 1] - t[k])
        force = (1 - s) * (1 - 2 * s) * u[0, k] + 4 * s * (1 - s) * u[1, k] + s * (2 * s - 1) * u[2, k]
        missed = np.abs(motion(at, 1) - np.stack([motion(at)[:, 1], force / 2.0], 1))
        exact = scipy.integrate.simpson(missed, x=at, axis=0)
        # four points of Gauss on an absolute value: 9 % too much for a cubic
        np.testing.assert_allclose(found, exact, rtol=0.12, atol=0.05 * exact.max() + 1e-12)
    with pytest.raises(ConvergenceError, match="after 1 rounds the largest error"):
        solve_refined(minimum_time(), error=1e-9, rounds=1, mesh=mesh, throw=True)


@pytest.mark.exhaustive
def test_refinement_subdivides_intervals_with_large_errors():
    coarse, *_, fine = solve_refined(two_link_arm(), error=2e-4, rounds=3, intervals=20)
    assert interval_errors(fine).max() < interval_errors(coarse).max() / 3
    lengths = np.diff(fine.t)
    assert lengths.max() > 1.9 * lengths.min()
    assert fine.cost < coarse.cost


def test_number_of_subdivisions_follows_the_order():
    mesh = refined_mesh(np.array([0.0, 0.5, 1.0]), np.array([[1e-7], [15e-6]]), 1e-6)
    np.testing.assert_allclose(mesh, [0, 0.5, 0.75, 1.0])


@pytest.mark.exhaustive
def test_shooting_has_no_error_estimate():
    with pytest.raises(ModelError, match="errors of collocation"):
        interval_errors(ilqr(push(), intervals=2))
    with pytest.raises(ModelError, match="multiple shooting is that of its integrator"):
        interval_errors(solve(push(), transcription=MultipleShooting(), intervals=2))
