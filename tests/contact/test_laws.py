"""Laws of normal force and friction: values, derivatives everywhere, deformation of both sides."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.contact import Hertz, HuntCrossley, KelvinVoigt, RegularisedFriction, series_stiffness

LAWS = {
    "spring": KelvinVoigt(4000.0, 30.0),
    "sticky": KelvinVoigt(4000.0, 30.0, tension=True),
    "hunt": HuntCrossley(1e4, 0.5),
    "cubic": HuntCrossley(1e4, 0.5, 3.0),
    "hertz": Hertz(0.05, 1e7),
}


@pytest.mark.parametrize("name", LAWS)
def test_force_is_the_slope_of_the_energy(name):
    law, d = LAWS[name], jnp.array([1e-6, 1e-3, 0.1])
    force = jax.vmap(lambda x: law.force(x, 0.0))(d)
    np.testing.assert_allclose(jax.vmap(jax.grad(law.energy))(d), force, rtol=1e-12)
    assert law.energy(jnp.zeros(())) == 0.0


@pytest.mark.parametrize("name", LAWS)
def test_derivatives_are_finite_at_touch_down(name):
    """First and second ones with respect to penetration, rate and every leaf, on both sides and at zero."""
    leaves, rest = eqx.partition(LAWS[name], eqx.is_inexact_array)
    force = lambda leaves, d, rate: eqx.combine(leaves, rest).force(d, rate)
    first = jax.grad(force, (0, 1, 2))
    numbers = jnp.array([-1e-3, -1e-300, -0.0, 0.0, 1e-320, 1e-300, 1e-12, 1e-3])
    for rate in (-1.0, 0.0, 1.0):
        for derivative in (first, jax.jacfwd(first, (1, 2))):
            values = jax.vmap(lambda d, r=rate, f=derivative: f(leaves, d, jnp.array(r)))(numbers)
            assert all(np.isfinite(x).all() for x in jax.tree.leaves(values))


def test_hertz():
    law, weight = Hertz(0.05, 1e7), 0.5 * 9.81
    assert abs(law.stiffness / 2981423.97 - 1) < 1e-9
    rest = (weight / law.stiffness) ** (2 / 3)
    np.testing.assert_allclose(rest, 1.393617256e-4, rtol=1e-9)
    slope = jax.grad(law.force)(rest, 0.0)
    np.testing.assert_allclose(jnp.sqrt(slope / 0.5), 324.9438902525, rtol=1e-12)
    ball, plane = (0.05, 2e7, 0.3), (np.inf, 1e12, 0.2)
    pair = Hertz.between(ball, plane)
    np.testing.assert_allclose(pair.radius, 0.05)
    np.testing.assert_allclose(1 / pair.modulus, 0.91 / 2e7 + 0.96 / 1e12, rtol=1e-14)


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0])
def test_stiffness_in_series(exponent):
    """The same force in both springs, and the penetrations add up."""
    stiffness = np.array([3e4, 6e4])
    depths = (100.0 / stiffness) ** (1 / exponent)
    k = series_stiffness(*stiffness, exponent=exponent)
    np.testing.assert_allclose(k * depths.sum() ** exponent, 100.0, rtol=1e-13)


def test_friction():
    law, load = RegularisedFriction(0.3, 1e-3, static=0.4, stribeck_velocity=0.05), jnp.array(10.0)
    force = jax.jit(lambda n, u: law.force(n, u))
    u = jnp.array([3.0, 0.0, -4.0])
    np.testing.assert_allclose(force(load, u), -3.0 * u / 5.0, atol=1e-12)  # kinetic, against the slip
    mu = 0.3 + 0.1 * np.exp(-((2e-3 / 0.05) ** 2))  # nearly the static one
    np.testing.assert_allclose(force(load, u * 4e-4), -10 * mu * np.tanh(2) * u / 5.0, rtol=1e-12)
    np.testing.assert_array_equal(force(load, jnp.zeros(3)), 0.0)
    slope = jax.jacfwd(law.force, 1)(load, jnp.zeros(3))
    np.testing.assert_allclose(slope, -4000.0 * np.eye(3), rtol=1e-12)
    second = jax.jacfwd(jax.jacrev(law.force, 1), 1)(load, jnp.zeros(3))
    np.testing.assert_allclose(second, 0.0, atol=1e-6)
