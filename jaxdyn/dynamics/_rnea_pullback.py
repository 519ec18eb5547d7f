"""Reverse-mode derivative of inverse dynamics by sweeps over the tree, without storing the forward recursion."""

import jax
import jax.numpy as jnp

from jaxdyn import recursion as rc
from jaxdyn.recursion import (
    Bodies,
    Topology,
    joint_states,
    project_wrench,
    six_columns,
    sweep_down,
    sweep_up,
    to_dofs,
)
from jaxdyn.recursion import components as c


def _poses_and_velocities(t: Topology, local, rate, lanes, dtype):
    """Downward sweep: pose and velocity of each body."""

    def down(parent, x):
        pose, v = parent
        local, rate = x
        r, p = rc.compose_poses(pose, local)
        v = c.add6(v, rc.to_world(r, p, rate))
        return ((r, p), v), (r, p, v)

    return sweep_down(t.body_slots, down, (rc.root_state(lanes, dtype), rc.zero6(lanes, dtype)), (local, rate))


def pullback(t: Topology, args, cts, kinematics=None):
    """Gradient of `phi = lambda . rnea(q, v, a)` with respect to every argument, by sweeps down and one up.

    Interpret lambda as a virtual velocity: `nu_i = sum of S_k lambda_k` over the joints above body i, and
    `phi = sum of nu_i . f_i(v_i, a_i)`, the virtual power of the body forces. The adjoint forces

        F = sum f,   A = sum I nu,   V = sum [ I (nu x v) - nu x* I v + (S v) x* A ]

    over the subtree of each joint are the derivatives with respect to `nu`, `a` and `v` of the joint. phi is invariant
    when a subtree and the motion of its base are displaced together, so that a displacement of the subtree alone by a
    twist xi changes phi by `xi . W`, with

        W = sum [ -(nu x* f + v x* vbar + a x* I nu) + (S lambda) x* F + (S a) x* A + (S v) x* (V - v x* A) ].

    The derivatives with respect to q, placements and axes follow from W, F, A and V in the frame of the joint, those
    with respect to the inertial parameters from `nu`, `v` and `a` of the body. `kinematics` are pose and
    velocity `(R, p, v)` of each body, if they are known.
    """
    b, q, v, a, external = args
    lanes = rc.lanes_of(q, v, a, b.mass, b.translation, b.rotation, external, *cts)
    dtype = jnp.result_type(q, v, a, b.mass)
    q, v, a, lam = (jnp.broadcast_to(x, (x.shape[0], lanes)) for x in (q, v, a, cts[0]))
    joints = jax.tree.map(lambda x: jnp.broadcast_to(x, (*x.shape[:-1], lanes)), b.joints)
    (jr, jp, s, bias), pull_joints = jax.vjp(lambda j, q, v: joint_states(t, j, q, v), joints, q, v)
    rate, acceleration = rc.joint_rates(t, s, bias, v, a)
    if kinematics is None:
        kinematics = _poses_and_velocities(t, rc.relative_poses(t, b, jr, jp), rate, lanes, dtype)
    # a value without a batch may be pulled back along a batch of cotangents
    r, p, vw = jax.tree.map(lambda x: jnp.broadcast_to(x, (*x.shape[:-1], lanes)), kinematics)
    world = lambda m: rc.to_world(r, p, m)
    joint_motions = world(rate), world(acceleration), world(rc.joint_motion(t, s, lam))
    aw, nu = _sum_motions(t, b, vw, joint_motions, lanes, dtype)
    fl, al, vl, wl, gravity_ct = _adjoint_forces(t, b, (r, p), (vw, aw, nu), joint_motions, external)

    s_ct = _subspace_cotangent(t, (lam, a, v), (fl, al, vl))
    has_parent = jnp.asarray(~t.is_root)[:, None]
    push = tuple(jnp.where(has_parent, x, 0) for x in c.rotate(jr, wl[1]))  # in the axes of the joint frame
    joint_cts = (_halve(c.matmul(jr, c.skew(wl[0]))), None if jp is None else push, s_ct, None if bias is None else al)
    joints_ct, q_ct, v_bias_ct = pull_joints(_match_shapes(joint_cts, (jr, jp, s, bias)))
    inertial_ct = _inertial_cotangent(b, *(c.motion_to_local(r, p, m) for m in (nu, vw, aw)))
    placement_ct = _placement_cotangent(c.matrix(b.rotation), jp, c.rotate(jr, wl[0]), push)
    bodies_ct = Bodies(*placement_ct, *inertial_ct, joints_ct, lam * a, gravity_ct)
    external_ct = -rc.stack6(c.motion_to_local(r, p, nu))
    return (
        bodies_ct,
        q_ct,
        project_wrench(t, s, vl) + v_bias_ct,
        project_wrench(t, s, al) + b.armature * lam,
        external_ct,
    )


def _sum_motions(t: Topology, b: Bodies, v, joint_motions, lanes, dtype):
    """Accelerations and virtual velocities of all bodies: sums along the tree, for known velocities."""
    rate, acceleration, virtual = joint_motions

    def down(parent, x):
        state = tuple(map(c.add6, parent, x))
        return state, state

    root = (rc.gravity_state(b, lanes, dtype), rc.zero6(lanes, dtype))
    return sweep_down(t.body_slots, down, root, (c.add6(acceleration, c.cross_motion(v, rate)), virtual))


def _adjoint_forces(t: Topology, b: Bodies, pose, motions, joint_motions, external):
    """F, A, V and W of `pullback` in child axes, and the derivative with respect to gravity."""
    (r, p), (v, a, nu) = pose, motions
    ten = rc.inertia_to_world(r, p, rc.inertial_moments(b))
    momentum = lambda m: rc.apply_inertia(ten, m)
    h, abar = momentum(v), momentum(nu)
    load = c.force_to_world(r, p, six_columns(external))
    f = c.add6(momentum(a), c.cross_force(v, h), c.scale6(-1, load))
    vbar = c.add6(momentum(c.cross_motion(nu, v)), c.scale6(-1, c.cross_force(nu, h)))
    local = c.add6(c.cross_force(nu, f), c.cross_force(v, vbar), c.cross_force(a, abar))

    def up(total, x):
        f, abar, vbar, local, v, (rate, acceleration, virtual) = x
        f_sum, a_sum, v_sum, w_sum = total
        f_sum, a_sum = c.add6(f_sum, f), c.add6(a_sum, abar)
        v_sum = c.add6(v_sum, vbar, c.cross_force(rate, a_sum))
        v_own = c.add6(v_sum, c.scale6(-1, c.cross_force(v, a_sum)))
        own = c.add6(c.cross_force(virtual, f_sum), c.cross_force(acceleration, a_sum), c.cross_force(rate, v_own))
        w_sum = c.add6(w_sum, c.scale6(-1, local), own)
        return (f_sum, a_sum, v_sum, w_sum), (f_sum, a_sum, v_own, w_sum)

    zero = (rc.zero6(v[0][0].shape[-1], v[0][0].dtype),) * 4
    sums = sweep_up(t.body_slots, up, zero, (f, abar, vbar, local, v, joint_motions))
    return (*(c.force_to_local(r, p, x) for x in sums), jnp.stack([-x for x in _sum_over_bodies(abar[1])]))


def _halve(m):
    return tuple(tuple(x / 2 for x in row) for row in m)


def _placement_cotangent(placement, jp, turn, push):
    """Cotangents of rotation and translation from a moment `turn` and a force `push` on the child, in joint axes."""
    rotation = _halve(c.matmul(placement, c.skew(turn)))
    rotated_push = c.rotate(placement, push)
    if jp is not None:
        rotation = tuple(
            tuple(x + rotated_push[i] * jp[j] for j, x in enumerate(row)) for i, row in enumerate(rotation)
        )
    return jnp.stack([jnp.stack(row, axis=1) for row in rotation], axis=1), jnp.stack(rotated_push, axis=1)


def _sum_over_bodies(x):
    """Sum over bodies as a scan: XLA compiles a large reduction outside the block that is compiled as one function."""
    return jax.lax.scan(lambda s, y: (c.add(s, y), None), tuple(jnp.zeros_like(y[0]) for y in x), x)[0]


def _subspace_cotangent(t: Topology, rates, wrenches):
    """`lambda F + a A + v V` for each degree of freedom, in child axes."""
    halves = []
    for h in (0, 1):
        parts = [tuple(rate * to_dofs(t, x) for x in w[h]) for rate, w in zip(rates, wrenches, strict=True)]
        halves.append(c.add(*parts))
    return tuple(halves)


def _match_shapes(cts, like):
    """Cotangents in the shapes of their primals `like`: sums over lanes along axes of size one."""

    def fit(x, ct):
        for axis, (n, m) in enumerate(zip(x.shape, ct.shape, strict=True)):
            if n == 1 and m > 1:
                ct = ct.sum(axis, keepdims=True)
        return jnp.broadcast_to(ct, x.shape).astype(x.dtype)

    return jax.tree.map(fit, like, cts)


def _inertial_cotangent(b: Bodies, nu, v, a):
    """Derivative of `nu . f` with respect to mass, centre of mass, inertia and first moment of each body.

    The motions are about the origin of the body in its axes, where `nu . f` is linear in the inertia `(m, h, I)`.
    """
    (w, vo), (alpha, ao) = v, a
    ao = c.add(ao, c.cross(w, vo))
    h_ct = c.add(c.cross(nu[1], alpha), c.cross(c.cross(nu[1], w), w), c.cross(ao, nu[0]))
    x, y = nu[0], c.cross(nu[0], w)
    outer = lambda i, j: x[i] * alpha[j] + y[i] * w[j]
    inertia_ct = tuple(
        outer(i, j) if i == j else outer(i, j) + outer(j, i)
        for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    )
    wide = jax.tree.map(lambda x: jnp.broadcast_to(x, (*x.shape[:-1], w[0].shape[-1])), b)
    (ct,) = jax.vjp(rc.inertial_moments, wide)[1]((c.dot(nu[1], ao), h_ct, inertia_ct))
    return ct.mass, ct.com, ct.inertia, ct.moment
