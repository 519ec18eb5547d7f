"""Linear algebra of batches of small matrices: each routine is a kernel that processes the batch in lanes.

LAPACK is called once for each matrix; for matrices of ten rows the overhead of the call dominates.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._numerics import kernel


def product(a, b):
    """`a b` for `(n, k, lanes)` and `(k, m, lanes)`; for use in kernels.

    A loop computes row by row. Otherwise XLA would recompute each entry of b wherever it is used.
    """

    def row(x):
        total = jnp.zeros((b.shape[1], 1), a.dtype)
        for k in range(b.shape[0]):
            total = total + x[k] * b[k]
        return jnp.broadcast_to(total, (b.shape[1], max(a.shape[-1], b.shape[-1])))

    return jax.lax.map(row, a)


def inverse_kernel(_, a):
    """Inverse by Gauss-Jordan elimination with partial pivoting; for use in kernels."""
    n, lanes = a.shape[0], a.shape[-1]
    eye = jnp.asarray(np.eye(n)[..., None], a.dtype)
    index = jnp.arange(n, dtype=jnp.int32)
    at = lambda x, k: jax.lax.dynamic_index_in_dim(x, k, 0, keepdims=False)

    def step(carry, k):
        m, free = carry

        def largest(best, x):
            size, row, place = best
            own, i, free = x
            new = jnp.where(free > 0, jnp.abs(at(own, k)), -1)
            larger = new > size
            return (jnp.maximum(new, size), jnp.where(larger, own, row), jnp.where(larger, i, place)), None

        worst = jnp.full(lanes, -2, a.dtype), jnp.zeros_like(m[0]), jnp.zeros(lanes, jnp.int32)
        (_, row, place), _ = jax.lax.scan(largest, worst, (m, index, free))
        scaled = jax.lax.map(lambda x: x / at(row, k), row)

        def eliminate(x):
            own, i, free = x
            here = i == place
            return jnp.where(here, scaled, own - at(own, k) * scaled), jnp.where(here, 0, free)

        return jax.lax.map(eliminate, (m, index, free)), place

    start = jnp.concatenate([a, jnp.broadcast_to(eye, a.shape)], axis=1), jnp.ones((n, lanes), a.dtype)
    (m, _), places = jax.lax.scan(step, start, index)

    def row(place):
        pick = lambda row, x: (jnp.where(x[1] == place, x[0], row), None)
        return jax.lax.scan(pick, jnp.zeros_like(m[0, n:]), (m[:, n:], index))[0]

    return jax.lax.map(row, places)


def sweep_kernel(pivots: int, m):
    """`[[x^-1, x^-1 y], [., z - y' x^-1 y]]` and the pivots for symmetric `[[x, y], [y', z]]`, x of `pivots` rows.

    x is positive definite exactly if all pivots are positive. For use in kernels.
    """
    rows = jnp.arange(m.shape[0], dtype=jnp.int32)
    at = lambda x, k: jax.lax.dynamic_index_in_dim(x, k, 0, keepdims=False)

    def sweep(m, k):
        row = at(m, k)
        pivot = at(row, k)
        here = rows == k
        scaled = jax.lax.map(lambda x: jnp.where(x[1], 1, x[0]) / pivot, (row, here))

        def change(x):
            own, i = x
            rest = jnp.where(here[:, None], 0, own) - at(own, k) * scaled
            return jnp.where(i == k, scaled, rest)

        return jax.lax.map(change, (m, rows)), pivot

    return jax.lax.scan(sweep, m, rows[:pivots])


def _negative(_, a):
    """Number of negative pivots of the tridiagonal form, by Householder reflections."""
    n, dtype = a.shape[0], a.dtype
    rows = jnp.arange(n, dtype=jnp.int32)[:, None]
    tiny = jnp.finfo(dtype).tiny

    def total(x):
        out = x[0]
        for i in range(1, n):
            out = out + x[i]
        return out

    def step(carry, k):
        a, before, last, count = carry
        column = jax.lax.dynamic_index_in_dim(a, k, 1, keepdims=False)
        diagonal = jax.lax.dynamic_index_in_dim(column, k, 0, keepdims=False)
        pivot = diagonal - before / last
        floor = jnp.finfo(dtype).eps * (jnp.sqrt(before) + jnp.abs(diagonal)) + tiny
        pivot = jnp.where(jnp.abs(pivot) < floor, -floor, pivot)
        below = jnp.where(rows > k, column, 0)
        square = total(below * below)
        first = jnp.where(rows == k + 1, 1, 0)
        head = total(first * below)
        v = below + first * jnp.where(head < 0, -1, 1) * jnp.sqrt(square)
        size = total(v * v)
        scale = jnp.where(size > tiny, 2 / jnp.where(size > tiny, size, 1), 0)
        w = jax.lax.scan(lambda w, x: (w + x[0] * x[1], None), jnp.zeros_like(v), (a, scale * v))[0]
        half = scale / 2 * total(w * v)
        w = jax.lax.map(lambda x: x[0] - half * x[1], (w, v))
        a = jax.lax.map(lambda x: x[0] - x[1] * w - x[2] * v, (a, v, w))
        return (a, square, pivot, count + jnp.where(pivot < 0, 1, 0).astype(dtype)), None

    zero = jnp.zeros(a.shape[-1], dtype)
    start = a, zero, zero + 1, zero
    return jax.lax.scan(step, start, jnp.arange(n, dtype=jnp.int32))[0][-1]


_invert, _count = kernel(inverse_kernel), kernel(_negative)


@jax.custom_jvp
def inverse(a):
    """The inverse of a regular matrix `(n, n)`; not finite for a singular matrix."""
    return a if a.shape[0] == 0 else _invert(None, a)


@inverse.defjvp
def _inverse_jvp(primals, tangents):
    x = inverse(*primals)
    return x, -x @ tangents[0] @ x


def negative_eigenvalues(a):
    """Number of negative eigenvalues of a symmetric matrix, by a Sturm sequence."""
    return jnp.zeros((), a.dtype) if a.shape[0] == 0 else _count(None, a)
