"""Matrix decompositions with finite derivatives at repeated singular values and eigenvalues."""

import jax
import jax.numpy as jnp
import numpy as np


def default_tolerance(dtype) -> float:
    """Relative tolerance: singular values below this fraction of the largest are treated as zero."""
    return 4 * float(jnp.finfo(dtype).eps) ** 0.5


@jax.jit  # eager calls compile its branches once
def _pseudo_inverse_and_rank(w, tolerance):
    if 0 in w.shape:
        return jnp.zeros(w.shape[::-1], w.dtype), jnp.zeros((), jnp.int32)
    if w.shape[0] != w.shape[1]:
        return _truncate_singular_values(w, tolerance)
    # a regular matrix has an inverse, which costs a tenth of the singular values
    inverse, is_regular = _gauss_jordan(w)
    size = lambda x: jnp.max(jnp.sum(jnp.abs(x), axis=0))
    is_regular &= size(w) * size(inverse) < 0.1 / tolerance
    return jax.lax.cond(
        is_regular,
        lambda: (inverse, jnp.asarray(w.shape[0], jnp.int32)),
        lambda: _truncate_singular_values(w, tolerance),
    )


def _gauss_jordan(w):
    """The inverse by elimination with row pivots, and whether all pivots differ from zero.

    LAPACK's factorisation in a loop of a batched program can block XLA's threads on the CPU (jaxlib 0.10).
    """
    n = w.shape[0]

    def eliminate(k, state):
        rows, is_regular = state
        column = jnp.where(jnp.arange(n) < k, -1, jnp.abs(rows[:, k]))
        p = jnp.argmax(column)
        top, pivot_row = rows[k], rows[p]
        pivot = pivot_row[k]
        is_regular &= pivot != 0
        pivot_row = pivot_row / jnp.where(pivot == 0, 1, pivot)
        rows = jnp.where((jnp.arange(n) == p)[:, None], top, rows)
        rows = rows - rows[:, k][:, None] * pivot_row
        return jnp.where((jnp.arange(n) == k)[:, None], pivot_row, rows), is_regular

    start = jnp.concatenate([w, jnp.eye(n, dtype=w.dtype)], axis=1), jnp.asarray(True)
    rows, is_regular = jax.lax.fori_loop(0, n, eliminate, start)
    return rows[:, n:], is_regular & jnp.all(jnp.isfinite(rows))


def invert(w):
    """The inverse of a regular matrix; NaN for a singular one. Fit for loops in batched programs, unlike LAPACK's."""
    inverse, is_regular = _gauss_jordan(w)
    return jnp.where(is_regular, inverse, jnp.nan)


def _truncate_singular_values(w, tolerance):
    u, s, vt = jnp.linalg.svd(w, full_matrices=False)
    is_nonzero = s > tolerance * jnp.maximum(s[0], jnp.finfo(w.dtype).tiny)
    inverse = jnp.where(is_nonzero, 1 / jnp.where(is_nonzero, s, 1), 0)
    return (vt.T * inverse) @ u.T, is_nonzero.sum(dtype=jnp.int32)


@jax.custom_jvp
def pseudo_inverse(w, tolerance):
    """Pseudo-inverse `W^+` and rank of W; the derivative assumes constant rank.

    `dW^+ = -W^+ dW W^+ + W^+ W^+^T dW^T (1 - W W^+) + (1 - W^+ W) dW^T W^+^T W^+` (Golub and Pereyra 1973).
    """
    return _pseudo_inverse_and_rank(w, tolerance)


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

    `dw_i = v_i . dA v_i` and `dV = V F`, `F_ij = v_i . dA v_j / (w_j - w_i)`. The eigenvectors of a repeated
    eigenvalue are an arbitrary basis of its eigenspace; the derivative takes `F_ij = 0` within the eigenspace.
    """
    return tuple(jnp.linalg.eigh((matrix + matrix.T) / 2))


@symmetric_eigen.defjvp
def _symmetric_eigen_jvp(primals, tangents):
    values, vectors = symmetric_eigen(*primals)
    change = vectors.T @ (tangents[0] + tangents[0].T) @ vectors / 2
    gap = values[None, :] - values[:, None]
    repeated = jnp.abs(gap) <= 16 * jnp.finfo(values.dtype).eps * jnp.max(jnp.abs(values))
    turn = jnp.where(repeated, 0, change / jnp.where(repeated, 1, gap))
    return (values, vectors), (jnp.diagonal(change), vectors @ turn)


@jax.custom_jvp
def generalised_eigen(k, m):
    """Eigenvalues in ascending order and eigenvectors of `K x = w M x`, `X^T M X = 1`, for symmetric K, positive M.

    `dw_i = x_i . (dK - w_i dM) x_i` and `dX = X F`, `F_ij = x_i . (dK - w_j dM) x_j / (w_j - w_i)`. The eigenvectors
    of a repeated eigenvalue are an arbitrary basis of its eigenspace; there the derivative takes
    `F_ij = -x_i . dM x_j / 2`, which keeps them orthonormal and does not rotate the basis. Sums over a repeated
    eigenvalue, which do not depend on the basis, have exact derivatives.
    """
    lower = jnp.linalg.cholesky((m + m.T) / 2)
    half = jax.scipy.linalg.solve_triangular(lower, (k + k.T) / 2, lower=True)
    reduced = jax.scipy.linalg.solve_triangular(lower, half.T, lower=True)
    values, vectors = jnp.linalg.eigh((reduced + reduced.T) / 2)
    vectors = jax.scipy.linalg.solve_triangular(lower.T, vectors, lower=False)
    largest = jnp.take_along_axis(vectors, jnp.argmax(jnp.abs(vectors), axis=0)[None], axis=0)
    return values, vectors * jnp.where(largest < 0, -1, 1)


@generalised_eigen.defjvp
def _generalised_eigen_jvp(primals, tangents):
    values, vectors = generalised_eigen(*primals)
    dk, dm = (vectors.T @ (x + x.T) @ vectors / 2 for x in tangents)
    change = dk - dm * values
    gap = values[None, :] - values[:, None]
    tolerance = 64 * values.shape[0] * jnp.finfo(values.dtype).eps * jnp.max(jnp.abs(values), initial=0)
    is_repeated = jnp.abs(gap) <= tolerance
    turn = jnp.where(is_repeated, -dm / 2, change / jnp.where(is_repeated, 1, gap))
    return (values, vectors), (jnp.diagonal(change), vectors @ turn)
