"""Accuracy of sine and cosine for angles of every magnitude, and their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn._numerics import safe_norm, sinc, sincos, smooth_sign

RNG = np.random.default_rng(0)


def ulps(value, exact):
    """Distance in units in the last place of the exact value at the precision of `value`."""
    value = np.asarray(value)
    spacing = np.spacing(np.abs(np.asarray(exact, value.dtype)))
    return np.abs((value.astype(np.longdouble) - exact) / spacing)


def around_zero_and_quarter_turns(dtype):
    quarter = np.arange(-40, 41) * np.pi / 2
    near = np.concatenate([quarter, quarter + 1e-3, quarter - 1e-5])
    return np.concatenate([near, RNG.uniform(-100, 100, 5000), RNG.uniform(-1, 1, 5000)]).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sincos_is_accurate_to_the_last_bits(dtype):
    x = around_zero_and_quarter_turns(dtype)
    s, c = sincos(jnp.asarray(x))
    assert s.dtype == c.dtype == dtype
    exact = x.astype(np.longdouble)
    large = lambda y: np.abs(y) > 1e-3  # near a zero of the function only the absolute error is bounded
    for value, true in ((s, np.sin(exact)), (c, np.cos(exact))):
        assert ulps(value, true)[large(true)].max() < 2.5
        assert np.abs(np.asarray(value) - true).max() < 1.5 * np.finfo(dtype).eps


@pytest.mark.parametrize(
    ("dtype", "scales"),
    [(np.float64, (1e5, 9.99e5, 1e6, 1e9, 1e15)), (np.float32, (5.9e3, 1e4, 1e7))],
)
def test_sincos_of_large_angles(dtype, scales):
    for scale in scales:
        x = (scale * RNG.uniform(0.5, 1, 2000)).astype(dtype)
        s, c = sincos(jnp.asarray(x))
        wide = x.astype(np.longdouble if dtype == np.float64 else np.float64)
        np.testing.assert_allclose(s, np.sin(wide).astype(float), atol=2.5 * np.finfo(dtype).eps)
        np.testing.assert_allclose(c, np.cos(wide).astype(float), atol=2.5 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_sincos_of_nan_and_infinity(dtype):
    s, c = sincos(jnp.array([jnp.nan, jnp.inf, -jnp.inf, 0.0, -0.0], dtype))
    assert np.isnan(s[:3]).all() and np.isnan(c[:3]).all()
    np.testing.assert_array_equal(s[3:], [0, 0])
    np.testing.assert_array_equal(c[3:], [1, 1])


def test_one_large_angle_does_not_change_the_others():
    x = jnp.array([1e9, 2.0, -0.3])
    np.testing.assert_allclose(sincos(x)[0], np.sin(np.asarray(x)), atol=1e-15)


def test_first_and_second_derivatives_of_sincos():
    x = jnp.linspace(-4, 4, 33)
    slope = jax.vmap(jax.grad(lambda x: sincos(x)[0]))(x)
    curvature = jax.vmap(jax.grad(jax.grad(lambda x: sincos(x)[1])))(x)
    np.testing.assert_allclose(slope, np.cos(x), atol=1e-15)
    np.testing.assert_allclose(curvature, -np.cos(x), atol=1e-15)


def test_sinc_is_smooth_at_zero_and_across_its_branches():
    x = np.array([0.0, 1e-8, 1e-3, 0.0999999, 0.1000001, 0.5, 3.0])
    np.testing.assert_allclose(sinc(jnp.asarray(x * x)), np.sinc(x / np.pi), rtol=1e-14)
    slopes = jax.vmap(jax.grad(sinc))(jnp.asarray(x * x))
    with np.errstate(invalid="ignore", divide="ignore"):
        exact = (x * np.cos(x) - np.sin(x)) / (2 * x**3)
    exact[:2] = -1 / 6
    exact[2] = -1 / 6 + 1e-6 / 60
    np.testing.assert_allclose(slopes, exact, rtol=1e-11)
    assert np.isfinite(jax.jit(jax.grad(jax.grad(jax.grad(sinc))))(0.0))


def test_safe_norm_and_its_gradient_at_zero():
    assert safe_norm(jnp.array([3.0, 4.0])) == 5
    np.testing.assert_array_equal(jax.grad(safe_norm)(jnp.zeros(3)), np.zeros(3))
    np.testing.assert_allclose(jax.grad(safe_norm)(jnp.array([3.0, 4.0])), [0.6, 0.8], rtol=1e-15)


def test_smooth_sign_away_from_zero():
    np.testing.assert_allclose(smooth_sign(jnp.array([-1.0, 0.0, 1.0]), 0.01), [-1, 0, 1], atol=1e-15)
    np.testing.assert_allclose(jax.grad(smooth_sign)(0.0, 0.01), 100, rtol=1e-14)
