"""The matrix of the vector product."""

import jax.numpy as jnp

from jaxdyn._types import Array, Float


def skew(x: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3 3"]:
    """`[x]`, the matrix with `[x] y = x cross y`, along the last axis."""
    zero = jnp.zeros_like(x[..., 0])
    rows = (zero, -x[..., 2], x[..., 1], x[..., 2], zero, -x[..., 0], -x[..., 1], x[..., 0], zero)
    return jnp.stack(rows, axis=-1).reshape(*x.shape[:-1], 3, 3)
