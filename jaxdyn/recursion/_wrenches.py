"""External wrenches: from one per link, in link axes about the link origin, to one per moving body."""

import jax.numpy as jnp
import numpy as np

from jaxdyn.recursion._bodies import link_placements
from jaxdyn.recursion._checks import check_wrenches
from jaxdyn.recursion._tree import TreeModel


def body_wrenches(model: TreeModel, external, dtype):
    """Sums the wrenches on the links of each body, `(links, 6)`, moment first, N m and N.

    Returns `(bodies, 6)` in the axes of the body about its origin; zeros if `external` is None.
    """
    t = model.topology
    nb = len(t.bodies)
    if external is None:
        return jnp.zeros((nb, 6), dtype)
    external = check_wrenches(model, external)
    if nb == len(t.parents):
        return external
    rotation, translation = link_placements(t, model.placements.rotation, model.placements.translation)
    moving = np.array([g >= 0 for g in t.groups])[:, None]
    force = jnp.einsum("lij,lj->li", rotation, external[:, 3:])
    moment = jnp.einsum("lij,lj->li", rotation, external[:, :3]) + jnp.cross(translation, force)
    in_body = jnp.where(moving, external, jnp.concatenate([moment, force], axis=1))
    member = np.equal.outer(np.arange(nb), np.array(t.body_of_link, int))
    return jnp.asarray(member, in_body.dtype) @ in_body
