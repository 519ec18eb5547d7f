"""External wrenches: from one a link, in link axes at the link's origin, to one a moving body."""

import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import check_shape
from jaxdyn.model import Model
from jaxdyn.model._bodies import link_placements


def body_loads(model: Model, external, dtype):
    """Sums what acts on the links that make up each body, in the body's axes about its origin."""
    t = model.topology
    nb = len(t.bodies)
    if external is None:
        return jnp.zeros((nb, 6), dtype)
    external = check_shape("external", external, (model.num_links, 6))
    if nb == model.num_links:
        return external
    rotation, translation = link_placements(t, model.placements.rotation, model.placements.translation)
    moving = np.array([g >= 0 for g in t.groups])[:, None]
    force = jnp.einsum("lij,lj->li", rotation, external[:, 3:])
    moment = jnp.einsum("lij,lj->li", rotation, external[:, :3]) + jnp.cross(translation, force)
    carried = jnp.where(moving, external, jnp.concatenate([moment, force], axis=1))
    member = np.equal.outer(np.arange(nb), np.array(t.body_of_link, int))
    return jnp.asarray(member, carried.dtype) @ carried
