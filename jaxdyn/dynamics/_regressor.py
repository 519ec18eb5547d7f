"""Inverse dynamics as a linear function of the inertial parameters."""

import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.dynamics._links import link_states
from jaxdyn.model import Model
from jaxdyn.recursion import check_model, check_state, dof_carries_link, reduce_effort
from jaxdyn.spatial import skew, ten_parameters


def inertial_parameters(model: Model) -> Float[Array, " tenlinks"]:
    """`(m, m c_x, m c_y, m c_z, Ixx, Ixy, Ixz, Iyy, Iyz, Izz)` of each link in turn, about the link's origin."""
    check_model(model)
    links = model.links
    return jnp.asarray(ten_parameters(links.mass, links.com, links.inertia)).reshape(-1)


def _spin_matrix(w):
    """`L(w)` with `I w = L(w) (Ixx, Ixy, Ixz, Iyy, Iyz, Izz)`."""
    x, y, z = w[..., 0], w[..., 1], w[..., 2]
    o = jnp.zeros_like(x)
    rows = ((x, y, z, o, o, o), (o, x, o, y, z, o), (o, o, x, o, y, z))
    return jnp.stack([jnp.stack(r, axis=-1) for r in rows], axis=-2)


def inertial_regressor(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]
) -> Float[Array, "nv tenlinks"]:
    """Regressor Y of inverse dynamics: `rnea = Y(q, v, a) theta + armature * a`, `theta = inertial_parameters(model)`.

    In link axes about the link's origin, with `a_o` the acceleration of that origin minus gravity,
    `f = m a_o + ([dw] + [w][w]) m c` and `n = -[a_o] m c + (L(dw) + [w] L(w)) I` (Atkeson, An and Hollerbach
    1986).

    Arguments:

    * `model`: the robot
    * `q`: configuration, `(nq,)`
    * `v`: velocity, `(nv,)`, rad/s or m/s
    * `a`: acceleration, `(nv,)`, rad/s^2 or m/s^2

    Returns Y, `(nv, 10 * num_links)`, in the order of `inertial_parameters`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    model = jd.robots.double_pendulum()
    q, v, a = jnp.array([0.1, 0.2]), jnp.array([0.5, -0.5]), jnp.array([1.0, 2.0])
    tau = jd.inertial_regressor(model, q, v, a) @ jd.inertial_parameters(model)
    ```
    """
    q, v, a = check_state(model, q=q, v=v, a=a)
    s = link_states(model, q, v, a, gravity=True)
    to_link = lambda x: jnp.einsum("lji,lj->li", s.rotation, x)
    w, dw = to_link(s.velocity[:, :3]), to_link(s.acceleration[:, :3])
    at_link_origin = lambda m: m[:, 3:] + jnp.cross(m[:, :3], s.translation)
    origin = to_link(at_link_origin(s.acceleration) + jnp.cross(s.velocity[:, :3], at_link_origin(s.velocity)))
    zero, zeros = jnp.zeros_like(origin)[..., None], jnp.zeros((*origin.shape, 6), origin.dtype)
    force = jnp.concatenate([origin[..., None], skew(dw) + skew(w) @ skew(w), zeros], axis=2)
    moment = jnp.concatenate([zero, -skew(origin), _spin_matrix(dw) + skew(w) @ _spin_matrix(w)], axis=2)
    force, moment = (jnp.einsum("lij,ljk->lik", s.rotation, x) for x in (force, moment))
    moment = moment + jnp.einsum("lij,ljk->lik", skew(s.translation), force)
    wrench = jnp.concatenate([moment, force], axis=1)
    rows = jnp.einsum("ki,lij->klj", s.bodies.subspace, wrench)
    rows = jnp.where(dof_carries_link(model)[..., None], rows, 0)
    return reduce_effort(model, rows.reshape(rows.shape[0], 10 * model.num_links))
