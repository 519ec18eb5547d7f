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
    """Downward sweep: pose, inertia about the origin and force `I a + v x* I v - f_ext` of each body."""

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
        return ((r, p), v, a), (r, p, (mass, c.scale(mass, centre), shifted), f)

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
    r, p, _, f = body_states(t, b, local, rate, acceleration, external, lanes, dtype)

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


def pullback(t: Topology, args, cts):
    """Gradient of `phi = lambda . rnea(q, v, a)` in every argument, by one sweep down and one up.

    Read lambda as a virtual velocity: `nu_i = sum of S_k lambda_k` over the joints above body i, and
    `phi = sum of nu_i . f_i(v_i, a_i)`, the virtual power of the bodies' forces. The adjoint forces

        F = sum f,   A = sum I nu,   V = sum [ I (nu x v) - nu x* I v + (S v) x* A ]

    over the subtree of each joint are the derivatives in `nu`, `a` and `v` there. The whole is unchanged
    when a subtree and everything that flows into it are rotated together, so that moving a subtree by a
    twist xi changes phi by `xi . W`, with

        W = sum [ -(nu x* f + v x* vbar + a x* I nu) + (S lambda) x* F + (S a) x* A + (S v) x* (V - v x* A) ].

    The derivatives in q, in placements and in axes follow from W, F, A and V in the frame of the joint,
    those in mass, centre and inertia from `nu`, `v` and `a` of the body alone.
    """
    b, q, v, a, external = args
    lanes = rc.lanes_of(q, v, a, b.mass, b.translation, b.rotation, external, *cts)
    dtype = jnp.result_type(q, v, a, b.mass)
    q, v, a, lam = (jnp.broadcast_to(x, (x.shape[0], lanes)) for x in (q, v, a, cts[0]))
    joints = jax.tree.map(lambda x: jnp.broadcast_to(x, (*x.shape[:-1], lanes)), b.joints)
    (jr, jp, s, bias), pull_joints = jax.vjp(lambda j, q, v: joint_states(t, j, q, v), joints, q, v)
    local = rc.relative_poses(t, b, jr, jp)
    rate, acceleration = rc.joint_rates(t, s, bias, v, a)
    virtual = rc.joint_motion(t, s, lam)
    params = rc.inertial_components(b)

    def down(parent, x):
        pose, v, a, nu = parent
        local, rate, acceleration, virtual = x
        r, p = rc.chain(pose, local)
        v, a = rc.accelerate(r, p, v, a, rate, acceleration)
        nu = c.add6(nu, rc.to_world(r, p, virtual))
        return ((r, p), v, a, nu), (r, p, v, a, nu)

    zero = rc.zero6(lanes, dtype)
    root = (rc.root_state(lanes, dtype), zero, rc.gravity_state(b, lanes, dtype), zero)
    r, p, vw, aw, nu = sweep_down(t.body_slots, down, root, (local, rate, acceleration, virtual))
    load = six_columns(external)

    mass, com, inertia = params
    centre = c.add(p, c.rotate(r, com))
    inertia = c.sym_conjugate(r, inertia)
    weigh = lambda m: _momentum(mass, centre, inertia, m)
    h, abar = weigh(vw), weigh(nu)
    f = c.add6(weigh(aw), c.cross_force(vw, h), c.scale6(-1, c.force_to_world(r, p, load)))
    vbar = c.add6(weigh(c.cross_motion(nu, vw)), c.scale6(-1, c.cross_force(nu, h)))
    held = c.add6(c.cross_force(nu, f), c.cross_force(vw, vbar), c.cross_force(aw, abar))
    moved = tuple(rc.to_world(r, p, m) for m in (rate, acceleration, virtual))

    def up(total, x):
        f, abar, vbar, held, v, (rate, acceleration, virtual) = x
        f_sum, a_sum, v_sum, w_sum = total
        f_sum, a_sum = c.add6(f_sum, f), c.add6(a_sum, abar)
        v_sum = c.add6(v_sum, vbar, c.cross_force(rate, a_sum))
        v_own = c.add6(v_sum, c.scale6(-1, c.cross_force(v, a_sum)))
        own = c.add6(c.cross_force(virtual, f_sum), c.cross_force(acceleration, a_sum), c.cross_force(rate, v_own))
        w_sum = c.add6(w_sum, c.scale6(-1, held), own)
        return (f_sum, a_sum, v_sum, w_sum), (f_sum, a_sum, v_own, w_sum)

    xs = (f, abar, vbar, held, vw, moved)
    sums = sweep_up(t.body_slots, up, (zero,) * 4, xs)
    fl, al, vl, wl = (c.force_to_local(r, p, x) for x in sums)
    abar = abar[1]

    v_ct, a_ct = project(t, s, vl), project(t, s, al) + b.armature * lam
    s_ct = _subspace_cotangent(t, (lam, a, v), (fl, al, vl))
    placed = c.matrix(b.rotation)
    turn = c.skew(wl[0])
    half = lambda m: tuple(tuple(x / 2 for x in row) for row in m)
    moves = jnp.asarray(~t.is_root)[:, None]
    push = tuple(jnp.where(moves, x, 0) for x in c.rotate(jr, wl[1]))  # in the axes of the joint frame
    jr_ct = half(c.matmul(jr, turn))
    joint_cts = (jr_ct, None if jp is None else push, s_ct, None if bias is None else al)
    joints_ct, q_ct, v_bias_ct = pull_joints(_fit(joint_cts, (jr, jp, s, bias)))
    placed_ct = half(c.matmul(placed, c.skew(c.rotate(jr, wl[0]))))
    push_parent = c.rotate(placed, push)
    if jp is not None:
        placed_ct = tuple(
            tuple(x + push_parent[i] * jp[j] for j, x in enumerate(row)) for i, row in enumerate(placed_ct)
        )
    mass_ct, com_ct, inertia_ct = _inertial_cotangent(r, p, params, nu, vw, aw)
    bodies_ct = Bodies(
        jnp.stack([jnp.stack(row, axis=1) for row in placed_ct], axis=1),
        jnp.stack(push_parent, axis=1),
        mass_ct,
        jnp.stack(com_ct, axis=1),
        jnp.stack(inertia_ct, axis=1),
        joints_ct,
        lam * a,
        jnp.stack([-x for x in _total(abar)]),
    )
    external_ct = -rc.stack6(c.motion_to_local(r, p, nu))
    return bodies_ct, q_ct, v_ct + v_bias_ct, a_ct, external_ct


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
    return c.dot(nc, ac), c.scale(mass, com_ct), inertia_ct


rnea_kernel = kernel(_efforts, pullback=pullback)
