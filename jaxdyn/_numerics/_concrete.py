"""Distinguishes concrete numbers from traced ones."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import core


def is_concrete(x) -> bool:
    """True if no leaf of `x` is traced."""
    return not any(isinstance(leaf, core.Tracer) for leaf in jax.tree.leaves(x))


def namespace(tree) -> Any:
    """Returns numpy if all leaves are concrete, otherwise jax.numpy.

    Most of the time needed to build a model would be the dispatch of a JAX operation for each concrete number.
    """
    return np if is_concrete(tree) else jnp
