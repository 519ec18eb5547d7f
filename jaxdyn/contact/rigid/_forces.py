"""Contact forces in given modes, with sticking and sliding friction groups.

The active rows, normals of closed contacts and rows of their sticking groups, have `cdot = 0`. A sliding group exerts
`-mu_k F_n d` with the direction d of its slip, so that all forces are `lambda = S y` with the multipliers y of the
active rows:

    P G S y + P w = 0

with the projection P onto the active rows. Forces that are not unique are those of least norm.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn._numerics import pseudo_inverse, safe_norm
from jaxdyn._types import Array, Float
from jaxdyn.contact.rigid._contact import Contact
from jaxdyn.contact.rigid._layout import Layout, gather_groups, scatter_groups
from jaxdyn.contact.rigid._modes import ContactModes


class Cones(NamedTuple):
    """Radii of the friction cones of all groups at a unit normal force."""

    sticking: Float[Array, " groups"]
    sliding: Float[Array, " groups"]

    @property
    def are_points(self):
        """Whether the cones have no width: a group without friction never sticks."""
        return (self.sticking <= 0) & (self.sliding <= 0)


def friction_cones(contacts: tuple[Contact, ...], dtype) -> Cones:
    """The radii of the cones of all groups."""
    sticking, sliding = [], []
    for contact in contacts:
        if contact.friction is not None:
            a, b = contact.friction.bounds(contact.plane is not None)
            sticking += a
            sliding += b
    stack = lambda xs: jnp.stack([jnp.asarray(x, dtype) for x in xs]) if xs else jnp.zeros(0, dtype)
    return Cones(stack(sticking), stack(sliding))


def zero_speed(rate):
    """Speed below which a velocity is rounding error, m/s or rad/s."""
    return jnp.finfo(rate.dtype).eps ** 0.6 * (1 + jnp.max(jnp.abs(rate), initial=0))


def slip_directions(layout: Layout, rate, basis, direction) -> Float[Array, " rows"]:
    """Unit vectors of the slips of all groups, in their rows; zero in normal rows.

    Their sign is chosen such that their product with the reference `direction`, `(groups, 3)`, is not negative, so that
    the friction force is smooth along a step in which the slip stops. At zero slip they equal the reference.
    """
    reference = reference_directions(layout, basis, direction)
    length = safe_norm(reference, axis=1)[:, None]
    reference = reference / jnp.where(length > 0, length, 1)
    own = gather_groups(layout, rate)
    speed = safe_norm(own, axis=1)[:, None]
    moves = speed > jnp.finfo(rate.dtype).eps ** 0.75
    side = jnp.where(jnp.sum(own * reference, axis=1, keepdims=True) < 0, -1, 1)
    unit = jnp.where(moves, side * own / jnp.where(moves, speed, 1), reference)
    is_line = (layout.rows[:, 1:] == layout.num_rows).all(axis=1)[:, None]
    return scatter_groups(layout, jnp.zeros_like(rate), jnp.where(is_line, jnp.sign(reference), unit))


def reference_directions(layout: Layout, basis, direction) -> Float[Array, "groups 3"]:
    """The components of world vectors, one for each group, along the rows of the groups."""
    rows = [jnp.zeros(3, direction.dtype).at[: len(e)].set(e @ d) for e, d in zip(basis, direction, strict=True)]
    return jnp.stack(rows) if rows else jnp.zeros((0, 3), direction.dtype)


def held_rows(layout: Layout, modes: ContactModes) -> Float[Array, " rows"]:
    """1 for the normals of closed contacts and the rows of their sticking groups."""
    closed = modes.closed[layout.contact_of_row]
    return closed * (1 - _at_rows(layout, modes.sliding))


def _at_rows(layout: Layout, x):
    """The values of the groups at their rows; zero at the normals."""
    return jnp.concatenate([x, jnp.zeros(1, x.dtype)])[layout.group_of_row]


def force_map(layout: Layout, cones: Cones, modes: ContactModes, directions) -> Float[Array, "rows rows"]:
    """S, which maps multipliers of the active rows to the forces along all rows."""
    closed = modes.closed[layout.contact_of_row]
    sliding = closed * _at_rows(layout, modes.sliding * cones.sliding) * directions
    normal_of_row = layout.normal[layout.contact_of_row]
    held = held_rows(layout, modes)
    return jnp.diag(held).at[jnp.arange(layout.num_rows), normal_of_row].add(-sliding)


def normal_gains(layout: Layout, cones: Cones, modes: ContactModes, directions, delassus) -> Float[Array, " contacts"]:
    """Normal acceleration per unit of normal force, relative to a contact without friction; 1 for open contacts.

    It is not positive in Painleve's paradox.
    """
    by_forces = delassus @ force_map(layout, cones, modes, directions)
    own = jnp.diagonal(delassus)[layout.normal]  # zero between bodies that cannot move
    gain = jnp.where(own > 0, by_forces[layout.normal, layout.normal] / jnp.where(own > 0, own, 1), 1)
    return jnp.where(modes.closed > 0, gain, 1)


def forces_in_modes(
    layout: Layout, cones: Cones, modes: ContactModes, directions, delassus, bias
) -> Float[Array, " rows"]:
    """Forces along all rows."""
    held = held_rows(layout, modes)
    to_forces = force_map(layout, cones, modes, directions)
    tolerance = jnp.finfo(bias.dtype).eps ** 0.7
    # rows that are not held become those of a multiple of the identity, which leaves the matrix regular if it was
    size = jnp.maximum(jnp.max(jnp.abs(delassus)), jnp.finfo(bias.dtype).tiny)
    system = held[:, None] * (delassus @ to_forces) + jnp.diag((1 - held) * jax.lax.stop_gradient(size))
    inverse, _ = pseudo_inverse(system, jnp.asarray(tolerance, bias.dtype))
    return to_forces @ -(inverse @ (held * bias))
