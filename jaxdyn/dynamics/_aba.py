"""Forward dynamics by articulated bodies, in world axes.

Joints with several degrees of freedom are chains of single ones (`Topology.dof_parents`), so that every
pivot is a scalar. In world axes an articulated inertia passes to the parent as it is:

    U = I S,  D = S . U + armature,  u = tau - S . p,
    I_parent += I - U U^T / D,  p_parent += p + U u / D,    then   a' = (u - U . a_parent) / D

(Featherstone 2008, section 7.3). Accelerations are counted from those of the robot whose joints do not
accelerate, so gravity, velocity products and external wrenches are all in the bodies' forces p.
"""

import jax
import jax.numpy as jnp

from jaxdyn._numerics import kernel
from jaxdyn.dynamics import _rnea
from jaxdyn.dynamics._crba import world_subspace
from jaxdyn.model import Topology
from jaxdyn.model import _recursion as rc
from jaxdyn.model._bodies import Bodies, at_last_dof, joint_states
from jaxdyn.model._sweep import sweep_down, sweep_up
from jaxdyn.spatial import _components as c


def _spatial(ten):
    """21 components of the symmetric 6x6 inertia, by rows of the upper triangle."""
    m, (x, y, z), (xx, xy, xz, yy, yz, zz) = ten
    o = jnp.zeros_like(m)
    return (xx, xy, xz, o, -z, y, yy, yz, z, o, -x, zz, -y, x, o, m, o, o, m, o, m)


_INDEX = {}
for _i in range(6):
    for _j in range(_i, 6):
        _INDEX[_i, _j] = _INDEX[_j, _i] = len(_INDEX) - sum(a != b for a, b in _INDEX) // 2


def _times(sym, x):
    return tuple(c.dot(tuple(sym[_INDEX[i, j]] for j in range(6)), x) for i in range(6))


def _downdate(sym, u, d_inv):
    scaled = tuple(x * d_inv for x in u)
    return tuple(sym[_INDEX[i, j]] - u[i] * scaled[j] for i in range(6) for j in range(i, 6))


def _flat(m):
    return (*m[0], *m[1])


def forward(t: Topology, b: Bodies, q, v, tau, external):
    """Accelerations, factors `(S, U, 1 / D)` with which `solve` applies the inverse mass matrix, and `(R, p, v)`."""
    lanes = rc.lanes_of(q, v, tau, b.mass, b.translation, b.rotation, external)
    dtype = jnp.result_type(q, v, tau, b.mass)
    jr, jp, s, bias = joint_states(t, b.joints, q, v)
    local = rc.relative_poses(t, b, jr, jp)
    rate, acceleration = rc.joint_rates(t, s, bias, v, None)
    r, p, vw, ten, f = _rnea.body_states(t, b, local, rate, acceleration, external, lanes, dtype)
    s = _flat(world_subspace(t, r, p, s))
    place = lambda x: at_last_dof(t, x)
    xs = (s, jax.tree.map(place, ten), tuple(place(x) for x in _flat(f)), tau, b.armature)
    zero = jnp.zeros(lanes, dtype)

    def up(total, x):
        inertia, force = total
        s, ten, f, tau, armature = x
        inertia, force = c.add(inertia, _spatial(ten)), c.add(force, f)
        u = _times(inertia, s)
        d_inv = 1 / (c.dot(s, u) + armature)
        rest = tau - c.dot(s, force)
        given = (_downdate(inertia, u, d_inv), c.add(force, c.scale(rest * d_inv, u)))
        return given, (u, d_inv, rest)

    u, d_inv, rest = sweep_up(t.dof_slots, up, ((zero,) * 21, (zero,) * 6), xs)
    factors = (s, u, d_inv)
    return _accelerate(t, factors, rest, lanes, dtype), factors, (r, p, vw)


def _accelerate(t: Topology, factors, rest, lanes, dtype):
    def down(parent, x):
        (s, u, d_inv), rest = x
        acceleration = (rest - c.dot(u, parent)) * d_inv
        return c.add(parent, c.scale(acceleration, s)), acceleration

    return sweep_down(t.dof_slots, down, (jnp.zeros(lanes, dtype),) * 6, (factors, rest))


def solve(t: Topology, factors, rhs):
    """`M^-1 rhs` with the factors of `forward`, by one light sweep up and one down."""
    lanes = rc.lanes_of(rhs, factors[2])
    dtype = jnp.result_type(rhs, factors[2])

    def up(force, x):
        (s, u, d_inv), rhs = x
        rest = rhs - c.dot(s, force)
        return c.add(force, c.scale(rest * d_inv, u)), rest

    rest = sweep_up(t.dof_slots, up, (jnp.zeros(lanes, dtype),) * 6, (factors, rhs))
    return _accelerate(t, factors, rest, lanes, dtype)


def _forward(t: Topology, b: Bodies, q, v, tau, external):
    return forward(t, b, q, v, tau, external)[0]


def _pullback(t: Topology, args, cts):
    """`da = M^-1 (dtau - d rnea)` transposed: one solve for `lambda = M^-1 abar`, then rnea's pullback."""
    b, q, v, tau, external = args
    a, factors, moving = forward(t, b, q, v, tau, external)
    lam = solve(t, factors, cts[0])
    b_ct, q_ct, v_ct, _, external_ct = _rnea.pullback(t, (b, q, v, a, external), (-lam,), moving)
    return b_ct, q_ct, v_ct, lam, external_ct


aba_kernel = kernel(_forward, pullback=_pullback)
