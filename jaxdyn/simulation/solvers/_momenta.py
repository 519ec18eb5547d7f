"""Canonical momenta and the derivative of the Lagrangian along q, by one sweep down and one up."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn import recursion as rc
from jaxdyn._numerics import kernel
from jaxdyn.model import Model, Topology
from jaxdyn.recursion import (
    Bodies,
    body_wrenches,
    check_state,
    full_configuration,
    full_velocity,
    joint_states,
    joint_tangents,
    project_wrench,
    reduce_effort,
    reduce_inertial_effort,
    sweep_down,
    sweep_up,
    to_bodies,
    to_dofs,
)
from jaxdyn.recursion import components as c


def momentum_and_slope(model: Model, b: Bodies, q, v, external=None):
    """The momentum `p = dT/dv = M v`, and `dT/dq - dU/dq + J^T external` along the tangents of `integrate` at fixed v.

    With h the momentum and f the weight and load of the subtree of joint j, and u the velocity of its parent,

        p_j = S_j . h,    dT/dq_j = h . (u x S_j) = -S_j . (u x* h),    -dU/dq_j = S_j . f

    in common axes: when a subtree moves along `S_j` as a whole, the velocity of its parent turns the other way relative
    to it. No Coriolis force is computed and nothing is differentiated, so derivatives of solvers that use these
    quantities are cheap. b is `bodies(model)`.
    """
    q, v = check_state(model, q=q, v=v)
    t = model.topology
    if not t.bodies:
        return v, v
    load = body_wrenches(model, external, q.dtype)
    p, slope = _momentum_and_slope(t, b, full_configuration(model, q), full_velocity(model, v), load)
    return reduce_inertial_effort(model, p, v), reduce_effort(model, slope)


@kernel
def _momentum_and_slope(t: Topology, b: Bodies, q, v, external):
    lanes = rc.lanes_of(q, v, b.mass, b.translation, b.rotation, external)
    q, v = (jnp.broadcast_to(x, (x.shape[0], lanes)) for x in (q, v))
    tree = rc.TreeState(t, b, q, v, None, b.mass, external)

    def down(parent, x):
        pose, u = parent
        local, rate = x
        r, p = rc.compose_poses(pose, local)
        v = c.add6(u, rc.to_world(r, p, rate))
        return ((r, p), v), (r, p, u, v)

    root = (tree.root_pose(), tree.zero())
    r, p, u, velocities = sweep_down(t.body_slots, down, root, (tree.local, tree.rate))
    momenta_and_loads = _momenta_and_loads(b, r, p, velocities, external, lanes)

    def up(total, x):
        r, p, u, (h, f) = x
        h, f = c.add6(total[0], h), c.add6(total[1], f)
        wrench = c.add6(f, c.scale6(-1, c.cross_force(u, h)))
        return (h, f), (c.force_to_local(r, p, h), c.force_to_local(r, p, wrench))

    zero = tree.zero()
    momentum, wrench = sweep_up(t.body_slots, up, (zero, zero), (r, p, u, momenta_and_loads))
    slope = project_wrench(t, tree.subspace, wrench)
    if tree.bias is not None:
        slope = slope + _slope_of_subspaces(t, b, q, v, momentum)
    return project_wrench(t, tree.subspace, momentum) + b.armature * v, slope


def _momenta_and_loads(b: Bodies, r, p, v, external, lanes):
    """Momentum of each body, and its weight and load, about the origin."""
    mass, com, inertia = rc.inertial_components(b)
    centre = c.add(p, c.rotate(r, com))
    linear = c.scale(mass, c.add(v[1], c.cross(v[0], centre)))
    spin = c.sym_rotate(c.sym_conjugate(r, inertia), v[0])
    h = (c.add(spin, c.cross(centre, linear)), linear)
    weight = tuple(mass * jnp.broadcast_to(b.gravity[i].astype(mass.dtype), (lanes,)) for i in range(3))
    load = tuple(tuple(external[:, 3 * k + i] for i in range(3)) for k in (0, 1))
    return h, c.add6((c.cross(centre, weight), weight), c.force_to_world(r, p, load))


def _slope_of_subspaces(t: Topology, b: Bodies, q, v, momentum):
    """`h . (dS/dq_j v)`, for joints whose motion subspace depends on their coordinates."""
    number = np.concatenate([np.arange(n) for n in t.body_nv])
    total = jnp.zeros_like(v)
    for m, dq in enumerate(joint_tangents(t, b.joints, q, v)):
        subspace = lambda x: joint_states(t, b.joints, x, v)[2]
        _, ds = jax.jvp(subspace, (q,), (jnp.broadcast_to(dq, q.shape),))
        velocity = tuple(tuple(to_bodies(t, x * v) for x in half) for half in ds)
        power = c.add((c.dot(velocity[0], momentum[0]),), (c.dot(velocity[1], momentum[1]),))[0]
        total = total + jnp.where((number == m)[:, None], to_dofs(t, power), 0)
    return total
