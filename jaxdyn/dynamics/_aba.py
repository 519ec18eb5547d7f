"""Forward dynamics by the articulated-body algorithm, in world axes.

A joint with several degrees of freedom is treated as a chain of joints with one (`Topology.dof_parents`), so that every
pivot is a scalar. In world axes an articulated inertia is added to that of the parent without a transformation:

    U = I S,  D = S . U + armature,  u = tau - S . p,
    I_parent += I - U U^T / D,  p_parent += p + U u / D,    then   a' = (u - U . a_parent) / D

(Featherstone 2008, section 7.3). Accelerations are relative to those of the robot with zero joint accelerations, so
that gravity, velocity products and external wrenches are part of the body forces p.
"""

import jax
import jax.numpy as jnp

from jaxdyn import recursion as rc
from jaxdyn._errors import ModelError
from jaxdyn._numerics import kernel
from jaxdyn._types import Array, Float
from jaxdyn.dynamics._rnea import newton_euler_forces
from jaxdyn.dynamics._rnea_pullback import pullback
from jaxdyn.model import Model
from jaxdyn.recursion import (
    Bodies,
    Topology,
    TreeState,
    bodies,
    body_wrenches,
    check_state,
    place_at_last_dof,
    sweep_down,
    sweep_up,
)
from jaxdyn.recursion import components as c


def _symmetric_six(ten):
    """21 components of the symmetric 6x6 inertia, in rows of the upper triangle."""
    m, (x, y, z), (xx, xy, xz, yy, yz, zz) = ten
    o = jnp.zeros_like(m)
    return (xx, xy, xz, o, -z, y, yy, yz, z, o, -x, zz, -y, x, o, m, o, o, m, o, m)


_INDEX = {}
for _i in range(6):
    for _j in range(_i, 6):
        _INDEX[_i, _j] = _INDEX[_j, _i] = len(_INDEX) - sum(a != b for a, b in _INDEX) // 2


def _multiply_symmetric(sym, x):
    """`sym @ x`."""
    return tuple(c.dot(tuple(sym[_INDEX[i, j]] for j in range(6)), x) for i in range(6))


def _downdate(sym, u, d_inv):
    """`sym - u u^T d_inv`."""
    scaled = tuple(x * d_inv for x in u)
    return tuple(sym[_INDEX[i, j]] - u[i] * scaled[j] for i in range(6) for j in range(i, 6))


def _flatten(m):
    return (*m[0], *m[1])


def aba_factors(t: Topology, b: Bodies, q, v, tau, external):
    """Accelerations, the factors `(S, U, 1 / D)` for `solve`, and pose and velocity `(R, p, v)` of each body."""
    tree = TreeState(t, b, q, v, None, tau, b.mass, external)
    lanes, dtype = tree.lanes, tree.dtype
    r, p, vw, ten, f = newton_euler_forces(tree, external)
    s = _flatten(tree.world_subspace(r, p))
    at_dof = lambda x: place_at_last_dof(t, x)
    xs = (s, jax.tree.map(at_dof, ten), tuple(at_dof(x) for x in _flatten(f)), tau, b.armature)
    zero = jnp.zeros(lanes, dtype)

    def up(total, x):
        inertia, force = total
        s, ten, f, tau, armature = x
        inertia, force = c.add(inertia, _symmetric_six(ten)), c.add(force, f)
        u = _multiply_symmetric(inertia, s)
        d_inv = 1 / (c.dot(s, u) + armature)
        net = tau - c.dot(s, force)
        contribution = (_downdate(inertia, u, d_inv), c.add(force, c.scale(net * d_inv, u)))
        return contribution, (u, d_inv, net)

    u, d_inv, net = sweep_up(t.dof_slots, up, ((zero,) * 21, (zero,) * 6), xs)
    factors = (s, u, d_inv)
    return _accelerate(t, factors, net, lanes, dtype), factors, (r, p, vw)


def _accelerate(t: Topology, factors, net, lanes, dtype):
    """Downward sweep: `a = (u - U . a_parent) / D`."""

    def down(parent, x):
        (s, u, d_inv), net = x
        acceleration = (net - c.dot(u, parent)) * d_inv
        return c.add(parent, c.scale(acceleration, s)), acceleration

    return sweep_down(t.dof_slots, down, (jnp.zeros(lanes, dtype),) * 6, (factors, net))


def solve(t: Topology, factors, rhs):
    """`M^-1 rhs` with the factors of `aba_factors`, by one sweep up and one down."""
    lanes = rc.lanes_of(rhs, factors[2])
    dtype = jnp.result_type(rhs, factors[2])

    def up(force, x):
        (s, u, d_inv), rhs = x
        net = rhs - c.dot(s, force)
        return c.add(force, c.scale(net * d_inv, u)), net

    net = sweep_up(t.dof_slots, up, (jnp.zeros(lanes, dtype),) * 6, (factors, rhs))
    return _accelerate(t, factors, net, lanes, dtype)


def _accelerations(t: Topology, b: Bodies, q, v, tau, external):
    return aba_factors(t, b, q, v, tau, external)[0]


def _pullback(t: Topology, args, cts):
    """`da = M^-1 (dtau - d rnea)` transposed: one solve for `lambda = M^-1 abar`, then rnea's pullback."""
    b, q, v, tau, external = args
    a, factors, kinematics = aba_factors(t, b, q, v, tau, external)
    lam = solve(t, factors, cts[0])
    b_ct, q_ct, v_ct, _, external_ct = pullback(t, (b, q, v, a, external), (-lam,), kinematics)
    return b_ct, q_ct, v_ct, lam, external_ct


aba_kernel = kernel(_accelerations, pullback=_pullback)


def aba(model: Model, q, v, tau, external=None) -> Float[Array, " nv"]:
    """Accelerations by the articulated-body algorithm, with a cost linear in the number of joints.

    Arguments and result are those of `forward_dynamics`. A model with mimicking joints, which couple branches of the
    tree, raises `ModelError`.
    """
    q, v, tau = check_state(model, q=q, v=v, tau=tau)
    if model.topology.mimics:
        raise ModelError("aba cannot couple mimicking joints; use method=jaxdyn.crba_solve")
    wrenches = body_wrenches(model, external, q.dtype)
    return aba_kernel(model.topology, bodies(model), q, v, tau, wrenches) if model.nv else tau
