"""Vector algebra of the joints, on arrays with structure axes first and any trailing axes (samples)."""

import jax
import jax.numpy as jnp


def rows(*components) -> jax.Array:
    """Stacks components of different trailing shapes into one array."""
    return jnp.stack(jnp.broadcast_arrays(*(jnp.asarray(c) for c in components)))


def unit(axis) -> jax.Array:
    """`axis / |axis|`. Joints normalise their axis when they use it, so that the leaf may have any non-zero length."""
    length = jnp.sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2])
    return jnp.stack([axis[k] / length for k in range(3)])


def identity(like) -> jax.Array:
    """Identity matrix with the trailing shape of the component `like`."""
    one, zero = jnp.ones_like(like), jnp.zeros_like(like)
    return jnp.stack([jnp.stack([one, zero, zero]), jnp.stack([zero, one, zero]), jnp.stack([zero, zero, one])])


def cross(a, b) -> jax.Array:
    """Vector product."""
    return jnp.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def rotate(r, x) -> jax.Array:
    """`R x`."""
    return jnp.stack([sum(r[i, k] * x[k] for k in range(3)) for i in range(3)])


def matmul(a, b) -> jax.Array:
    """Product of two 3x3 matrices."""
    return jnp.stack([jnp.stack([sum(a[i, k] * b[k, j] for k in range(3)) for j in range(3)]) for i in range(3)])
