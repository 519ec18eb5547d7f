"""Eigenvalues of a real matrix in descending order of modulus, with finite derivatives."""

import jax
import jax.numpy as jnp


@jax.custom_jvp
def eigenvalues(a):
    """The eigenvalues of a real square matrix `(n, n)`, complex, in descending order of modulus.

    The derivative of a simple eigenvalue is `y^H da x / y^H x` with its left and right eigenvectors. A defective
    eigenvalue has no derivative; it is zero here.
    """
    return _eigen(a)[0]


@eigenvalues.defjvp
def _eigenvalues_jvp(primals, tangents):
    values, left, right = _eigen(primals[0])
    overlap = jnp.sum(left.conj() * right, axis=0)
    is_simple = jnp.abs(overlap) > jnp.finfo(overlap.dtype).eps ** 0.5
    product = jnp.einsum("ik,ij,jk->k", left.conj(), tangents[0].astype(left.dtype), right)
    return values, jnp.where(is_simple, product / jnp.where(is_simple, overlap, 1), 0)


def _eigen(a):
    """Eigenvalues, left and right eigenvectors, sorted."""
    values, left, right = jax.lax.linalg.eig(a, compute_left_eigenvectors=True, compute_right_eigenvectors=True)
    order = jnp.argsort(-jnp.abs(values), stable=True)
    return values[order], left[:, order], right[:, order]
