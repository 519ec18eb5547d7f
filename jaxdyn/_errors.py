"""Exceptions, and the check of array shapes."""

from collections.abc import Iterable

import jax
import jax.numpy as jnp


class JaxdynError(Exception):
    """Base class of all errors raised by jaxdyn."""


class ModelError(JaxdynError, ValueError):
    """An invalid robot description; the message names the link or joint."""


class FileFormatError(ModelError):
    """Invalid content of a file; the message names the file, the element and the remedy."""


class FileAccessError(JaxdynError):
    """A file that cannot be read or written."""


class ShapeError(JaxdynError, ValueError):
    """An argument with a wrong shape."""


class ConvergenceError(JaxdynError, RuntimeError):
    """A solver did not converge and the caller asked for an exception."""


def check_shape(name: str, array, shape: tuple[int, ...]) -> jax.Array:
    """Returns `array` as a floating-point JAX array; raises `ShapeError` if its shape is not `shape`."""
    array = jnp.asarray(array)
    if array.shape != shape:
        raise ShapeError(
            f"{name} has shape {array.shape}, expected {shape}. Functions take one sample: use jax.vmap "
            "for a batch; jaxdyn.neutral(model) returns a configuration of the right size."
        )
    if not jnp.issubdtype(array.dtype, jnp.floating):
        array = array.astype(jnp.result_type(float))
    return array


def format_names(names: Iterable[object], most: int = 12) -> str:
    """Quoted names for an error message, at most `most` of them and the number of the others."""
    quoted = [repr(str(name)) for name in names]
    rest = f" and {len(quoted) - most} more" if len(quoted) > most else ""
    return (", ".join(quoted[:most]) or "none") + rest
