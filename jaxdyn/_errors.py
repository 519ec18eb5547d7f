"""What jaxdyn raises, and the codes that results carry."""

import jax.numpy as jnp


class JaxdynError(Exception):
    """Base class of all errors raised by jaxdyn."""


class ModelError(JaxdynError, ValueError):
    """A robot description that cannot be built; the message names the link or joint at fault."""


class FileFormatError(ModelError):
    """A file whose content is refused; the message names file, element and remedy."""


class FileAccessError(JaxdynError):
    """A file that cannot be read or written."""


class ShapeError(JaxdynError, ValueError):
    """An argument whose shape does not fit the model."""


class ConvergenceError(JaxdynError, RuntimeError):
    """A solve that did not converge and whose caller asked for an exception."""


def check_shape(name: str, array, shape: tuple[int, ...]):
    """Returns `array` as a JAX array, or raises `ShapeError` saying what was given and expected."""
    array = jnp.asarray(array)
    if array.shape != shape:
        raise ShapeError(
            f"{name} has shape {array.shape}, expected {shape}. Functions take one sample: use jax.vmap "
            "for a batch, and jaxdyn.neutral(model) for a configuration of the right size."
        )
    if not jnp.issubdtype(array.dtype, jnp.floating):
        array = array.astype(jnp.result_type(float))
    return array
