"""Moving bodies on single-axis joints as plain arrays, in the notation of the sources.

Links behind fixed joints are part of the body that carries them. Rows are bodies in the order of `topology.bodies`,
which is the order of the coordinates: joint j carries body j.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float
from jaxdyn.formulations._formulation import find_unsupported_joint
from jaxdyn.joints import AbstractJoint, Continuous, Helical, Prismatic, Revolute
from jaxdyn.model import Model
from jaxdyn.recursion import bodies

TURNS_AND_SLIDES = (Revolute, Continuous, Prismatic)
SCREWS = (*TURNS_AND_SLIDES, Helical)


class AxisBodies(eqx.Module):
    """Bodies in body frames, whose origins are on the joint axes."""

    #: pose of the joint frame in the parent body, which is the pose of the body at q = 0
    rotation: Float[Array, "bodies 3 3"]
    translation: Float[Array, "bodies 3"]
    #: screw axis `(w, v)` of the joint in the body frame: a constant column `S`
    screw: Float[Array, "bodies 6"]
    mass: Float[Array, " bodies"]
    com: Float[Array, "bodies 3"]
    #: about the centre of mass
    inertia: Float[Array, "bodies 3 3"]


def find_unsupported_or_fixed(model: Model, *kinds: type[AbstractJoint]) -> str | None:
    """None if all joints are fixed or of these types and one moves; otherwise the reason, for `covers`."""
    return find_fixed_model(model) or find_unsupported_joint(model, *kinds)


def find_fixed_model(model: Model) -> str | None:
    """The reason, for `covers`, if all joints of a model are fixed; otherwise None."""
    if model.topology.bodies:
        return None
    first = f": joint {model.joint_names[0]!r} is fixed, as all are" if model.joint_names else ""
    return f"nothing moves{first}"


def axis_bodies(model: Model) -> AxisBodies:
    """The bodies of a model whose joints have one constant screw axis each."""
    b = bodies(model)
    return AxisBodies(b.rotation, b.translation, _screws(model), b.mass, b.com, symmetric_matrices(b.inertia))


def symmetric_matrices(six):
    """Symmetric matrices `(n, 3, 3)` from their components xx xy xz yy yz zz, `(n, 6)`."""
    xx, xy, xz, yy, yz, zz = (six[:, k] for k in range(6))
    return jnp.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=1).reshape(-1, 3, 3)


def _screws(model: Model):
    t = model.topology
    zero = jnp.zeros(1, model.dtype)
    columns = [jax.vmap(lambda joint: joint.subspace(zero)[:, 0])(joint) for joint in model.joints]
    group = np.array([t.groups[link] for link in t.bodies])
    return jnp.concatenate(columns)[np.argsort(np.argsort(group, kind="stable"))]


def is_prismatic(model: Model) -> np.ndarray:
    """The indicator `s_j`: 1 if joint j is prismatic, 0 if it is revolute."""
    t = model.topology
    return np.array([isinstance(model.joints[t.groups[link]], Prismatic) for link in t.bodies], float)


def carried_bodies(model: Model) -> np.ndarray:
    """`[j, k]`: 1 if joint j carries body k, including k = j; multiply by it to sum over the subtree of each joint."""
    return model.topology.body_ancestors.astype(float)
