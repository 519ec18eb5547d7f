"""Momenta and slopes of the Lagrangian, by one sweep down and one up."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._numerics import kernel
from jaxdyn.dynamics._inverse import checked_state
from jaxdyn.dynamics._loads import body_loads
from jaxdyn.dynamics._rnea import project
from jaxdyn.model import Model, Topology
from jaxdyn.model import _recursion as rc
from jaxdyn.model._bodies import Bodies, joint_states, joint_tangents, to_bodies, to_dofs
from jaxdyn.model._mimic import full_configuration, full_velocity, own_effort
from jaxdyn.model._sweep import sweep_down, sweep_up
from jaxdyn.spatial import _components as c


def canonical(model: Model, b: Bodies, q, v, external=None):
    """The momentum `p = dT/dv = M v`, and `dT/dq - dU/dq + J^T external` along the tangents of `integrate`, v held.

    With h the momentum and f the weight and load of the subtree of joint j, and u the velocity of its parent,

        p_j = S_j . h,    dT/dq_j = h . (u x S_j) = -S_j . (u x* h),    -dU/dq_j = S_j . f

    in common axes: a subtree that moves along `S_j` as a whole sees the velocity of its parent turn the other way.
    No Coriolis force is computed, and no derivative taken, so that derivatives of what is made of these are cheap;
    b is `bodies(model)`.
    """
    q, v = checked_state(model, q, v)
    t = model.topology
    if not t.bodies:
        return v, v
    load = body_loads(model, external, q.dtype)
    p, slope = _canonical(t, b, full_configuration(model, q), full_velocity(model, v), load)
    p = own_effort(model, p)
    return p + model.properties.armature * v if t.mimics else p, own_effort(model, slope)


@kernel
def _canonical(t: Topology, b: Bodies, q, v, external):
    lanes = rc.lanes_of(q, v, b.mass, b.translation, b.rotation, external)
    dtype = jnp.result_type(q, v, b.mass)
    q, v = (jnp.broadcast_to(x, (x.shape[0], lanes)) for x in (q, v))
    jr, jp, s, bias = joint_states(t, b.joints, q, v)
    local = rc.relative_poses(t, b, jr, jp)

    def down(parent, x):
        pose, u = parent
        local, rate = x
        r, p = rc.chain(pose, local)
        v = c.add6(u, rc.to_world(r, p, rate))
        return ((r, p), v), (r, p, u, v)

    root = (rc.root_state(lanes, dtype), rc.zero6(lanes, dtype))
    r, p, u, moves = sweep_down(t.body_slots, down, root, (local, rc.joint_motion(t, s, v)))
    own = _loads(b, r, p, moves, external, lanes)

    def up(total, x):
        r, p, u, (h, f) = x
        h, f = c.add6(total[0], h), c.add6(total[1], f)
        turned = c.add6(f, c.scale6(-1, c.cross_force(u, h)))
        return (h, f), (c.force_to_local(r, p, h), c.force_to_local(r, p, turned))

    zero = rc.zero6(lanes, dtype)
    momentum, turned = sweep_up(t.body_slots, up, (zero, zero), (r, p, u, own))
    slope = project(t, s, turned)
    if bias is not None:
        slope = slope + _turning(t, b, q, v, momentum)
    return project(t, s, momentum) + b.armature * v, slope


def _loads(b: Bodies, r, p, v, external, lanes):
    """Momentum of each body, and its weight and load, about the origin."""
    mass, com, inertia = rc.inertial_components(b)
    centre = c.add(p, c.rotate(r, com))
    linear = c.scale(mass, c.add(v[1], c.cross(v[0], centre)))
    spin = c.sym_rotate(c.sym_conjugate(r, inertia), v[0])
    h = (c.add(spin, c.cross(centre, linear)), linear)
    weight = tuple(mass * jnp.broadcast_to(b.gravity[i].astype(mass.dtype), (lanes,)) for i in range(3))
    load = tuple(tuple(external[:, 3 * k + i] for i in range(3)) for k in (0, 1))
    return h, c.add6((c.cross(centre, weight), weight), c.force_to_world(r, p, load))


def _turning(t: Topology, b: Bodies, q, v, momentum):
    """`h . (dS/dq_j v)`, for joints whose motion subspace depends on their coordinates."""
    number = np.concatenate([np.arange(n) for n in t.body_nv])
    total = jnp.zeros_like(v)
    for m, dq in enumerate(joint_tangents(t, b.joints, q, v)):
        at = lambda x: joint_states(t, b.joints, x, v)[2]
        _, ds = jax.jvp(at, (q,), (jnp.broadcast_to(dq, q.shape),))
        turn = tuple(tuple(to_bodies(t, x * v) for x in half) for half in ds)
        power = c.add((c.dot(turn[0], momentum[0]),), (c.dot(turn[1], momentum[1]),))[0]
        total = total + jnp.where((number == m)[:, None], to_dofs(t, power), 0)
    return total
