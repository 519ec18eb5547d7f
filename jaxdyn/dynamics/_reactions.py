"""What the joints carry."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import check_shape
from jaxdyn._numerics import default_tolerance, pseudo_inverse, safe_norm
from jaxdyn._types import Array, Float
from jaxdyn.dynamics._inverse import checked_state
from jaxdyn.dynamics._links import link_forces, link_states
from jaxdyn.model import Model
from jaxdyn.model._mimic import full_velocity
from jaxdyn.model._topology import ancestor_mask


class JointReactions(eqx.Module):
    """The load of every joint, fixed ones included; wrenches in axes of the child link, about its origin."""

    #: full wrench that the parent exerts on the child through the joint (moment, force)
    wrench: Float[Array, "links 6"]
    #: the part of it along the joint's degrees of freedom, which the motor gives
    motor: Float[Array, "links 6"]
    #: the rest, which the bearing takes and which does no work
    bearing: Float[Array, "links 6"]
    #: effort of each coordinate of any joint, that which moves the armature included
    effort: Float[Array, " full_nv"]
    #: effort times velocity, W
    power: Float[Array, " full_nv"]


def joint_reactions(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
) -> JointReactions:
    """The full wrench that each joint carries: the inertial forces of all that hangs on it, less external ones.

    It is split as `wrench = motor + bearing` with `motor = S (S^T S)^+ S^T wrench` and `S^T bearing = 0`: for a
    hinge the moment about its axis and everything else, for a slide the force along it.
    """
    q, v, a = checked_state(model, q, v, a)
    t = model.topology
    s = link_states(model, q, v, a, gravity=True)
    force = link_forces(s)
    if external is not None:
        external = check_shape("external", external, (model.num_links, 6))
        push = jnp.einsum("lij,lj->li", s.rotation, external[:, 3:])
        turn = jnp.einsum("lij,lj->li", s.rotation, external[:, :3]) + jnp.cross(s.translation, push)
        force = force - jnp.concatenate([turn, push], axis=1)
    carried = jnp.asarray(ancestor_mask(t.parents), force.dtype) @ force
    moment = carried[:, :3] - jnp.cross(s.translation, carried[:, 3:])
    local = lambda x: jnp.einsum("lji,lj->li", s.rotation, x)
    wrench = jnp.concatenate([local(moment), local(carried[:, 3:])], axis=1)
    links = np.array(t.bodies, int)[t.dof_body]
    effort = jnp.einsum("ki,ki->k", s.bodies.subspace, carried[links])
    motor = _along_joints(model, s, effort)
    effort = effort + _rotors(model, a)
    return JointReactions(wrench, motor, wrench - motor, effort, effort * full_velocity(model, v))


def _rotors(model: Model, a):
    """`armature a`, at the coordinates of the joints that have one of their own."""
    moved = model.properties.armature * a
    if not model.topology.mimics:
        return moved
    t = model.topology
    own = np.isin(t.dof_body, t.independent)
    return jnp.where(own, moved[t.v_source], 0)


def _along_joints(model: Model, s, effort):
    """`S (S^T S)^+ effort` of each joint, in child axes at the child's origin.

    By joint, with the pseudo-inverse: where a joint's own axes line up, which locks a gimbal, this is the part
    of the wrench along what is left of them, and other joints do not notice.
    """
    t = model.topology
    links = np.array(t.bodies, int)[t.dof_body]
    r, p, sub = s.rotation[links], s.translation[links], s.bodies.subspace
    spin = jnp.einsum("kji,kj->ki", r, sub[:, :3])
    slide = jnp.einsum("kji,kj->ki", r, sub[:, 3:] + jnp.cross(sub[:, :3], p))
    local = jnp.concatenate([spin, slide], axis=1)
    length = safe_norm(local, axis=1)
    length = jnp.where(length == 0, 1, length)
    local, effort = local / length[:, None], effort / length
    if t.simple:
        along = effort[:, None] * local
    else:  # columns of one joint side by side, filled up with zeros
        width = max(t.body_nv)
        rows = np.array([[k + i if i < n else t.full_nv for i in range(width)]
                         for k, n in zip(t.v_start, t.body_nv, strict=True)])  # fmt: skip
        gather = lambda x: jnp.concatenate([x, jnp.zeros_like(x[:1])])[rows]
        tolerance = jnp.asarray(default_tolerance(local.dtype), local.dtype)
        inverse, _ = jax.vmap(lambda m: pseudo_inverse(m, tolerance))(gather(local))
        along = jnp.einsum("bik,bk->bi", inverse, gather(effort))
    return jnp.zeros((model.num_links, 6), along.dtype).at[np.array(t.bodies, int)].set(along)


def work(times: Float[Array, " n"], power: Float[Array, " n *rest"]) -> Float[Array, " n *rest"]:
    """Work done up to each time, the integral of `power` by the trapezoidal rule, J."""
    widths = (times[1:] - times[:-1]).reshape(-1, *[1] * (power.ndim - 1))
    steps = widths * (power[1:] + power[:-1]) / 2
    return jnp.concatenate([jnp.zeros_like(power[:1]), jnp.cumsum(steps, axis=0)])
