"""Inertias, velocities and forces link by link, in world axes about the world's origin, as plain arrays.

For quantities that are not on the hot path. Six-vectors are rows, angular first.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float
from jaxdyn.kinematics._state import BodyStates, body_states
from jaxdyn.model import Model
from jaxdyn.model._bodies import link_placements
from jaxdyn.spatial import steiner


def skew(x):
    """`[x]`, along the last axis."""
    zero = jnp.zeros_like(x[..., 0])
    rows = (zero, -x[..., 2], x[..., 1], x[..., 2], zero, -x[..., 0], -x[..., 1], x[..., 0], zero)
    return jnp.stack(rows, axis=-1).reshape(*x.shape[:-1], 3, 3)


def motion_cross(v, m):
    """`v x m`."""
    w = jnp.cross(v[..., :3], m[..., :3])
    return jnp.concatenate([w, jnp.cross(v[..., :3], m[..., 3:]) + jnp.cross(v[..., 3:], m[..., :3])], axis=-1)


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


def _of_body(model: Model, x, world):
    """Rows of an array over bodies for each link; `world` for links that do not move."""
    index = np.array(model.topology.body_of_link, int)
    padded = jnp.concatenate([x, jnp.broadcast_to(world, x[:0].shape[1:])[None].astype(x.dtype)])
    return padded[np.where(index < 0, x.shape[0], index)]


def link_states(model: Model, q, v: Any = None, a: Any = None, *, gravity: bool = False) -> LinkStates:
    """Poses, inertias and motion of the links; with `gravity`, accelerations are relative to free fall."""
    t = model.topology
    b = body_states(model, q, v, a)
    local_r, local_p = link_placements(t, model.placements.rotation, model.placements.translation)
    own = np.array([g >= 0 for g in t.groups])[:, None]
    local_r = jnp.where(own[..., None], jnp.eye(3, dtype=local_r.dtype), local_r)
    local_p = jnp.where(own, 0, local_p)
    outer = _of_body(model, b.rotation, jnp.eye(3))
    r = outer @ local_r
    p = _of_body(model, b.translation, jnp.zeros(3)) + jnp.einsum("lij,lj->li", outer, local_p)
    com = p + jnp.einsum("lij,lj->li", r, model.links.com)
    acceleration = _of_body(model, b.acceleration, jnp.zeros(6))
    if gravity:
        acceleration = acceleration - jnp.concatenate([jnp.zeros(3, p.dtype), model.gravity])
    central = (model.links.inertia + jnp.swapaxes(model.links.inertia, 1, 2)) / 2
    turned = r @ central @ jnp.swapaxes(r, 1, 2)
    return LinkStates(
        r, p, com, _six_by_six(model.links.mass, com, turned), _of_body(model, b.velocity, jnp.zeros(6)),
        acceleration, b,
    )  # fmt: skip


def _six_by_six(mass, com, central):
    first = skew(mass[:, None] * com)
    second = central + mass[:, None, None] * _steiner(com)
    linear = mass[:, None, None] * jnp.eye(3, dtype=mass.dtype)
    top = jnp.concatenate([second, first], axis=2)
    return jnp.concatenate([top, jnp.concatenate([-first, linear], axis=2)], axis=1)


def _steiner(d):
    return jax.vmap(steiner)(d)


def link_forces(states: LinkStates):
    """`I a + v x* I v` of each link."""
    apply = lambda m: jnp.einsum("lij,lj->li", states.inertia, m)
    return apply(states.acceleration) + force_cross(states.velocity, apply(states.velocity))


def moving_mass(model: Model):
    """Masses of the links, zero for those fixed to the world."""
    return jnp.where(np.array(model.topology.body_of_link, int) >= 0, model.links.mass, 0)


def dof_carries_link(model: Model) -> np.ndarray:
    """`[k, l]`: degree of freedom k (of all joints) moves link l."""
    t = model.topology
    carries = np.zeros((len(t.bodies) + 1, len(t.bodies)), bool)
    carries[:-1] = t.body_ancestors.T
    index = np.where(np.array(t.body_of_link, int) < 0, len(t.bodies), np.array(t.body_of_link, int))
    return carries[index][:, t.dof_body].T
