"""Exceptions, and checks of arguments.

Shapes and kinds are checked always, at the cost of microseconds while a function is traced; values only where they are
concrete.
"""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import core


class JaxdynError(Exception):
    """Base class of all errors raised by jaxdyn."""


class ModelError(JaxdynError, ValueError):
    """An invalid robot description; the message names the link or joint."""


class FileFormatError(ModelError):
    """Invalid content of a file; the message names the file, the element and the remedy."""


class FileAccessError(JaxdynError):
    """A file that cannot be read or written."""


class ArgumentError(JaxdynError, ValueError):
    """An argument of a wrong kind, or a number that is out of range."""


class ShapeError(ArgumentError):
    """An argument with a wrong shape."""


class ConvergenceError(JaxdynError, RuntimeError):
    """A solver did not converge and the caller asked for an exception."""


def describe(value: Any) -> str:
    """An argument as messages describe it: its class, and the shape of an array."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, jax.Array | np.ndarray):
        return f"an array of shape {value.shape}"
    if value is None or isinstance(value, bool | int | float | complex | str):
        return repr(value) if len(repr(value)) < 60 else f"{repr(value)[:57]}..."
    return f"a {type(value).__name__}"


def check_shape(name: str, array, shape: tuple[int, ...]) -> jax.Array:
    """Returns `array` as a floating-point JAX array; raises `ShapeError` if its shape is not `shape`."""
    if not isinstance(array, jax.Array):
        array = _as_array(name, array, shape)
    if array.shape != shape:
        raise ShapeError(
            f"{name} has shape {array.shape}, expected {shape}. Functions take one sample: use jax.vmap "
            "for a batch; jaxdyn.neutral(model) returns a configuration of the right size."
        )
    if not jnp.issubdtype(array.dtype, jnp.floating):
        if jnp.issubdtype(array.dtype, jnp.complexfloating):
            raise ArgumentError(f"{name} is complex ({array.dtype}), expected real numbers; give {name}.real")
        array = array.astype(jnp.result_type(float))
    return array


def _as_array(name: str, value: Any, shape: tuple[int, ...]) -> jax.Array:
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"{name} is {describe(value)}, expected an array of shape {shape}; give numbers in a JAX or numpy array"
        ) from error


def check_is_array(name: str, value: Any, shape: tuple[int, ...] | str):
    """Raises `ArgumentError` unless a value is an array; lists would be converted at each call."""
    if not isinstance(value, jax.Array | np.ndarray) and not hasattr(value, "__jax_array__"):
        raise ArgumentError(
            f"{name} is {describe(value)}, expected an array of shape {shape}; convert it once, by jax.numpy.asarray"
        )


def check_instance(name: str, value: Any, kind: type | tuple[type, ...], remedy: str, error: type = ArgumentError):
    """Raises `error` unless `value` is an instance of `kind`; `remedy` says what to pass instead."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        expected = " or ".join(x.__name__ for x in kinds)
        if isinstance(value, type) and issubclass(value, kind):
            remedy = f"create one: {value.__name__}(...)"
        raise error(f"{name} is {describe(value)}, expected an instance of {expected}; {remedy}")


def check_count(name: str, value: Any, least: int = 1):
    """Raises `ArgumentError` unless `value` is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ArgumentError(f"{name} is {describe(value)}, expected an int of at least {least}; give a whole number")


def check_positive(name: str, value: Any, unit: str):
    """Raises `ArgumentError` unless `value` is a real scalar, positive and finite where it is concrete."""
    problem = None
    if isinstance(value, bool) or not isinstance(value, int | float | np.number | np.ndarray | jax.Array):
        problem = describe(value)
    elif jnp.shape(value) != () or jnp.issubdtype(jnp.result_type(value), jnp.complexfloating):
        problem = describe(value)
    elif not isinstance(value, core.Tracer) and not 0 < float(value) < np.inf:
        problem = f"{float(value):g}"
    if problem is not None:
        raise ArgumentError(f"{name} is {problem}, expected a positive number ({unit}); correct its sign or kind")


def format_names(names: Iterable[object], most: int = 12) -> str:
    """Quoted names for an error message, at most `most` of them and the number of the others."""
    quoted = [repr(str(name)) for name in names]
    rest = f" and {len(quoted) - most} more" if len(quoted) > most else ""
    return (", ".join(quoted[:most]) or "none") + rest
