"""Numbers of a description as arrays: by numpy where they are known, by JAX where they are traced."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.model._checks import is_concrete


def namespace(tree):
    """numpy for known numbers, since a JAX operation a number would take most of the time of a build."""
    return np if is_concrete(tree) else jnp


def array(x, ndmin: int):
    """An array of floats; of known numbers without a JAX operation, which a file has too many of."""
    dtype = jnp.result_type(float)
    return jax.device_put(np.array(x, dtype, ndmin=ndmin)) if is_concrete(x) else jnp.array(x, dtype, ndmin=ndmin)


def stacked(rows, width, dtype):
    """Rows of a shape `width` in one array, which may be empty."""
    if not rows:
        return jnp.asarray(np.zeros((0, *width), dtype), dtype)  # of numpy's, which compiles nothing
    xp = namespace(rows)
    return jnp.asarray(xp.stack([xp.asarray(x, dtype) for x in rows]), dtype)  # without a dtype it compiles


def cast(entries, dtype):
    """Entries with all their arrays of one type."""
    return jax.tree.map(lambda x: x if x.dtype == dtype else jnp.asarray(x, dtype), tuple(entries))
