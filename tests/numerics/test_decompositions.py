"""Rank and pseudo-inverse of regular and singular matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn._numerics import pseudo_inverse

RNG = np.random.default_rng(0)


def of_rank(n, rank):
    """Products of random factors, and matrices with repeated columns and with rows of zeros."""
    products = RNG.normal(size=(20, n, rank)) @ RNG.normal(size=(20, rank, n))
    columns = RNG.normal(size=(20, n, rank))
    repeated = np.concatenate([columns, np.repeat(columns[..., :1], n - rank, axis=-1)], axis=-1)
    zeros = RNG.normal(size=(20, n, n)) * (np.arange(n) < rank)[:, None]
    return np.concatenate([products, repeated, zeros])


@pytest.mark.parametrize(("n", "rank"), [(2, 1), (2, 2), (4, 1), (4, 3), (4, 4)])
def test_rank_and_pseudo_inverse_of_square_matrices(n, rank):
    matrices = of_rank(n, rank)
    inverses, ranks = jax.jit(jax.vmap(lambda w: pseudo_inverse(w, jnp.asarray(6e-8))))(jnp.asarray(matrices))
    assert (np.asarray(ranks) == rank).all()
    np.testing.assert_allclose(inverses, np.linalg.pinv(matrices, rcond=1e-7), rtol=1e-6, atol=1e-9)
