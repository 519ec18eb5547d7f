"""Inertias, velocities and forces of each link, in world axes about the world's origin, as plain arrays.

These functions serve quantities whose speed matters little. Six-vectors are rows, angular half first.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float, Velocity
from jaxdyn.model import Model
from jaxdyn.recursion import BodyStates, body_states, expand_to_links, link_poses
from jaxdyn.spatial import skew, steiner


def force_cross(v, f):
    """`v x* f`."""
    n = jnp.cross(v[..., :3], f[..., :3]) + jnp.cross(v[..., 3:], f[..., 3:])
    return jnp.concatenate([n, jnp.cross(v[..., :3], f[..., 3:])], axis=-1)


class LinkStates(eqx.Module):
    """All links, those behind fixed joints and on the world included."""

    rotation: Float[Array, "links 3 3"]
    translation: Float[Array, "links 3"]
    com: Float[Array, "links 3"]
    #: 6x6 about the world's origin
    inertia: Float[Array, "links 6 6"]
    velocity: Float[Array, "links 6"]
    acceleration: Float[Array, "links 6"]
    bodies: BodyStates


def link_states(
    model: Model, q, v: Velocity | None = None, a: Velocity | None = None, *, gravity: bool = False
) -> LinkStates:
    """Poses, inertias and motion of all links; with `gravity`, accelerations are relative to free fall."""
    t = model.topology
    b = body_states(model, q, v, a)
    r, p = link_poses(model, b.rotation, b.translation)
    com = p + jnp.einsum("lij,lj->li", r, model.links.com)
    acceleration = expand_to_links(t, b.acceleration)
    if gravity:
        acceleration = acceleration - jnp.concatenate([jnp.zeros(3, p.dtype), model.gravity])
    central = (model.links.inertia + jnp.swapaxes(model.links.inertia, 1, 2)) / 2
    inertia = _inertia_about_origin(model.links.mass, com, r @ central @ jnp.swapaxes(r, 1, 2))
    return LinkStates(r, p, com, inertia, expand_to_links(t, b.velocity), acceleration, b)


def _inertia_about_origin(mass, com, central):
    """6x6 spatial inertias from centres of mass and central inertias in world axes."""
    first = skew(mass[:, None] * com)
    second = central + mass[:, None, None] * jax.vmap(steiner)(com)
    linear = mass[:, None, None] * jnp.eye(3, dtype=mass.dtype)
    top = jnp.concatenate([second, first], axis=2)
    return jnp.concatenate([top, jnp.concatenate([-first, linear], axis=2)], axis=1)


def link_forces(states: LinkStates):
    """`I a + v x* I v` of each link."""
    apply = lambda m: jnp.einsum("lij,lj->li", states.inertia, m)
    return apply(states.acceleration) + force_cross(states.velocity, apply(states.velocity))


def moving_mass(model: Model):
    """Masses of the links, zero for those fixed to the world."""
    return jnp.where(np.array(model.topology.body_of_link, int) >= 0, model.links.mass, 0)
