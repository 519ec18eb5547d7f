"""Moving bodies on joints with one axis, as plain arrays: what the sources start from.

Links behind fixed joints are part of the body that carries them. Rows are bodies, in the order of
`topology.bodies`, which is that of the coordinates as well: body j hangs on joint j.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import check_shape
from jaxdyn._types import Array, Float
from jaxdyn.formulations._formulation import joints_beyond
from jaxdyn.joints import AbstractJoint, Continuous, Helical, Prismatic, Revolute
from jaxdyn.model import Model
from jaxdyn.model._bodies import bodies, link_placements

TURNS_AND_SLIDES = (Revolute, Continuous, Prismatic)
SCREWS = (*TURNS_AND_SLIDES, Helical)


class AxisBodies(eqx.Module):
    """Bodies in their own axes, whose origin is on the axis of their joint."""

    #: pose of the joint frame in the parent body; the body is there at q = 0
    rotation: Float[Array, "bodies 3 3"]
    translation: Float[Array, "bodies 3"]
    #: screw axis `(w, v)` of the joint in the body's frame: a constant column `S`
    screw: Float[Array, "bodies 6"]
    mass: Float[Array, " bodies"]
    com: Float[Array, "bodies 3"]
    #: about the centre of mass
    inertia: Float[Array, "bodies 3 3"]


def not_of_kinds(model: Model, *kinds: type[AbstractJoint]) -> str | None:
    """Why a model is not one of moving bodies on joints of these kinds alone, as a reason for `covers`."""
    return nothing_moves(model) or joints_beyond(model, *kinds)


def nothing_moves(model: Model) -> str | None:
    """Says so of a model whose joints are all fixed, as a reason for `covers`."""
    if model.topology.bodies:
        return None
    first = f": joint {model.joint_names[0]!r} is fixed, as all are" if model.joint_names else ""
    return f"nothing moves{first}"


def axis_bodies(model: Model) -> AxisBodies:
    """The bodies of a model whose joints all have one constant screw axis."""
    b = bodies(model)
    return AxisBodies(b.rotation, b.translation, _screws(model), b.mass, b.com, matrices(b.inertia))


def matrices(six):
    """Symmetric matrices of their components xx xy xz yy yz zz, one row a body."""
    xx, xy, xz, yy, yz, zz = (six[:, k] for k in range(6))
    return jnp.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=1).reshape(-1, 3, 3)


def _screws(model: Model):
    t = model.topology
    still = jnp.zeros(1, model.dtype)
    own = [jax.vmap(lambda joint: joint.subspace(still)[:, 0])(joint) for joint in model.joints]
    group = np.array([t.groups[link] for link in t.bodies])
    return jnp.concatenate(own)[np.argsort(np.argsort(group, kind="stable"))]


def slides(model: Model) -> np.ndarray:
    """The indicator `s_j`: 1 where joint j is a slide, 0 where it turns."""
    t = model.topology
    return np.array([isinstance(model.joints[t.groups[link]], Prismatic) for link in t.bodies], float)


def carried(model: Model) -> np.ndarray:
    """`[j, k]`: 1 where joint j carries body k, itself included. Sums over `k >= j` of a chain are products with it."""
    return model.topology.body_ancestors.astype(float)


def body_wrenches(model: Model, external, dtype):
    """Wrenches `(moment, force)` on the bodies in their axes about their origins, from those on the links."""
    t = model.topology
    if external is None:
        return jnp.zeros((len(t.bodies), 6), dtype)
    external = check_shape("external", external, (model.num_links, 6))
    rotation, translation = link_placements(t, model.placements.rotation, model.placements.translation)
    moving = np.array([g >= 0 for g in t.groups])[:, None]
    rotation = jnp.where(moving[..., None], jnp.eye(3, dtype=rotation.dtype), rotation)
    force = jnp.einsum("lij,lj->li", rotation, external[:, 3:])
    moment = jnp.einsum("lij,lj->li", rotation, external[:, :3])
    moment = moment + jnp.cross(jnp.where(moving, 0, translation), force)
    part = np.equal.outer(np.arange(len(t.bodies)), np.array(t.body_of_link, int))
    return jnp.asarray(part, dtype) @ jnp.concatenate([moment, force], axis=1)


def skew(x):
    """`[x]`, the matrix of `x cross`, along the last axis."""
    zero = jnp.zeros_like(x[..., 0])
    rows = (zero, -x[..., 2], x[..., 1], x[..., 2], zero, -x[..., 0], -x[..., 1], x[..., 0], zero)
    return jnp.stack(rows, axis=-1).reshape(*x.shape[:-1], 3, 3)
