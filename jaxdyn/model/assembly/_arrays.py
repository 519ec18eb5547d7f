"""Arrays from the numbers of a description: with numpy for concrete numbers, with JAX for traced ones."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._numerics import is_concrete, namespace


def float_array(x, ndmin: int):
    """Array of floats; concrete numbers are converted by numpy, because a file has thousands of them."""
    dtype = jnp.result_type(float)
    return jax.device_put(np.array(x, dtype, ndmin=ndmin)) if is_concrete(x) else jnp.array(x, dtype, ndmin=ndmin)


def stack_rows(rows, width, dtype):
    """Stacks rows of shape `width` into one array, which may be empty."""
    if not rows:
        return jnp.asarray(np.zeros((0, *width), dtype), dtype)  # by numpy, which compiles nothing
    xp = namespace(rows)
    # without a dtype JAX compiles a conversion
    return jnp.asarray(xp.stack([xp.asarray(x, dtype) for x in rows]), dtype)


def cast(entries, dtype):
    """Casts all arrays of the entries to `dtype`."""
    return jax.tree.map(lambda x: x if x.dtype == dtype else jnp.asarray(x, dtype), tuple(entries))
