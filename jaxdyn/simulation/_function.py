"""Functions inside of pytrees."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax


class Function(eqx.Module):
    """A plain function as structure, so that what holds it has numbers alone for leaves."""

    function: Callable[..., Any] = eqx.field(static=True)

    def __call__(self, *args):
        return self.function(*args)


def as_function(f: Any) -> Any:
    """f itself if it is a pytree, whose leaves may be parameters; otherwise f as a `Function`."""
    return Function(f) if callable(f) and jax.tree.leaves(f) == [f] else f
