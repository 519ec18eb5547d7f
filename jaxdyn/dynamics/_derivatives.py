"""Jacobians of inverse and forward dynamics, by one sweep and dense products.

Moving joint j by a twist S_j carries its whole subtree along. Seen from the subtree, nothing changes but the
motion that comes in through the joint, so that every body i below sees the same two vectors:

    dv_i = psi_j,    da_i = alpha_j + psi_j x v_i,
    df_i = I_i alpha_j + B_i psi_j,    B = v x* I - I v x + (.) x* I v.

For a change of q_j, `psi = v_p x S_j`, `alpha = a_p x S_j - psi x v_p` (p the parent body, gravity in a_p); for a
change of v_j, `psi = S_j`, `alpha = (v_c + v_p) x S_j` (c the child body). With I and B summed over subtrees,

    dtau_i / dj = S_i . (I_j alpha_j + B_j psi_j [+ S_j x* F_j for q])    i above j,
    dtau_i / dj = (I_i S_i) . alpha_j + (B_i^T S_i) . psi_j               i below j,

which are dense products of six-vectors, masked by the tree: the quantities of Carpentier and Mansard (2018)
and Singh, Russo and Wensing (2022) without their recursion. `B psi` needs the angular part of psi only: with
`J = sum of m x xdot^T` over the points x of the bodies and p their momentum,
`B psi = (2 (tr J - J^T) psi_w, 2 psi_w x p)`.
"""

import functools as ft
import operator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._numerics import kernel
from jaxdyn._types import Array, Float
from jaxdyn.dynamics._aba import forward
from jaxdyn.dynamics._crba import apply_inertia, diagonal, masked, outer, subtree_sum
from jaxdyn.dynamics._forward import forward_dynamics
from jaxdyn.dynamics._inverse import checked_state
from jaxdyn.dynamics._loads import body_loads
from jaxdyn.dynamics._rnea import six_columns
from jaxdyn.model import Model, Topology
from jaxdyn.model import _recursion as rc
from jaxdyn.model._bodies import Bodies, bodies, joint_states, joint_tangents, parallel_axis, to_bodies, to_dofs
from jaxdyn.model._mimic import full_configuration, full_velocity, own_columns, own_effort
from jaxdyn.model._sweep import sweep_down
from jaxdyn.spatial import _components as c


def _sweep(t: Topology, b: Bodies, local, rate, acceleration, external, lanes, dtype):
    """Per body: pose, own and parent's motion, and the quantities that are summed over subtrees."""

    def down(parent, x):
        pose, vp, ap = parent
        local, rate, acceleration, (mass, com, inertia), load = x
        r, p = rc.chain(pose, local)
        v, a = rc.accelerate(r, p, vp, ap, rate, acceleration)
        centre = c.add(p, c.rotate(r, com))
        turned = c.sym_conjugate(r, inertia)
        f = rc.body_force(mass, centre, turned, v, a)
        f = c.add6(f, c.scale6(-1, c.force_to_world(r, p, load)))
        second = tuple(i + mass * d for i, d in zip(turned, parallel_axis(centre), strict=True))
        push = c.scale(mass, c.add(v[1], c.cross(v[0], centre)))
        spread = _spread(centre, push, turned, v[0])
        sums = (mass, *c.scale(mass, centre), *second, *f[0], *f[1], *push, *spread)
        return ((r, p), v, a), (r, p, v, vp, ap, sums)

    root = (rc.root_state(lanes, dtype), rc.zero6(lanes, dtype), rc.gravity_state(b, lanes, dtype))
    xs = (local, rate, acceleration, rc.inertial_components(b), six_columns(external))
    return sweep_down(t.body_slots, down, root, xs)


def _spread(centre, push, turned, w):
    """`J = sum of m x xdot^T` of a body, by rows: `c p^T - (tr(Ic)/2 - Ic) [w]`."""
    half = (turned[0] + turned[3] + turned[5]) / 2
    s = (half - turned[0], -turned[1], -turned[2], half - turned[3], -turned[4], half - turned[5])
    rows = ((s[0], s[1], s[2]), (s[1], s[3], s[4]), (s[2], s[4], s[5]))
    return tuple(centre[i] * push[j] + x for i in range(3) for j, x in enumerate(c.cross(w, rows[i])))


def _apply_b(push, spread, w):
    """`B psi` of the angular part w of psi."""
    trace = spread[0] + spread[4] + spread[8]
    back = tuple(spread[j] * w[0] + spread[3 + j] * w[1] + spread[6 + j] * w[2] for j in range(3))
    n = tuple(2 * (trace * x - y) for x, y in zip(w, back, strict=True))
    return (n, c.scale(2, c.cross(w, push)))


def _apply_b_transposed(push, spread, s):
    """Angular part of `B^T S`; the linear part is zero."""
    trace = spread[0] + spread[4] + spread[8]
    along = tuple(c.dot(spread[3 * i : 3 * i + 3], s[0]) for i in range(3))
    turn = c.cross(push, s[1])
    return tuple(2 * (x + trace * y - z) for x, y, z in zip(turn, s[0], along, strict=True))


def _chosen(t: Topology, mask, x):
    """A six-vector over bodies at the masked degrees of freedom, zero elsewhere."""
    return jax.tree.map(lambda y: jnp.where(mask[:, None], to_dofs(t, y), 0), x)


def _varying(t: Topology, b: Bodies, q, v, a):
    """What changes in joints whose motion subspace depends on their coordinates.

    For each degree of freedom j: `(d(S v)/dq_j, d(S a + bias)/dq_j, d bias/dv_j)` in child axes, and the list of
    `(m, dS/dq_m)` over local coordinate numbers m. Derivatives in q are along the tangents of `integrate`.
    """
    at = lambda q, v: joint_states(t, b.joints, q, v)[2:]
    number = np.concatenate([np.arange(n) for n in t.body_nv])
    slope, curve, gain, turns = None, None, None, []
    for m, dq in enumerate(joint_tangents(t, b.joints, q, v)):
        _, (ds, dbias) = jax.jvp(lambda x: at(x, v), (q,), (jnp.broadcast_to(dq, q.shape),))
        dv = jnp.broadcast_to(jnp.asarray(number == m, v.dtype)[:, None], v.shape)
        _, (_, dbias_v) = jax.jvp(lambda x: at(q, x), (v,), (dv,))
        pick = ft.partial(_chosen, t, number == m)
        total = lambda rate, ds=ds: jax.tree.map(lambda s: to_bodies(t, s * rate), ds)
        parts = (pick(total(v)), pick(c.add6(total(a), dbias)), pick(dbias_v))
        slope, curve, gain = (
            x if y is None else c.add6(y, x) for x, y in zip(parts, (slope, curve, gain), strict=True)
        )
        turns.append((number == m, ds))
    return slope, curve, gain, turns


def _derivatives(t: Topology, b: Bodies, q, v, a, external):
    lanes = rc.lanes_of(q, v, a, b.mass, b.translation, b.rotation, external)
    dtype = jnp.result_type(q, v, a, b.mass)
    q, v, a = (jnp.broadcast_to(x, (x.shape[0], lanes)) for x in (q, v, a))
    jr, jp, s_local, bias = joint_states(t, b.joints, q, v)
    local = rc.relative_poses(t, b, jr, jp)
    rate, acceleration = rc.joint_rates(t, s_local, bias, v, a)
    r, p, vc, vp, ap, sums = _sweep(t, b, local, rate, acceleration, external, lanes, dtype)
    sums = subtree_sum(t, sums, lanes, dtype)
    wide = lambda x: jax.tree.map(lambda y: to_dofs(t, y), x)
    r, p, vc, vp, ap, sums = wide((r, p, vc, vp, ap, sums))
    ten, force = (sums[0], sums[1:4], sums[4:10]), (sums[10:13], sums[13:16])
    push, spread = sums[16:19], sums[19:28]
    s = rc.to_world(r, p, s_local if rc.translates(t) else (s_local[0], None))

    psi = c.cross_motion(vp, s)
    alpha = c.add6(c.cross_motion(ap, s), c.cross_motion(vp, psi))
    both = c.add6(vc, vp)
    alpha_v = c.cross_motion(both, s)
    turns = []
    if bias is not None:
        slope, curve, gain, turns = _varying(t, b, q, v, a)
        slope, curve, gain = (c.motion_to_world(r, p, x) for x in (slope, curve, gain))
        psi = c.add6(psi, slope)
        alpha = c.add6(alpha, curve, c.cross_motion(both, slope))
        alpha_v = c.add6(alpha_v, gain)
    comoving = c.add6(apply_inertia(ten, alpha), _apply_b(push, spread, psi[0]))
    above = c.add6(comoving, c.cross_force(s, force))
    for_v = c.add6(apply_inertia(ten, alpha_v), _apply_b(push, spread, s[0]))
    weight = apply_inertia(ten, s)
    back = _apply_b_transposed(push, spread, s)

    flat_s, flat_w = (*s[0], *s[1]), (*weight[0], *weight[1])
    below = (*flat_w, *back)
    inner = outer(flat_s, (*comoving[0], *comoving[1]))
    local_force = c.force_to_local(r, p, force)
    for columns, ds in turns:
        inner = inner + jnp.where(columns[None, :, None], c.dot6(ds, local_force)[:, None], 0)
    same = (t.dof_ancestors & t.dof_ancestors.T)[..., None]
    dq_above = jnp.where(same, inner, outer(flat_s, (*above[0], *above[1])))
    dq = masked(t, dq_above, outer(below, (*alpha[0], *alpha[1], *psi[0])))
    dv = masked(t, outer(flat_s, (*for_v[0], *for_v[1])), outer(below, (*alpha_v[0], *alpha_v[1], *s[0])))
    da = masked(t, outer(flat_s, flat_w), outer(flat_w, flat_s)) + diagonal(b.armature)
    return dq, dv, da


derivatives_kernel = kernel(_derivatives)


def _inverse(matrix):
    """Inverse of a symmetric positive definite matrix by Gauss-Jordan sweeps, no pivoting needed."""
    n = matrix.shape[0]
    index = jnp.arange(n, dtype=jnp.int32)

    def sweep(m, k):
        here = (index == k)[:, None]
        row, column = m[k], m[:, k]
        pivot = 1 / row[k]
        row = jnp.where(here, pivot, row * pivot)
        rest = jnp.where(here[None], 0, m) - column[:, None] * row[None]
        return jnp.where(here[:, None], row[None], rest), None

    return jax.lax.scan(sweep, matrix, index)[0]


def _product(left, right):
    """`left @ right` row by row, each row one pass over `right` while that is in cache."""
    n = left.shape[0]
    if n > _UNROLL:
        return jnp.einsum("ikl,kjl->ijl", left, right)

    def row(_, weights):
        return None, ft.reduce(operator.add, (weights[k] * right[k] for k in range(n)))

    return jax.lax.scan(row, None, left)[1]


_UNROLL = 64


def _forward_derivatives(t: Topology, b: Bodies, q, v, tau, external):
    a, *_ = forward(t, b, q, v, tau, external)
    dq, dv, da = _derivatives(t, b, q, v, a, external)
    inverse = _inverse(da)
    return _product(-inverse, dq), _product(-inverse, dv), inverse


forward_derivatives_kernel = kernel(_forward_derivatives)


class InverseDynamicsDerivatives(eqx.Module):
    """Jacobians of `rnea`; that in q is in the tangent space, `dq` of `integrate(q, dq)`."""

    dq: Float[Array, "nv nv"]
    dv: Float[Array, "nv nv"]
    #: the mass matrix
    da: Float[Array, "nv nv"]


class ForwardDynamicsDerivatives(eqx.Module):
    """Jacobians of `forward_dynamics`; that in q is in the tangent space."""

    dq: Float[Array, "nv nv"]
    dv: Float[Array, "nv nv"]
    #: the inverse of the mass matrix
    dtau: Float[Array, "nv nv"]


def rnea_derivatives(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    external: Any = None,
) -> InverseDynamicsDerivatives:
    """Jacobians of inverse dynamics in q (tangent space), v and a, analytically; external wrenches are held."""
    q, v, a = checked_state(model, q, v, a)
    t = model.topology
    load = body_loads(model, external, q.dtype)
    if not t.bodies:
        return InverseDynamicsDerivatives(*(jnp.zeros((0, 0), q.dtype),) * 3)
    full = derivatives_kernel(
        t, bodies(model), full_configuration(model, q), full_velocity(model, v), full_velocity(model, a), load
    )
    if not t.mimics:
        return InverseDynamicsDerivatives(*full)
    dq, dv, da = (own_columns(model, own_effort(model, x)) for x in full)
    return InverseDynamicsDerivatives(dq, dv, da + jnp.diag(model.properties.armature))


def forward_dynamics_derivatives(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    external: Any = None,
) -> ForwardDynamicsDerivatives:
    """Jacobians of forward dynamics: `da/dx = -M^-1 d rnea/dx` at the resulting acceleration, `da/dtau = M^-1`."""
    q, v, tau = checked_state(model, q, v, tau)
    if not model.topology.mimics and model.nv:
        load = body_loads(model, external, q.dtype)
        full = forward_derivatives_kernel(model.topology, bodies(model), q, v, tau, load)
        return ForwardDynamicsDerivatives(*full)
    d = rnea_derivatives(model, q, v, forward_dynamics(model, q, v, tau, external), external)
    if not model.nv:
        return ForwardDynamicsDerivatives(d.dq, d.dv, d.da)
    factor = cho_factor(d.da)
    dq, dv, dtau = (cho_solve(factor, x) for x in (-d.dq, -d.dv, jnp.eye(model.nv, dtype=q.dtype)))
    return ForwardDynamicsDerivatives(dq, dv, dtau)
