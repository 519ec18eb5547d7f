"""Wrenches that the joints transmit, split into motor and bearing loads."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._numerics import default_tolerance, pseudo_inverse, safe_norm
from jaxdyn._types import Array, Float
from jaxdyn.dynamics._links import link_forces, link_states
from jaxdyn.model import Model
from jaxdyn.recursion import ancestor_mask, check_state, check_wrenches, full_velocity


class JointReactions(eqx.Module):
    """Loads of all joints, fixed ones included; wrenches in axes of the child link about its origin, N m and N."""

    #: wrench (moment, force) that the parent exerts on the child through the joint
    wrench: Float[Array, "links 6"]
    #: component along the joint's degrees of freedom, which the motor supplies
    motor: Float[Array, "links 6"]
    #: the remaining component, which the bearing supports and which does no work
    bearing: Float[Array, "links 6"]
    #: effort of each coordinate of all joints, including the effort that accelerates the armature
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
    """Wrench that each joint transmits: the inertial forces of its subtree minus the external wrenches on it.

    The wrench is split as `wrench = motor + bearing` with `motor = S (S^T S)^+ S^T wrench` and `S^T bearing = 0`. The
    motor component of a revolute joint is the moment about its axis, that of a prismatic joint the force along it.

    Arguments:

    * `model`: the robot
    * `q`: configuration, `(nq,)`
    * `v`: velocity, `(nv,)`, rad/s or m/s
    * `a`: acceleration, `(nv,)`, rad/s^2 or m/s^2
    * `external`: wrenches (moment, force) on the links, `(num_links, 6)`, in link axes about the link's origin, or None

    Returns `JointReactions`: `wrench`, `motor` and `bearing` `(num_links, 6)`, and `effort` and `power` of all joint
    coordinates, those of mimicking joints included.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    model = jd.robots.double_pendulum()
    q, v = jnp.array([0.1, 0.2]), jnp.array([0.5, -0.5])
    loads = jd.joint_reactions(model, q, v, jd.forward_dynamics(model, q, v, jnp.zeros(2)))
    bearing_force = loads.bearing[:, 3:]
    ```
    """
    q, v, a = check_state(model, q=q, v=v, a=a)
    t = model.topology
    s = link_states(model, q, v, a, gravity=True)
    force = link_forces(s)
    if external is not None:
        external = check_wrenches(model, external)
        push = jnp.einsum("lij,lj->li", s.rotation, external[:, 3:])
        turn = jnp.einsum("lij,lj->li", s.rotation, external[:, :3]) + jnp.cross(s.translation, push)
        force = force - jnp.concatenate([turn, push], axis=1)
    subtree = jnp.asarray(ancestor_mask(t.parents), force.dtype) @ force
    moment = subtree[:, :3] - jnp.cross(s.translation, subtree[:, 3:])
    local = lambda x: jnp.einsum("lji,lj->li", s.rotation, x)
    wrench = jnp.concatenate([local(moment), local(subtree[:, 3:])], axis=1)
    links = np.array(t.bodies, int)[t.dof_body]
    effort = jnp.einsum("ki,ki->k", s.bodies.subspace, subtree[links])
    motor = _motor_wrenches(model, s, effort)
    effort = effort + _armature_efforts(model, a)
    return JointReactions(wrench, motor, wrench - motor, effort, effort * full_velocity(model, v))


def _armature_efforts(model: Model, a):
    """`armature a` at the coordinates of all joints; zero for joints that mimic others."""
    effort = model.properties.armature * a
    if not model.topology.mimics:
        return effort
    t = model.topology
    independent = np.isin(t.dof_body, t.independent)
    return jnp.where(independent, effort[t.v_source], 0)


def _motor_wrenches(model: Model, s, effort):
    """`S (S^T S)^+ effort` of each joint, in child axes at the child's origin.

    The pseudo-inverse is taken for each joint: where the axes of one joint are linearly dependent (gimbal lock), the
    result is the component of the wrench in their span, and other joints are not affected.
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
    if t.has_single_dof_joints:
        along = effort[:, None] * local
    else:  # the columns of one joint side by side, padded with zeros
        width = max(t.body_nv)
        rows = np.array([[k + i if i < n else t.full_nv for i in range(width)]
                         for k, n in zip(t.v_start, t.body_nv, strict=True)])  # fmt: skip
        gather = lambda x: jnp.concatenate([x, jnp.zeros_like(x[:1])])[rows]
        tolerance = jnp.asarray(default_tolerance(local.dtype), local.dtype)
        inverse, _ = jax.vmap(lambda m: pseudo_inverse(m, tolerance))(gather(local))
        along = jnp.einsum("bik,bk->bi", inverse, gather(effort))
    return jnp.zeros((model.num_links, 6), along.dtype).at[np.array(t.bodies, int)].set(along)


def work(times: Float[Array, " n"], power: Float[Array, " n *rest"]) -> Float[Array, " n *rest"]:
    """Work up to each time (J): the integral of `power` (W) over `times` (s) by the trapezoidal rule."""
    widths = (times[1:] - times[:-1]).reshape(-1, *[1] * (power.ndim - 1))
    steps = widths * (power[1:] + power[:-1]) / 2
    return jnp.concatenate([jnp.zeros_like(power[:1]), jnp.cumsum(steps, axis=0)])
