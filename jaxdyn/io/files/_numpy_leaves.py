"""Modules with numpy leaves, for the numbers of a file."""

import functools
from typing import Any, TypeVar

import jax
import numpy as np

_T = TypeVar("_T")


def with_numpy_leaves(cls: type[_T], *numbers: np.ndarray) -> _T:
    """Returns `cls(*numbers)` with numpy arrays for leaves.

    The builder stacks the numbers of all links before JAX sees them; converting each of them to a JAX array would take
    most of the time of a load.
    """
    return jax.tree.unflatten(_structure(cls, *(x.shape for x in numbers)), numbers)


@functools.cache
def _structure(cls: Any, *shapes: tuple[int, ...]):
    return jax.tree.structure(
        cls(*(jax.device_put(np.zeros(shape)) for shape in shapes))
    )  # device_put compiles nothing
