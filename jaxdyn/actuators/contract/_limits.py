"""Limits of inputs and states."""

import jax.numpy as jnp

from jaxdyn._types import Array, Float


def symmetric_limits(limit: Array | None, dtype) -> tuple[Float[Array, " 1"], Float[Array, " 1"]]:
    """Lower and upper limit of one input, infinite without a limit."""
    upper = jnp.full(1, jnp.inf if limit is None else limit, dtype)
    return -upper, upper


def infinite_limits(state: Array | None) -> tuple[Array | None, Array | None]:
    """Infinite limits of a state."""
    if state is None:
        return None, None
    upper = jnp.full_like(state, jnp.inf)
    return -upper, upper
