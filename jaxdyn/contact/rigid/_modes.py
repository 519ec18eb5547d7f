"""The discrete state of a motion with contacts."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._types import Array, Float


class ContactModes(eqx.Module):
    """Which contacts are closed, and which of their friction groups slide. All leaves are floating-point numbers."""

    #: 1 where a contact is closed
    closed: Float[Array, "*batch contacts"]
    #: 1 where a group of a closed contact slides, 0 where it sticks
    sliding: Float[Array, "*batch groups"]
    #: unit vector of the slip, or of the relative angular velocity, of a sliding group, world axes
    direction: Float[Array, "*batch groups 3"]
    #: penetration at which a contact that opened with zero velocity closes again, m
    margin: Float[Array, "*batch contacts"]


def open_modes(contacts: int, groups: int, dtype) -> ContactModes:
    """The modes in which all contacts are open."""
    zero = lambda *shape: jnp.zeros(shape, dtype)
    return ContactModes(zero(contacts), zero(groups), zero(groups, 3), zero(contacts))
