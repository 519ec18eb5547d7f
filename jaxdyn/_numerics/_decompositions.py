"""Matrix decompositions whose derivatives are finite where those of singular vectors and eigenvectors are not."""

import jax
import jax.numpy as jnp
import numpy as np


def default_tolerance(dtype) -> float:
    """Singular values below this part of the largest one count as zero."""
    return 4 * float(jnp.finfo(dtype).eps) ** 0.5


def _decomposed(w, tolerance):
    if 0 in w.shape:
        return jnp.zeros(w.shape[::-1], w.dtype), jnp.zeros((), jnp.int32)
    u, s, vt = jnp.linalg.svd(w, full_matrices=False)
    kept = s > tolerance * jnp.maximum(s[0], jnp.finfo(w.dtype).tiny)
    inverse = jnp.where(kept, 1 / jnp.where(kept, s, 1), 0)
    return (vt.T * inverse) @ u.T, kept.sum(dtype=jnp.int32)


@jax.custom_jvp
def pseudo_inverse(w, tolerance):
    """`W^+` and the rank, with the derivative that holds while the rank does not change.

    `dW^+ = -W^+ dW W^+ + W^+ W^+^T dW^T (1 - W W^+) + (1 - W^+ W) dW^T W^+^T W^+` (Golub and Pereyra 1973).
    """
    return _decomposed(w, tolerance)


@pseudo_inverse.defjvp
def _pseudo_inverse_jvp(primals, tangents):
    w, tolerance = primals
    p, rank = pseudo_inverse(w, tolerance)
    dw = tangents[0]
    left = dw.T - (dw.T @ w) @ p
    right = dw.T - p @ (w @ dw.T)
    dp = -p @ dw @ p + p @ (p.T @ left) + (right @ p.T) @ p
    return (p, rank), (dp, np.zeros(rank.shape, jax.dtypes.float0))


@jax.custom_jvp
def symmetric_eigen(matrix):
    """Eigenvalues in ascending order and eigenvectors as columns of a symmetric matrix.

    `dw_i = v_i . dA v_i` and `dV = V F`, `F_ij = v_i . dA v_j / (w_j - w_i)`. Where eigenvalues coincide their
    vectors are any basis of a plane or space; the derivative is that of vectors which do not turn in it, `F_ij = 0`.
    """
    return tuple(jnp.linalg.eigh((matrix + matrix.T) / 2))


@symmetric_eigen.defjvp
def _symmetric_eigen_jvp(primals, tangents):
    values, vectors = symmetric_eigen(*primals)
    change = vectors.T @ (tangents[0] + tangents[0].T) @ vectors / 2
    gap = values[None, :] - values[:, None]
    same = jnp.abs(gap) <= 16 * jnp.finfo(values.dtype).eps * jnp.max(jnp.abs(values))
    turn = jnp.where(same, 0, change / jnp.where(same, 1, gap))
    return (values, vectors), (jnp.diagonal(change), vectors @ turn)
