"""What the recursive algorithms share: the downward sweep, and small helpers on components over lanes.

All quantities are in world axes and referred to one origin a tree, the frame of its root body. World
axes make every sum over a subtree a plain addition; an origin that travels with the robot keeps the sums
accurate in single precision however far it is from home.
"""

import jax.numpy as jnp

from jaxdyn.model._bodies import Bodies, joint_states, to_bodies
from jaxdyn.model._sweep import sweep_down
from jaxdyn.model._topology import Topology
from jaxdyn.spatial import _components as c


def lanes_of(*arrays) -> int:
    """Number of lanes that these arrays broadcast to."""
    return jnp.broadcast_shapes(*((x.shape[-1],) for x in arrays))[0]


def root_state(lanes: int, dtype):
    """Pose `(R, p)` of the world."""
    one, zero = jnp.ones(lanes, dtype), jnp.zeros(lanes, dtype)
    return (((one, zero, zero), (zero, one, zero), (zero, zero, one)), (zero, zero, zero))


def relative_poses(t: Topology, b: Bodies, joint_r, joint_p, *, travelling: bool = True):
    """Pose of each child frame in its parent body; with `travelling`, that of a root keeps no position."""
    placed = c.matrix(b.rotation)
    r = c.matmul(placed, joint_r)
    p = c.vector(b.translation)
    if joint_p is not None:
        p = c.add(p, c.rotate(placed, joint_p))
    if travelling:
        moves = jnp.asarray(~t.is_root)[:, None]
        p = tuple(jnp.where(moves, x, 0) for x in p)
    return r, p


def chain(parent, local):
    """Pose of a body out of its parent's and its own relative one."""
    (rp, pp), (r, p) = parent, local
    return c.matmul(rp, r), c.add(pp, c.rotate(rp, p))


def poses(t: Topology, b: Bodies, q, lanes: int, *, travelling: bool = True):
    """World poses of all bodies and motion subspaces in world axes: `(R, p), S` in components."""
    jr, jp, s, _ = joint_states(t, b.joints, q)
    local = relative_poses(t, b, jr, jp, travelling=travelling)

    def step(parent, x):
        state = chain(parent, x)
        return state, state

    dtype = jnp.result_type(q, b.rotation, b.translation)
    r, p = sweep_down(t.body_slots, step, root_state(lanes, dtype), local)
    return r, p, s


def joint_motion(t: Topology, s, rate):
    """`S rate` of each body, summed over the degrees of freedom of its joint, in child axes."""
    w = tuple(to_bodies(t, x * rate) for x in s[0])
    v = tuple(to_bodies(t, x * rate) for x in s[1]) if translates(t) else None
    return (w, v)


def translates(t: Topology) -> bool:
    return any(size[2] for size in t.group_sizes)


def to_world(r, p, m):
    """As `motion_to_world`, for a motion vector whose linear half may be None."""
    if m[1] is None:
        w = c.rotate(r, m[0])
        return (w, c.cross(p, w))
    return c.motion_to_world(r, p, m)


def body_force(mass, centre, inertia, v, a):
    """`I a + v x* I v` about the origin, from the centre of mass and the central inertia in world axes.

    `f = m a_c`, `n = Ic dw + w x Ic w + c x f`, with `a_c` the acceleration of the material point at the
    centre of mass (Featherstone 2008, section 2.15).
    """
    vc = c.add(v[1], c.cross(v[0], centre))
    ac = c.add(a[1], c.cross(a[0], centre), c.cross(v[0], vc))
    f = c.scale(mass, ac)
    spin = c.sym_rotate(inertia, v[0])
    return (c.add(c.sym_rotate(inertia, a[0]), c.cross(v[0], spin), c.cross(centre, f)), f)


def zero6(lanes, dtype):
    z = jnp.zeros(lanes, dtype)
    return ((z, z, z), (z, z, z))


def accelerate(r, p, v_parent, a_parent, rate, acceleration):
    """Velocity and acceleration of a body from its parent's and the joint's, `a += S a + v x S v + Sdot v`."""
    moved = to_world(r, p, rate)
    v = c.add6(v_parent, moved)
    a = c.add6(a_parent, c.cross_motion(v, moved))
    return v, a if acceleration is None else c.add6(a, to_world(r, p, acceleration))


def joint_rates(t: Topology, s, bias, v, a):
    """`S v` and `S a + Sdot v` of each joint in child axes, linear halves None where nothing slides.

    The second is None where it is known to vanish: without accelerations (`a=None`) and bias.
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
    return jnp.stack([*x[0], *x[1]], axis=1)


def gravity_state(b: Bodies, lanes, dtype):
    """Acceleration of the world that stands in for gravity: `-g`."""
    zero = jnp.zeros(lanes, dtype)
    up = tuple(jnp.broadcast_to(-b.gravity[i].astype(dtype), (lanes,)) for i in range(3))
    return ((zero, zero, zero), up)


def inertial_components(b: Bodies):
    """`(mass, com, inertia)` of the bodies in components."""
    return (b.mass, c.vector(b.com), tuple(b.inertia[:, k] for k in range(6)))
