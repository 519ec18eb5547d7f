"""From the moving bodies to all links, including those behind fixed joints and on the world."""

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn.recursion._body_states import link_offsets
from jaxdyn.recursion._topology import Topology
from jaxdyn.recursion._tree import TreeModel


def expand_to_links(t: Topology, x, world: ArrayLike = 0.0):
    """Repeats each row of `x`, `(bodies, ...)`, for the links of that body: `(links, ...)`.

    Links that are fixed to the world have the row `world`, which is broadcast to the shape of a row.
    """
    rows = np.array(t.body_of_link, int) % (len(t.bodies) + 1)  # the last row is the world
    last = jnp.broadcast_to(jnp.asarray(world, x.dtype), x.shape[1:])
    return jnp.take(jnp.concatenate([x, last[None]]), rows, axis=0)


def link_poses(model: TreeModel, rotation, translation):
    """Poses of all links, `(links, 3, 3)` and `(links, 3)` in m, from those of the moving bodies in the same axes."""
    t = model.topology
    if len(t.bodies) == len(t.parents):
        return rotation, translation
    fixed = np.array([g < 0 for g in t.groups])
    one = jnp.eye(3, dtype=rotation.dtype)
    placed_r, placed_p = link_offsets(model)
    placed_r = jnp.where(fixed[:, None, None], placed_r, one)
    placed_p = jnp.where(fixed[:, None], placed_p, 0)
    r, p = expand_to_links(t, rotation, one), expand_to_links(t, translation)
    return r @ placed_r, p + jnp.einsum("lij,lj->li", r, placed_p)
