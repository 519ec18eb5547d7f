"""Inverse dynamics by the recursive Newton-Euler algorithm, and its pullback."""

import jax
import jax.numpy as jnp

from jaxdyn._numerics import kernel
from jaxdyn.model import _recursion as rc
from jaxdyn.model._bodies import Bodies, joint_states, parallel_axis, to_dofs
from jaxdyn.model._sweep import sweep_down, sweep_up
from jaxdyn.model._topology import Topology
from jaxdyn.spatial import _components as c


def six_columns(x):
    """Components of `(n, 6, ...)` as a six-vector."""
    return (tuple(x[:, i] for i in range(3)), tuple(x[:, i] for i in range(3, 6)))


def body_states(t: Topology, b: Bodies, local, rate, acceleration, external, lanes, dtype):
    """Downward sweep: pose, velocity, inertia about the origin and force `I a + v x* I v - f_ext` of each body."""

    def down(parent, x):
        pose, v, a = parent
        local, rate, acceleration, (mass, com, inertia), load = x
        r, p = rc.chain(pose, local)
        v, a = rc.accelerate(r, p, v, a, rate, acceleration)
        centre = c.add(p, c.rotate(r, com))
        turned = c.sym_conjugate(r, inertia)
        f = rc.body_force(mass, centre, turned, v, a)
        f = c.add6(f, c.scale6(-1, c.force_to_world(r, p, load)))
        shifted = tuple(i + mass * d for i, d in zip(turned, parallel_axis(centre), strict=True))
        return ((r, p), v, a), (r, p, v, (mass, c.scale(mass, centre), shifted), f)

    root = (rc.root_state(lanes, dtype), rc.zero6(lanes, dtype), rc.gravity_state(b, lanes, dtype))
    xs = (local, rate, acceleration, rc.inertial_components(b), six_columns(external))
    return sweep_down(t.body_slots, down, root, xs)


def inverse_dynamics(t: Topology, b: Bodies, q, v, a, external):
    """Joint efforts, and the wrench that each joint carries, in the frame of its child."""
    lanes = rc.lanes_of(q, v, a, b.mass, b.translation, b.rotation, external)
    dtype = jnp.result_type(q, v, a, b.mass)
    jr, jp, s, bias = joint_states(t, b.joints, q, v)
    local = rc.relative_poses(t, b, jr, jp)
    rate, acceleration = rc.joint_rates(t, s, bias, v, a)
    r, p, _, _, f = body_states(t, b, local, rate, acceleration, external, lanes, dtype)

    def up(total, x):
        r, p, f = x
        f = c.add6(total, f)
        return f, c.force_to_local(r, p, f)

    wrench = sweep_up(t.body_slots, up, rc.zero6(lanes, dtype), (r, p, f))
    return project(t, s, wrench) + b.armature * a, wrench


def project(t: Topology, s, wrench):
    """`S^T f` for each degree of freedom, both in child axes."""
    effort = c.dot(s[0], tuple(to_dofs(t, x) for x in wrench[0]))
    if rc.translates(t):
        effort = effort + c.dot(s[1], tuple(to_dofs(t, x) for x in wrench[1]))
    return effort


def _efforts(t: Topology, b: Bodies, q, v, a, external):
    return inverse_dynamics(t, b, q, v, a, external)[0]


def _moving(t: Topology, local, rate, lanes, dtype):
    """Downward sweep: pose and velocity of each body."""

    def down(parent, x):
        pose, v = parent
        local, rate = x
        r, p = rc.chain(pose, local)
        v = c.add6(v, rc.to_world(r, p, rate))
        return ((r, p), v), (r, p, v)

    return sweep_down(t.body_slots, down, (rc.root_state(lanes, dtype), rc.zero6(lanes, dtype)), (local, rate))


def pullback(t: Topology, args, cts, moving=None):
    """Gradient of `phi = lambda . rnea(q, v, a)` in every argument, by sweeps down and one up.

    Read lambda as a virtual velocity: `nu_i = sum of S_k lambda_k` over the joints above body i, and
    `phi = sum of nu_i . f_i(v_i, a_i)`, the virtual power of the bodies' forces. The adjoint forces

        F = sum f,   A = sum I nu,   V = sum [ I (nu x v) - nu x* I v + (S v) x* A ]

    over the subtree of each joint are the derivatives in `nu`, `a` and `v` there. The whole is unchanged
    when a subtree and everything that flows into it are rotated together, so that moving a subtree by a
    twist xi changes phi by `xi . W`, with

        W = sum [ -(nu x* f + v x* vbar + a x* I nu) + (S lambda) x* F + (S a) x* A + (S v) x* (V - v x* A) ].

    The derivatives in q, in placements and in axes follow from W, F, A and V in the frame of the joint,
    those in mass, centre and inertia from `nu`, `v` and `a` of the body alone. `moving` are pose and velocity of each
    body `(R, p, v)` where they are known.
    """
    b, q, v, a, external = args
    lanes = rc.lanes_of(q, v, a, b.mass, b.translation, b.rotation, external, *cts)
    dtype = jnp.result_type(q, v, a, b.mass)
    q, v, a, lam = (jnp.broadcast_to(x, (x.shape[0], lanes)) for x in (q, v, a, cts[0]))
    joints = jax.tree.map(lambda x: jnp.broadcast_to(x, (*x.shape[:-1], lanes)), b.joints)
    (jr, jp, s, bias), pull_joints = jax.vjp(lambda j, q, v: joint_states(t, j, q, v), joints, q, v)
    rate, acceleration = rc.joint_rates(t, s, bias, v, a)
    if moving is None:
        moving = _moving(t, rc.relative_poses(t, b, jr, jp), rate, lanes, dtype)
    r, p, vw = moving
    world = lambda m: rc.to_world(r, p, m)
    moved = world(rate), world(acceleration), world(rc.joint_motion(t, s, lam))
    aw, nu = _summed_motions(t, b, vw, moved, lanes, dtype)
    fl, al, vl, wl, gravity_ct = _adjoint_forces(t, b, (r, p), (vw, aw, nu), moved, external)

    s_ct = _subspace_cotangent(t, (lam, a, v), (fl, al, vl))
    moves = jnp.asarray(~t.is_root)[:, None]
    push = tuple(jnp.where(moves, x, 0) for x in c.rotate(jr, wl[1]))  # in the axes of the joint frame
    joint_cts = (_half(c.matmul(jr, c.skew(wl[0]))), None if jp is None else push, s_ct, None if bias is None else al)
    joints_ct, q_ct, v_bias_ct = pull_joints(_fit(joint_cts, (jr, jp, s, bias)))
    inertial_ct = _inertial_cotangent(r, p, rc.inertial_components(b), nu, vw, aw)
    placement_ct = _placement_cotangent(c.matrix(b.rotation), jp, c.rotate(jr, wl[0]), push)
    bodies_ct = Bodies(*placement_ct, *inertial_ct, joints_ct, lam * a, gravity_ct)
    external_ct = -rc.stack6(c.motion_to_local(r, p, nu))
    return bodies_ct, q_ct, project(t, s, vl) + v_bias_ct, project(t, s, al) + b.armature * lam, external_ct


def _summed_motions(t: Topology, b: Bodies, v, moved, lanes, dtype):
    """Accelerations and virtual velocities of all bodies, which are sums down the tree once velocities are known."""
    rate, acceleration, virtual = moved

    def down(parent, x):
        state = tuple(map(c.add6, parent, x))
        return state, state

    root = (rc.gravity_state(b, lanes, dtype), rc.zero6(lanes, dtype))
    return sweep_down(t.body_slots, down, root, (c.add6(acceleration, c.cross_motion(v, rate)), virtual))


def _adjoint_forces(t: Topology, b: Bodies, pose, motions, moved, external):
    """F, A, V and W of `pullback` in the child's axes, and the derivative in gravity."""
    (r, p), (v, a, nu) = pose, motions
    mass, com, inertia = rc.inertial_components(b)
    centre = c.add(p, c.rotate(r, com))
    inertia = c.sym_conjugate(r, inertia)
    weigh = lambda m: _momentum(mass, centre, inertia, m)
    h, abar = weigh(v), weigh(nu)
    load = c.force_to_world(r, p, six_columns(external))
    f = c.add6(weigh(a), c.cross_force(v, h), c.scale6(-1, load))
    vbar = c.add6(weigh(c.cross_motion(nu, v)), c.scale6(-1, c.cross_force(nu, h)))
    held = c.add6(c.cross_force(nu, f), c.cross_force(v, vbar), c.cross_force(a, abar))

    def up(total, x):
        f, abar, vbar, held, v, (rate, acceleration, virtual) = x
        f_sum, a_sum, v_sum, w_sum = total
        f_sum, a_sum = c.add6(f_sum, f), c.add6(a_sum, abar)
        v_sum = c.add6(v_sum, vbar, c.cross_force(rate, a_sum))
        v_own = c.add6(v_sum, c.scale6(-1, c.cross_force(v, a_sum)))
        own = c.add6(c.cross_force(virtual, f_sum), c.cross_force(acceleration, a_sum), c.cross_force(rate, v_own))
        w_sum = c.add6(w_sum, c.scale6(-1, held), own)
        return (f_sum, a_sum, v_sum, w_sum), (f_sum, a_sum, v_own, w_sum)

    nothing = (rc.zero6(v[0][0].shape[-1], v[0][0].dtype),) * 4
    sums = sweep_up(t.body_slots, up, nothing, (f, abar, vbar, held, v, moved))
    return (*(c.force_to_local(r, p, x) for x in sums), jnp.stack([-x for x in _total(abar[1])]))


def _half(m):
    return tuple(tuple(x / 2 for x in row) for row in m)


def _placement_cotangent(placed, jp, turn, push):
    """Of rotation and translation, for a moment `turn` and a force `push` on the child in the joint frame's axes."""
    rotation = _half(c.matmul(placed, c.skew(turn)))
    pushed = c.rotate(placed, push)
    if jp is not None:
        rotation = tuple(tuple(x + pushed[i] * jp[j] for j, x in enumerate(row)) for i, row in enumerate(rotation))
    return jnp.stack([jnp.stack(row, axis=1) for row in rotation], axis=1), jnp.stack(pushed, axis=1)


def _total(x):
    """Sum over bodies, as a scan: a large reduction would leave the block that is compiled as one."""
    return jax.lax.scan(lambda s, y: (c.add(s, y), None), tuple(jnp.zeros_like(y[0]) for y in x), x)[0]


def _momentum(mass, centre, inertia, m):
    """`I m` about the origin for a body with the given mass, centre and central inertia in world axes."""
    linear = c.scale(mass, c.add(m[1], c.cross(m[0], centre)))
    return (c.add(c.sym_rotate(inertia, m[0]), c.cross(centre, linear)), linear)


def _subspace_cotangent(t: Topology, rates, wrenches):
    """`lambda F + a A + v V` for each degree of freedom, in child axes."""
    halves = []
    for h in (0, 1):
        parts = [tuple(rate * to_dofs(t, x) for x in w[h]) for rate, w in zip(rates, wrenches, strict=True)]
        halves.append(c.add(*parts))
    return tuple(halves)


def _fit(cts, like):
    """Cotangents at the shapes of what they belong to: what did not vary over lanes is summed."""

    def fit(x, ct):
        for axis, (n, m) in enumerate(zip(x.shape, ct.shape, strict=True)):
            if n == 1 and m > 1:
                ct = ct.sum(axis, keepdims=True)
        return jnp.broadcast_to(ct, x.shape).astype(x.dtype)

    return jax.tree.map(fit, like, cts)


def _inertial_cotangent(r, p, params, nu, v, a):
    """Derivative of `nu . f` in mass, centre of mass and inertia, from the motion in the body's frame."""
    mass, com, _ = params
    nu, v, a = (c.motion_to_local(r, p, m) for m in (nu, v, a))
    (w, vo), (alpha, ao) = v, a
    ac = c.add(ao, c.cross(alpha, com), c.cross(w, c.add(vo, c.cross(w, com))))
    nc = c.add(nu[1], c.cross(nu[0], com))
    com_ct = c.add(c.cross(ac, nu[0]), c.cross(nc, alpha), c.cross(c.cross(nc, w), w))
    x, y = nu[0], c.cross(nu[0], w)
    outer = lambda i, j: x[i] * alpha[j] + y[i] * w[j]
    inertia_ct = tuple(
        outer(i, j) if i == j else outer(i, j) + outer(j, i)
        for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    )
    return c.dot(nc, ac), jnp.stack(c.scale(mass, com_ct), axis=1), jnp.stack(inertia_ct, axis=1)


rnea_kernel = kernel(_efforts, pullback=pullback)
