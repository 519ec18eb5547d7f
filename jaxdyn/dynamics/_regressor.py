"""Inverse dynamics as a linear function of the inertial parameters."""

import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.dynamics._inverse import checked_state
from jaxdyn.dynamics._links import dof_carries_link, link_states, skew
from jaxdyn.model import Model
from jaxdyn.model._mimic import own_effort


def inertial_parameters(model: Model) -> Float[Array, " tenlinks"]:
    """`(m, m c_x, m c_y, m c_z, Ixx, Ixy, Ixz, Iyy, Iyz, Izz)` of each link in turn, about the link's origin."""
    m, com, i = model.links.mass, model.links.com, model.links.inertia
    i = (i + jnp.swapaxes(i, 1, 2)) / 2
    square = jnp.sum(com * com, axis=1)[:, None, None] * jnp.eye(3, dtype=com.dtype)
    about = i + m[:, None, None] * (square - com[:, :, None] * com[:, None, :])
    six = [about[:, a, b] for a, b in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]
    return jnp.stack([m, *(m * com[:, k] for k in range(3)), *six], axis=1).reshape(-1)


def _dotted(w):
    """`L(w)` with `I w = L(w) (Ixx, Ixy, Ixz, Iyy, Iyz, Izz)`."""
    x, y, z = w[..., 0], w[..., 1], w[..., 2]
    o = jnp.zeros_like(x)
    rows = ((x, y, z, o, o, o), (o, x, o, y, z, o), (o, o, x, o, y, z))
    return jnp.stack([jnp.stack(r, axis=-1) for r in rows], axis=-2)


def inertial_regressor(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]
) -> Float[Array, "nv tenlinks"]:
    """`Y(q, v, a)` with `rnea = Y theta + armature * a`, `theta = inertial_parameters(model)`.

    In link axes at the link's origin, with `a_o` the acceleration of that point against free fall,
    `f = m a_o + ([dw] + [w][w]) m c` and `n = -[a_o] m c + (L(dw) + [w] L(w)) I` (Atkeson, An and Hollerbach
    1986).
    """
    q, v, a = checked_state(model, q, v, a)
    s = link_states(model, q, v, a, gravity=True)
    back = lambda x: jnp.einsum("lji,lj->li", s.rotation, x)
    w, dw = back(s.velocity[:, :3]), back(s.acceleration[:, :3])
    at = lambda m: m[:, 3:] + jnp.cross(m[:, :3], s.translation)
    point = back(at(s.acceleration) + jnp.cross(s.velocity[:, :3], at(s.velocity)))
    zero, none = jnp.zeros_like(point)[..., None], jnp.zeros((*point.shape, 6), point.dtype)
    force = jnp.concatenate([point[..., None], skew(dw) + skew(w) @ skew(w), none], axis=2)
    moment = jnp.concatenate([zero, -skew(point), _dotted(dw) + skew(w) @ _dotted(w)], axis=2)
    force, moment = (jnp.einsum("lij,ljk->lik", s.rotation, x) for x in (force, moment))
    moment = moment + jnp.einsum("lij,ljk->lik", skew(s.translation), force)
    wrench = jnp.concatenate([moment, force], axis=1)
    rows = jnp.einsum("ki,lij->klj", s.bodies.subspace, wrench)
    rows = jnp.where(dof_carries_link(model)[..., None], rows, 0)
    return own_effort(model, rows.reshape(rows.shape[0], 10 * model.num_links))
