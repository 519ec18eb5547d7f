"""Derivatives of optima, compared with closed forms and central differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.trajopt import solve

from .problems import cart_pole, minimum_time, push


@jax.jit
def _both_modes(p):
    """Jacobian in forward mode and gradient of the cost in reverse mode, from one compiled solve."""
    p = jnp.asarray(p)
    _, tangents = jax.linearize(_cost_and_velocity, p)
    (gradient,) = jax.linear_transpose(tangents, p)((1.0, 0.0))
    return jax.vmap(tangents, out_axes=-1)(jnp.eye(p.size)), gradient


def _cost_and_velocity(p):
    found = solve(push(*p), intervals=6, tolerance=1e-11)
    return found.cost, found.x[3, 1]


@pytest.mark.slow
def test_derivatives_of_double_integrator_optimum():
    m, d, T = 2.0, 1.5, 1.2
    p = (m, d, T)
    (forward, reverse) = _both_modes(p)
    cost = 12 * m**2 * d**2 / T**3
    np.testing.assert_allclose(forward[0], [2 * cost / m, 2 * cost / d, -3 * cost / T], rtol=1e-7)
    # the velocity at the middle is 3 d / 2 T; the tolerance of the solve limits the accuracy of derivatives
    np.testing.assert_allclose(forward[1], [0, 1.5 / T, -1.5 * d / T**2], atol=1e-6)
    np.testing.assert_allclose(reverse, forward[0], rtol=1e-9)


@pytest.mark.exhaustive
def test_derivatives_of_minimum_time():
    m, d, F = 2.0, 1.5, 3.0
    g = jax.jit(jax.grad(lambda p: solve(minimum_time(*p), intervals=8, tolerance=1e-10).cost))((m, d, F))
    T = 2 * np.sqrt(m * d / F)
    np.testing.assert_allclose(g, [T / 2 / m, T / 2 / d, -T / 2 / F], rtol=1e-6)  # bounds are always active


@pytest.mark.exhaustive
def test_derivatives_of_swing_up_against_central_differences():
    p = jnp.array([1.0, 0.3, 0.5, 9.81])

    def cost_and_state(p, force):
        found = solve(cart_pole(p, force=force), intervals=20, tolerance=1e-11)
        return (found.cost, found.x[10]), (found.cost, found.x[10])

    both = jax.jit(jax.jacfwd(cost_and_state, (0, 1), has_aux=True))  # one compilation for values and derivatives
    run = lambda *numbers: both(*numbers)[1]
    cost, motion = both(p, 12.0)[0]  # an active force bound
    h = 1e-4
    for k, slope in enumerate(zip(cost[0], motion[0].T, strict=True)):
        above, below = (run(p.at[k].add(s), 12.0) for s in (h, -h))
        differences = [(a - b) / (2 * h) for a, b in zip(above, below, strict=True)]
        for exact, approximate in zip(slope, differences, strict=True):
            np.testing.assert_allclose(exact, approximate, rtol=2e-5, atol=2e-5)  # error of the differences, h^2
    (above, _), (below, _) = run(p, 12.0 + h), run(p, 12.0 - h)
    np.testing.assert_allclose(cost[1], (above - below) / (2 * h), rtol=1e-5)
