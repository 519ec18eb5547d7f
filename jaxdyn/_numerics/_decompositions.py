"""Matrix decompositions whose derivatives are finite where those of singular vectors are not."""

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
