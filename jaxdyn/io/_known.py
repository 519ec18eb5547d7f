"""Bodies and joints of numbers that a file gives, without a JAX operation for each of them."""

import functools
from typing import Any, TypeVar

import jax
import numpy as np

_T = TypeVar("_T")


def known(cls: type[_T], *numbers: np.ndarray) -> _T:
    """`cls(*numbers)` with numpy's arrays inside.

    The builder stacks numbers of all links before JAX sees them; converted one by one, they would take most of
    the time of a load.
    """
    return jax.tree.unflatten(_structure(cls, *(x.shape for x in numbers)), numbers)


@functools.cache
def _structure(cls: Any, *shapes: tuple[int, ...]):
    return jax.tree.structure(cls(*(jax.device_put(np.zeros(shape)) for shape in shapes)))  # which compiles nothing
