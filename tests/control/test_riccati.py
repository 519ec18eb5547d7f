"""Riccati equations against scipy, closed forms, and integrated differential equations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

from jaxdyn.control import RiccatiStatus, continuous_riccati, discrete_riccati, riccati_along

solve = jax.jit(continuous_riccati)
solve_discrete = jax.jit(discrete_riccati)


def system(seed, n=4, m=2):
    a, b, q, r = (np.random.default_rng(seed).normal(size=s) for s in ((n, n), (n, m), (n, n), (m, m)))
    return a, b, q @ q.T + 0.1 * np.eye(n), r @ r.T + 0.5 * np.eye(m)


@pytest.mark.parametrize("seed", range(5))
def test_continuous_riccati_equals_scipy(seed):
    a, b, q, r = system(seed)
    ours = solve(a, b, q, r)
    p = scipy.linalg.solve_continuous_are(a, b, q, r)
    np.testing.assert_allclose(ours.cost, p, rtol=1e-9, atol=1e-9 * np.abs(p).max())
    np.testing.assert_allclose(ours.gain, np.linalg.solve(r, b.T @ p), rtol=1e-8, atol=1e-8)
    assert ours.status == RiccatiStatus.SOLVED


@pytest.mark.parametrize("seed", range(5))
def test_discrete_riccati_equals_scipy(seed):
    a, b, q, r = system(seed)
    ours = solve_discrete(a, b, q, r)
    p = scipy.linalg.solve_discrete_are(a, b, q, r)
    np.testing.assert_allclose(ours.cost, p, rtol=1e-9, atol=1e-9 * np.abs(p).max())
    assert np.abs(np.linalg.eigvals(a - b @ np.asarray(ours.gain))).max() < 1
    assert ours.status == RiccatiStatus.SOLVED


def test_double_integrator():
    a, b = np.array([[0.0, 1], [0, 0]]), np.array([[0.0], [1]])
    ours = jax.jit(continuous_riccati)(a, b, np.eye(2), np.eye(1))
    np.testing.assert_allclose(ours.gain, [[1, np.sqrt(3)]], atol=1e-12)


def test_unsolvable_equations_give_a_status():
    a, b, q, r = system(0)
    unstable = np.diag([1.0, -1, -2, -3])
    uncontrollable = np.zeros_like(b)
    uncontrollable[1:] = b[1:]  # no input acts on the first mode, which is unstable
    result = solve(unstable, uncontrollable, q, r)
    assert result.status == RiccatiStatus.NOT_STABILISABLE
    assert np.isfinite(result.cost).all()
    for bad in ((np.full_like(a, np.nan), b, q, r), (a, b, q, -r)):
        ours = solve(*bad)
        assert ours.status == RiccatiStatus.NOT_FINITE
        assert np.isfinite(ours.cost).all()
        assert np.isfinite(ours.gain).all()


@pytest.mark.slow
@pytest.mark.parametrize("function", [continuous_riccati, discrete_riccati])
def test_derivatives(function):
    arguments = system(3)
    along = system(7)
    value = lambda s: jnp.sum(jnp.sin(function(*(x + s * d for x, d in zip(arguments, along, strict=True))).gain))
    h = 1e-5
    run = jax.jit(value)
    difference = (run(h) - run(-h)) / (2 * h)
    assert abs(jax.jit(jax.grad(value))(0.0) - difference) < 1e-7 * (1 + abs(difference))


@pytest.mark.slow
def test_riccati_along_solves_the_differential_equation():
    a, b, q, r = system(2)
    times = np.linspace(0, 1.5, 301)
    wave = 1 + 0.5 * np.sin(3 * times)[:, None, None]
    costs, gains = jax.jit(riccati_along)(times, a * wave, np.broadcast_to(b, (301, 4, 2)), q, r, np.eye(4))

    def rate(s, p):
        p, now = p.reshape(4, 4), a * (1 + 0.5 * np.sin(3 * (1.5 - s)))
        return (now.T @ p + p @ now - p @ b @ np.linalg.solve(r, b.T) @ p + q).ravel()

    exact = scipy.integrate.solve_ivp(rate, (0, 1.5), np.eye(4).ravel(), rtol=1e-11, atol=1e-12).y[:, -1]
    p = exact.reshape(4, 4)
    np.testing.assert_allclose(costs[0], p, atol=2e-5 * np.abs(p).max())  # second order: h^2 = 2.5e-5
    np.testing.assert_allclose(gains[0], np.linalg.solve(r, b.T @ costs[0]), atol=1e-10)


@pytest.mark.slow
def test_long_horizons_converge_to_the_algebraic_solution():
    a, b, q, r = system(1)
    tables = (np.broadcast_to(x, (301, *x.shape)) for x in (a, b))
    costs, _ = jax.jit(riccati_along)(np.linspace(0, 30, 301), *tables, q, r, np.zeros((4, 4)))
    np.testing.assert_allclose(costs[0], solve(a, b, q, r).cost, rtol=1e-9)
