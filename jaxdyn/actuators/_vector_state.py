"""Names, limits and measurements of actuators whose state is one vector."""

from collections.abc import Mapping, Sequence

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


def entries_by_name(names: Sequence[str], state: Array | None) -> dict[str, Float[Array, ""]]:
    """The entries of a state by their names."""
    return {} if state is None else {name: state[k] for k, name in enumerate(names)}


def replace_entries(names: Sequence[str], state: Array | None, values: Mapping[str, Array]) -> Array | None:
    """The state with the values of the entries that `values` names."""
    if state is None or not names:
        return state
    return jnp.stack([jnp.asarray(values.get(name, state[k])) for k, name in enumerate(names)])
