"""Quintic and trapezoidal profiles: their ends, their limits, and that v and a are the derivatives of q."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.interpolate

from jaxdyn.trajopt import quintic, quintic_duration, synchronised_trapezoidal, trapezoidal_profile

Q0, Q1 = jnp.array([0.0, 1.0, -0.5, 2.0]), jnp.array([2.0, 0.8, 0.1, 2.0])
VELOCITY, ACCELERATION = jnp.array([1.0, 1.0, 0.5, 1.0]), jnp.array([2.0, 4.0, 1.0, 1.0])


@jax.jit
def sampled(profile):
    t = jnp.linspace(0.0, profile.duration, 2001)
    return t, *jax.vmap(profile)(t)


@pytest.mark.slow
def test_quintic_satisfies_all_six_boundary_conditions():
    ends = jnp.asarray(np.random.default_rng(0).normal(size=(6, 3)))
    q0, q1, v0, v1, a0, a1 = ends
    t, q, v, a = sampled(quintic(q0, q1, 1.7, v0=v0, v1=v1, a0=a0, a1=a1))
    exact = scipy.interpolate.BPoly.from_derivatives([0, 1.7], [[q0, v0, a0], [q1, v1, a1]])
    for ours, order in ((q, 0), (v, 1), (a, 2)):
        np.testing.assert_allclose(ours, exact(np.asarray(t), order), atol=1e-11)


@pytest.mark.slow
def test_quintic_of_least_duration_reaches_a_limit():
    profile = quintic(Q0, Q1, quintic_duration(Q0, Q1, VELOCITY, ACCELERATION))
    _, _, v, a = sampled(profile)
    used = np.maximum(np.abs(v).max(0) / VELOCITY, np.abs(a).max(0) / ACCELERATION)
    assert used.max() == pytest.approx(1, abs=1e-6)


def test_trapezoidal_times_agree_with_the_textbook():
    profile = trapezoidal_profile(Q0, Q1, VELOCITY, ACCELERATION)
    # with a plateau d / v + v / a, without one 2 sqrt(d / a)
    expected = [2 / 1 + 1 / 2, 2 * np.sqrt(0.2 / 4), 0.6 / 0.5 + 0.5 / 1, 0]
    np.testing.assert_allclose(profile.arrival, expected, atol=1e-12)
    np.testing.assert_allclose(profile.plateau, [1.5, 0, 0.7, 0], atol=1e-12)


@pytest.mark.parametrize("make", [trapezoidal_profile, synchronised_trapezoidal])
def test_trapezoidal_profiles_satisfy_limits_and_are_continuous(make):
    profile = make(Q0, Q1, VELOCITY, ACCELERATION)
    t, q, v, a = map(np.asarray, sampled(profile))
    np.testing.assert_allclose(q[0], Q0, atol=1e-12)
    np.testing.assert_allclose(q[-1], Q1, atol=1e-12)
    assert (np.abs(v) <= VELOCITY + 1e-12).all()
    assert (np.abs(a) <= ACCELERATION + 1e-12).all()
    h = t[1] - t[0]
    np.testing.assert_allclose(np.diff(q, axis=0) / h, (v[1:] + v[:-1]) / 2, atol=2 * h)  # v may bend inside a step
    np.testing.assert_allclose(np.cumsum(v, 0)[-1] * h, Q1 - Q0, atol=h)
    assert np.abs(np.diff(v, axis=0)).max() <= 4 * h * (1 + 1e-9)


def test_synchronised_profiles_arrive_at_once():
    least = trapezoidal_profile(Q0, Q1, VELOCITY, ACCELERATION).duration
    together = synchronised_trapezoidal(Q0, Q1, VELOCITY, ACCELERATION)
    np.testing.assert_allclose(together.arrival[:3], least, atol=1e-12)
    slower = synchronised_trapezoidal(Q0, Q1, VELOCITY, ACCELERATION, duration=4.0)
    np.testing.assert_allclose(slower.arrival[:3], 4.0, atol=1e-12)
    np.testing.assert_allclose(slower.rise[:3], np.abs(slower.peak / ACCELERATION)[:3], atol=1e-12)
    assert synchronised_trapezoidal(Q0, Q1, VELOCITY, ACCELERATION, duration=0.1).duration == least


@pytest.mark.exhaustive
def test_zero_distance_takes_zero_time_with_finite_derivatives():
    still = trapezoidal_profile(Q0, Q0, VELOCITY, ACCELERATION)
    assert still.duration == 0
    for x in still(0.3)[1:]:
        assert not x.any()
    slope = jax.grad(lambda q: trapezoidal_profile(q, Q0, VELOCITY, ACCELERATION).duration)(Q0)
    assert np.isfinite(slope).all()
    d = jax.grad(lambda a: trapezoidal_profile(Q0[:1], Q1[:1], 10.0, a).duration)(2.0)
    assert d == pytest.approx(-np.sqrt(2 / 2**3), abs=1e-12)  # d/da of 2 sqrt(d / a)
