"""Conversion of user arguments to leaves and static fields of a pytree."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import PyTree


def as_float(x: PyTree) -> jax.Array:
    """Returns `x` as a floating-point array; integers are converted to the default precision."""
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.result_type(float))


def optional_float(x: PyTree) -> jax.Array | None:
    """Returns `as_float(x)`, or None for None."""
    return None if x is None else as_float(x)


def numbers_as_arrays(tree: PyTree) -> PyTree:
    """Returns the tree with its Python numbers and numpy arrays as JAX arrays."""
    return jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, float | int | np.ndarray) else x, tree)


def floats_as_arrays(tree: PyTree, dtype: DTypeLike) -> PyTree:
    """Returns the tree with its Python floats as arrays, so that programs with new values are not compiled again."""
    return jax.tree.map(lambda x: jnp.asarray(x, dtype) if isinstance(x, float) else x, tree)


class Function(eqx.Module):
    """Wraps a callable as static metadata, so that only arrays are leaves."""

    function: Callable[..., PyTree] = eqx.field(static=True)

    def __call__(self, *args):
        return self.function(*args)


def as_function(f: PyTree) -> PyTree:
    """Returns `f` if it is a pytree, whose leaves may be parameters; otherwise wraps it in a `Function`."""
    return Function(f) if callable(f) and jax.tree.leaves(f) == [f] else f
