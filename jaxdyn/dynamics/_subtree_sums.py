"""The equations of motion from the states of the bodies, by sums over subtrees.

Where poses, velocities and accelerations at zero joint accelerations are known already, no further sweep is needed.
With the spatial inertias I of the bodies about a common origin, in world axes,

    M_ij = S_i . I^c_j S_j  (i carries j),    h_i = S_i . sum (I a + v x* I v - f_ext),

where the composite inertia `I^c_j` and the sum run over the subtree of a joint: products with the matrix that tells
which bodies a body carries. The origin of each tree is its root body, so precision does not depend on where the robot
is in the world.
"""

import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float
from jaxdyn.model import Model
from jaxdyn.recursion import (
    Bodies,
    BodyStates,
    Topology,
    bodies,
    body_wrenches,
    reduce_inertial_effort,
    reduce_mass_matrix,
)
from jaxdyn.spatial import skew


def equations_of_motion(
    model: Model, states: BodyStates, external: Float[Array, "links 6"] | None = None
) -> tuple[Float[Array, "nv nv"], Float[Array, " nv"]]:
    """`M(q)` and `h(q, v)` from the states of the bodies at `(q, v)`, with wrenches `external` as for `rnea`."""
    t, b, dtype = model.topology, bodies(model), states.translation.dtype
    if not t.bodies:
        return jnp.zeros((0, 0), dtype), jnp.zeros(0, dtype)
    origin = states.translation[_roots(t)]
    s = _move_origin(states.subspace, origin[t.dof_body])
    v = _move_origin(states.velocity, origin)
    gravity = jnp.concatenate([jnp.zeros(3, dtype), b.gravity])
    a = _move_origin(states.acceleration, origin) - gravity
    inertia = _spatial_inertias(b, states.rotation, states.translation - origin)
    wrench = body_wrenches(model, external, dtype)
    moment, force = (jnp.einsum("bij,bj->bi", states.rotation, x) for x in (wrench[:, :3], wrench[:, 3:]))
    load = jnp.concatenate([moment + jnp.cross(states.translation - origin, force), force], axis=1)
    f = jnp.einsum("bij,bj->bi", inertia, a) + _cross_force(v, jnp.einsum("bij,bj->bi", inertia, v)) - load
    carries = jnp.asarray(t.body_ancestors, dtype)
    composite = jnp.einsum("jb,bkl->jkl", carries, inertia)[t.dof_body]
    products = s @ jnp.einsum("jkl,jl->jk", composite, s).T
    above = t.dof_ancestors
    mass = jnp.where(above, products, jnp.where(above.T, products.T, 0)) + jnp.diag(b.armature)
    bias = jnp.sum(s * (carries @ f)[t.dof_body], axis=1)
    return reduce_mass_matrix(model, mass), reduce_inertial_effort(model, bias, jnp.zeros(model.nv, dtype))


def _roots(t: Topology) -> np.ndarray:
    """The root body of the tree of each body."""
    return np.argmax(t.body_ancestors, axis=0)


def _move_origin(x, origin):
    """Motion vectors `(angular, linear)` about another origin."""
    return jnp.concatenate([x[:, :3], x[:, 3:] + jnp.cross(x[:, :3], origin)], axis=1)


def _cross_force(v, f):
    """`v x* f` of motion vectors v and force vectors f."""
    (w, u), (n, p) = ((x[:, :3], x[:, 3:]) for x in (v, f))
    return jnp.concatenate([jnp.cross(w, n) + jnp.cross(u, p), jnp.cross(w, p)], axis=1)


def _spatial_inertias(b: Bodies, rotation, translation):
    """Inertias `(bodies, 6, 6)` about the origin, in world axes, for bodies with these poses."""
    com = translation + jnp.einsum("bij,bj->bi", rotation, b.com)
    mass = b.mass[:, None, None]
    own = jnp.stack([b.inertia[:, np.array(k)] for k in ((0, 1, 2), (1, 3, 4), (2, 4, 5))], axis=1)
    own = rotation @ own @ rotation.swapaxes(1, 2)
    shift = skew(com)
    first = mass * shift
    if b.moment is None:
        own = own - shift @ first
    else:
        moment = skew(jnp.einsum("bij,bj->bi", rotation, b.moment))
        first = first + moment
        own = own - shift @ first - moment @ shift
    linear = mass * jnp.eye(3, dtype=mass.dtype)
    return jnp.concatenate([jnp.concatenate([own, first], axis=2), jnp.concatenate([-first, linear], axis=2)], axis=1)
