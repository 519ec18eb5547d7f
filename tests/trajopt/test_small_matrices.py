"""Batched algebra of small matrices, compared with LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn._numerics import kernel
from jaxdyn.trajopt.interior_point._small_matrices import inverse, negative_eigenvalues, sweep_kernel

N, COUNT = 6, 70


@pytest.fixture(scope="module")
def matrices():
    return np.random.default_rng(3).normal(size=(COUNT, N, N))


@pytest.mark.slow
def test_inverse_and_its_derivative(matrices):
    a, da = jnp.asarray(matrices), jnp.asarray(matrices[::-1])
    found, slope = jax.jit(jax.vmap(lambda a, da: jax.jvp(inverse, (a,), (da,))))(a, da)
    exact = np.linalg.inv(a)
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-10 * np.abs(exact).max())
    expected = -exact @ da @ exact
    np.testing.assert_allclose(slope, expected, rtol=1e-7, atol=1e-10 * np.abs(expected).max())


@pytest.mark.slow
def test_inverse_pivots_around_zero_diagonal():
    a = jnp.array([[0.0, 2.0], [4.0, 0.0]])
    np.testing.assert_allclose(inverse(a), [[0, 0.25], [0.5, 0]], atol=1e-16)
    assert not np.isfinite(inverse(jnp.ones((2, 2)))).all()


@pytest.mark.slow
def test_number_of_negative_eigenvalues(matrices):
    a = matrices + matrices.swapaxes(1, 2)
    a[: COUNT // 2, : N // 2, : N // 2] = 0  # as in a KKT matrix
    found = jax.jit(jax.vmap(negative_eigenvalues))(jnp.asarray(a))
    np.testing.assert_array_equal(found, (np.linalg.eigvalsh(a) < 0).sum(1))


def test_sweep_inverts_and_eliminates(matrices):
    k = 4
    a = matrices @ matrices.swapaxes(1, 2) + 0.1 * np.eye(N)
    found, pivots = jax.jit(jax.vmap(lambda a: kernel(sweep_kernel)(k, a)))(jnp.asarray(a))
    x, y, z = a[:, :k, :k], a[:, :k, k:], a[:, k:, k:]
    inverses = np.linalg.inv(x)
    np.testing.assert_allclose(found[:, :k, :k], inverses, atol=1e-10)
    np.testing.assert_allclose(found[:, :k, k:], inverses @ y, atol=1e-10)
    np.testing.assert_allclose(found[:, k:, k:], z - y.swapaxes(1, 2) @ inverses @ y, atol=1e-10)
    np.testing.assert_allclose(np.prod(pivots, axis=1), np.linalg.det(x), rtol=1e-9)
