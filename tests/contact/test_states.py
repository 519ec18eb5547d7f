"""A sample of the count of `benchmarks/contact_states.py`: states at rest, at touch-down, at separation and others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks import contact_states
from benchmarks._contact_mechanisms import MECHANISMS
from jaxdyn.contact import Newton, Poisson
from jaxdyn.contact.rigid import planar_impact, spatial_impact


@pytest.mark.exhaustive
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_derivatives_are_finite_and_one_sided(mechanism):
    faults, kind, *_ = contact_states.count_faults(mechanism, 60)
    assert len(kind) == 60 and (np.bincount(kind) == 6).all()
    assert faults["compared"].sum() > 30
    found = {name: int(faults[name].sum()) for name in ("NaN", "sign", "value", "reverse", "NOT_SOLVED")}
    assert found == dict.fromkeys(found, 0)
    assert mechanism.law == "Newton" or not faults["energy"].any()


@pytest.mark.slow
@pytest.mark.parametrize("coupling", [0.0, 0.3, -0.9])
def test_derivatives_of_an_impact_without_slip(coupling):
    """They are those of one side, also without coupling, and where the slip moves away from rest."""
    gain, e, mu, h = np.array([[1.0, coupling], [coupling, 1.2]]), 0.5, 0.4, 1e-6
    impulse = jax.jit(lambda c: planar_impact(Poisson(), e, mu, mu, gain, c))
    tangent = jax.jvp(impulse, (jnp.array([-1.0, 0.0]),), (jnp.array([0.3, 1.0]),))[1]
    sides = [(impulse(np.array([-1 + 0.3 * s * h, s * h])) - impulse(np.array([-1.0, 0.0]))) / (s * h) for s in (1, -1)]
    assert min(np.abs(tangent - side).max() for side in sides) < 1e-5


@pytest.mark.slow
def test_an_impact_in_space_that_sticks_from_the_start_has_the_derivative_of_the_slip():
    half = np.random.default_rng(1).normal(size=(3, 3))
    gain, h = half @ half.T + np.eye(3), 1e-6
    impulse = jax.jit(lambda c: spatial_impact(Newton(), 0.5, 3.0, 3.0, gain, c))
    start, direction = np.array([-1.0, 0.0, 0.0]), np.array([0.3, 1.0, -0.5])
    tangent = jax.jvp(impulse, (jnp.asarray(start),), (jnp.asarray(direction),))[1]
    assert_allclose(tangent, (impulse(start + h * direction) - impulse(start)) / h, atol=1e-5)


@pytest.mark.slow
def test_an_impact_in_space_that_slides_from_rest_has_the_derivative_of_the_slip_that_begins():
    """The limit of the derivatives of impacts whose slip, along its direction during the impact, vanishes.

    It is approached as a power of the slip, since the slip across dies out as a power of the slip along.
    """
    half = np.random.default_rng(4).normal(size=(3, 3))
    gain, mu = half @ half.T + 0.2 * np.eye(3), 0.15
    impulse = lambda c: spatial_impact(Newton(), 0.5, mu, mu, gain, c)
    derivative = jax.jit(jax.jacfwd(impulse))
    p = jax.jit(impulse)(jnp.array([-1.0, 0.0, 0.0]))
    assert_allclose(np.hypot(p[1], p[2]), mu * p[0], rtol=1e-9)
    along = -np.asarray(p[1:]) / np.hypot(p[1], p[2])
    at_rest = derivative(jnp.array([-1.0, 0.0, 0.0]))
    errors = [np.abs(derivative(jnp.array([-1.0, *(s * along)])) - at_rest).max() for s in (1e-3, 1e-6, 1e-9)]
    assert np.abs(at_rest[:, 1:]).max() > 0.2 and errors[2] < 1e-3
    assert_allclose(errors[2] / errors[1], errors[1] / errors[0], rtol=0.1)
