"""Steps of the recursions in components over lanes: poses, joint velocities, the force of one body.

Bodies have quantities in world axes, referred to one origin per tree: the origin of its root body. In world axes every
sum over a subtree is a plain addition; an origin that travels with the robot keeps the sums accurate in single
precision at any distance from the world's origin.
"""

import jax.numpy as jnp

from jaxdyn.recursion import components as c
from jaxdyn.recursion._bodies import Bodies
from jaxdyn.recursion._joint_states import to_bodies, to_dofs
from jaxdyn.recursion._topology import Topology


def lanes_of(*arrays) -> int:
    """Number of lanes that these arrays broadcast to."""
    return jnp.broadcast_shapes(*((x.shape[-1],) for x in arrays))[0]


def root_state(lanes: int, dtype):
    """Pose `(R, p)` of the world."""
    one, zero = jnp.ones(lanes, dtype), jnp.zeros(lanes, dtype)
    return (((one, zero, zero), (zero, one, zero), (zero, zero, one)), (zero, zero, zero))


def relative_poses(t: Topology, b: Bodies, joint_r, joint_p, *, travelling: bool = True):
    """Pose of each child frame in its parent body; with `travelling`, the translation of a root body is zero."""
    placement = c.matrix(b.rotation)
    r = c.matmul(placement, joint_r)
    p = c.vector(b.translation)
    if joint_p is not None:
        p = c.add(p, c.rotate(placement, joint_p))
    if travelling:
        moves = jnp.asarray(~t.is_root)[:, None]
        p = tuple(jnp.where(moves, x, 0) for x in p)
    return r, p


def compose_poses(parent, local):
    """Pose of a body from the pose of its parent and its own relative pose, `T_0i = T_0p T_pi`."""
    (rp, pp), (r, p) = parent, local
    return c.matmul(rp, r), c.add(pp, c.rotate(rp, p))


def joint_motion(t: Topology, s, rate):
    """`S rate` of each body, summed over the degrees of freedom of its joint, in child axes."""
    w = tuple(to_bodies(t, x * rate) for x in s[0])
    v = tuple(to_bodies(t, x * rate) for x in s[1]) if has_translating_joints(t) else None
    return (w, v)


def has_translating_joints(t: Topology) -> bool:
    """True if any joint of the model has a linear motion subspace."""
    return any(size[2] for size in t.group_sizes)


def to_world(r, p, m):
    """`motion_to_world` for a motion vector whose linear half may be None (zero)."""
    if m[1] is None:
        w = c.rotate(r, m[0])
        return (w, c.cross(p, w))
    return c.motion_to_world(r, p, m)


def body_force(ten, v, a):
    """Force `I a + v x* I v` of one body about the origin, for an inertia `(m, h, I)` about the origin.

    `f = m a_o + dw x h + w x (w x h)` and `n = I dw + w x I w + h x a_o`, with `a_o` the acceleration of the material
    point at the origin (Featherstone 2008, section 2.15).
    """
    mass, h, inertia = ten
    w, dw = v[0], a[0]
    origin = c.add(a[1], c.cross(w, v[1]))
    f = c.add(c.scale(mass, origin), c.cross(dw, h), c.cross(w, c.cross(w, h)))
    spin = c.sym_rotate(inertia, w)
    return (c.add(c.sym_rotate(inertia, dw), c.cross(w, spin), c.cross(h, origin)), f)


def apply_inertia(ten, m):
    """Momentum `I m` for an inertia `(m, m c, I)` about the origin."""
    mass, first, second = ten
    n = c.add(c.sym_rotate(second, m[0]), c.cross(first, m[1]))
    return (n, c.sub(c.scale(mass, m[1]), c.cross(first, m[0])))


def translate_inertia(p, ten):
    """Inertia `(m, h, I)` about the origin from that about the point p, in the same axes.

    `h' = h + m p` and `I' = I + m (p . p 1 - p p^T) + 2 p . h 1 - p h^T - h p^T` (parallel axis theorem).
    """
    mass, h, inertia = ten
    moved = c.add(h, c.scale(mass, p))
    product = lambda i, j: p[i] * moved[j] + h[i] * p[j]
    xx, yy, zz = (product(i, i) for i in range(3))
    shift = (yy + zz, -product(0, 1), -product(0, 2), xx + zz, -product(1, 2), xx + yy)
    return (mass, moved, c.add(inertia, shift))


def inertia_to_world(r, p, ten):
    """Inertia `(m, h, I)` about the outer origin from that about the origin of the frame at p with axes r."""
    mass, h, inertia = ten
    return translate_inertia(p, (mass, c.rotate(r, h), c.sym_conjugate(r, inertia)))


def zero6(lanes, dtype):
    """The six-vector zero."""
    z = jnp.zeros(lanes, dtype)
    return ((z, z, z), (z, z, z))


def accelerate(r, p, v_parent, a_parent, rate, acceleration):
    """Velocity and acceleration of a body: `v = v_parent + S v`, `a = a_parent + v x S v + (S a + Sdot v)`."""
    joint_velocity = to_world(r, p, rate)
    v = c.add6(v_parent, joint_velocity)
    a = c.add6(a_parent, c.cross_motion(v, joint_velocity))
    return v, a if acceleration is None else c.add6(a, to_world(r, p, acceleration))


def joint_rates(t: Topology, s, bias, v, a):
    """`S v` and `S a + Sdot v` of each joint in child axes; linear halves are None if no joint translates.

    The second result is None if it is structurally zero: without accelerations (`a=None`) and without bias.
    """
    rate = joint_motion(t, s, v)
    if a is None:
        return rate, bias
    acceleration = joint_motion(t, s, a)
    if bias is not None:
        linear = acceleration[1]
        acceleration = (
            c.add(acceleration[0], bias[0]),
            bias[1] if linear is None else c.add(linear, bias[1]),
        )
    return rate, acceleration


def stack6(x):
    """Array `(n, 6, ...)` from a six-vector in components."""
    return jnp.stack([*x[0], *x[1]], axis=1)


def gravity_state(b: Bodies, lanes, dtype):
    """Acceleration `-g` of the world, which replaces gravity (Featherstone 2008, section 5.3)."""
    zero = jnp.zeros(lanes, dtype)
    up = tuple(jnp.broadcast_to(-b.gravity[i].astype(dtype), (lanes,)) for i in range(3))
    return ((zero, zero, zero), up)


def inertial_components(b: Bodies):
    """`(mass, com, inertia)` of the bodies in components, in their own axes."""
    return (b.mass, c.vector(b.com), tuple(b.inertia[:, k] for k in range(6)))


def inertial_moments(b: Bodies):
    """Inertias `(m, h, I)` of the bodies about the origins of their own frames, with the first moment `h = m c`.

    They are linear in the masses of the links, so that derivatives are exact where several links are massless.
    """
    mass, com, inertia = inertial_components(b)
    moment = tuple(jnp.zeros_like(x) for x in com) if b.moment is None else c.vector(b.moment)
    return translate_inertia(com, (mass, moment, inertia))


def project_wrench(t: Topology, s, wrench):
    """`S^T f` for each degree of freedom, both in child axes."""
    effort = c.dot(s[0], tuple(to_dofs(t, x) for x in wrench[0]))
    if has_translating_joints(t):
        effort = effort + c.dot(s[1], tuple(to_dofs(t, x) for x in wrench[1]))
    return effort


def six_columns(x):
    """Six-vector in components from an array `(n, 6, ...)`."""
    return (tuple(x[:, i] for i in range(3)), tuple(x[:, i] for i in range(3, 6)))


def stack_pose(r, p):
    """Arrays `(n, 3, 3, ...)` and `(n, 3, ...)` from a pose in components."""
    return jnp.stack([jnp.stack(row, axis=1) for row in r], axis=1), jnp.stack(p, axis=1)
