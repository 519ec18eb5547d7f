"""Errors of intervals, the orders with which they fall, and meshes that follow them."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.trajopt import (
    HermiteSimpson,
    Problem,
    Trapezoidal,
    VectorField,
    interval_errors,
    refined_mesh,
    solve_refined,
)
from jaxdyn.trajopt._mesh import _errors

from .problems import two_link_arm


def _decay(t, x, u, p):
    return -x


@pytest.mark.parametrize("transcription", [Trapezoidal(), HermiteSimpson()], ids=("trapezoid", "simpson"))
def test_errors_fall_with_the_order_of_the_transcription(transcription):
    """`xdot = -x`, whose discrete motions are powers of a rational function of the step."""
    problem = Problem(VectorField(_decay, ("x",), ("u",)), 1.0)

    def error(n):
        h = 1 / n
        even, odd = (1 + h * h / 12, h / 2) if isinstance(transcription, HermiteSimpson) else (1, h / 2)
        x = ((even - odd) / (even + odd)) ** np.arange(n + 1)
        zero = jnp.zeros((n + 1, 1))
        return float(_errors(problem, jnp.linspace(0, 1, n + 1), jnp.asarray(x)[:, None], zero, zero[:-1]).max())

    assert np.log2(error(8) / error(16)) == pytest.approx(transcription.order, abs=0.15)


@pytest.mark.slow
@pytest.mark.wide
def test_meshes_are_refined_where_the_error_is():
    coarse, *_, fine = solve_refined(two_link_arm(), error=2e-4, rounds=3, intervals=20)
    assert interval_errors(fine).max() < interval_errors(coarse).max() / 3
    lengths = np.diff(fine.t)
    assert lengths.max() > 1.9 * lengths.min()
    assert fine.cost < coarse.cost


def test_a_mesh_is_cut_by_the_order():
    mesh = refined_mesh(np.array([0.0, 0.5, 1.0]), np.array([[1e-7], [15e-6]]), 1e-6)
    np.testing.assert_allclose(mesh, [0, 0.5, 0.75, 1.0])
