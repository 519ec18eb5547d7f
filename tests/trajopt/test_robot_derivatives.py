"""Optima of robots agree with equations written by hand, in values and derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.trajopt import Problem, VectorField, solve


def _pendulum(t, x, u, p):
    mass, length = p
    return jnp.stack([x[1], (u[0] - mass * 9.81 * length * jnp.sin(x[0])) / (mass * length**2)])


def _effort(t, x, u):
    return u @ u


def lift(dynamics):
    return Problem(dynamics, 0.8, start=jnp.zeros(2), end=jnp.array([1.2, 0.0]), running=_effort)


@pytest.mark.exhaustive
def test_optimum_of_robot_and_its_derivatives_agree_with_equations_by_hand():
    """Optimum and trajectory of a `Robot`, compared with equations by hand and their central differences."""
    names = ("angle", "rate"), ("effort",)
    run = lambda dynamics: (lambda s: (s.cost, s.x, s.status))(solve(lift(dynamics), intervals=6, tolerance=1e-11))
    both = lambda found: (found[:2], found)  # derivatives and values from one compilation
    ours = jax.jit(jax.jacfwd(lambda p: both(run(jd.robots.pendulum(length=p[1], mass=p[0]))), has_aux=True))
    theirs = lambda p: run(VectorField(_pendulum, *names, p))
    p, h = jnp.array([1.3, 0.9]), 1e-4
    slopes, values = ours(p)
    assert values[2] == 0
    for a, b in zip(values, theirs(p), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
    for k, e in enumerate(h * np.eye(2)):
        above, below = theirs(p + e), theirs(p - e)
        for slope, a, b in zip(slopes, above, below, strict=False):
            difference = np.asarray(a - b) / (2 * h)
            np.testing.assert_allclose(slope[..., k], difference, atol=1e-6 * (1 + np.abs(difference).max()))
