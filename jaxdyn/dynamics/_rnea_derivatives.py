"""Jacobians of inverse dynamics by one sweep and dense products.

A displacement of joint j by the twist S_j moves its whole subtree. In axes that move with the subtree, the motion
of its base is the only quantity that changes, so that the same two vectors apply to every body i in it:

    dv_i = psi_j,    da_i = alpha_j + psi_j x v_i,
    df_i = I_i alpha_j + B_i psi_j,    B = v x* I - I v x + (.) x* I v.

For a change of q_j, `psi = v_p x S_j`, `alpha = a_p x S_j - psi x v_p` (p the parent body, gravity in a_p); for a
change of v_j, `psi = S_j`, `alpha = (v_c + v_p) x S_j` (c the child body). With I and B summed over subtrees,

    dtau_i / dj = S_i . (I_j alpha_j + B_j psi_j [+ S_j x* F_j for q])    i above j,
    dtau_i / dj = (I_i S_i) . alpha_j + (B_i^T S_i) . psi_j               i below j,

which are dense products of six-vectors, masked by the tree: the quantities of Carpentier and Mansard (2018) and
Singh, Russo and Wensing (2022) without their recursion. `B psi` depends on the angular part of psi only: with
`J = sum of m x xdot^T` over the points x of the bodies and p their momentum,
`B psi = (2 (tr J - J^T) psi_w, 2 psi_w x p)`.
"""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn import recursion as rc
from jaxdyn._numerics import kernel
from jaxdyn._types import Array, Float
from jaxdyn.dynamics._crba import diagonal, mask_by_tree, outer, subtree_sum
from jaxdyn.model import Model
from jaxdyn.recursion import (
    Bodies,
    Topology,
    TreeState,
    bodies,
    body_wrenches,
    check_state,
    full_configuration,
    full_velocity,
    joint_states,
    joint_tangents,
    reduce_columns,
    reduce_effort,
    reduce_mass_matrix,
    six_columns,
    sweep_down,
    to_bodies,
    to_dofs,
)
from jaxdyn.recursion import components as c


def _sweep(tree: TreeState, external):
    """Of each body: pose, velocity, motion of the parent, and the terms that are summed over subtrees."""

    def down(parent, x):
        pose, vp, ap = parent
        local, rate, acceleration, ten, load = x
        r, p = rc.compose_poses(pose, local)
        v, a = rc.accelerate(r, p, vp, ap, rate, acceleration)
        mass, first, second = ten = rc.inertia_to_world(r, p, ten)
        f = rc.body_force(ten, v, a)
        f = c.add6(f, c.scale6(-1, c.force_to_world(r, p, load)))
        linear = c.add(c.scale(mass, v[1]), c.cross(v[0], first))
        sums = (mass, *first, *second, *f[0], *f[1], *linear, *_moment_matrix(first, second, v))
        return ((r, p), v, a), (r, p, v, vp, ap, sums)

    root = (tree.root_pose(), tree.zero(), tree.gravity())
    xs = (tree.local, tree.rate, tree.acceleration, rc.inertial_moments(tree.bodies), six_columns(external))
    return sweep_down(tree.topology.body_slots, down, root, xs)


def _moment_matrix(first, second, v):
    """`J = sum of m x xdot^T` of a body with first moment h and inertia I, by rows: `h v^T - (tr(I)/2 - I) [w]`."""
    xx, xy, xz, yy, yz, zz = second
    half = (xx + yy + zz) / 2
    rows = ((half - xx, -xy, -xz), (-xy, half - yy, -yz), (-xz, -yz, half - zz))
    return tuple(first[i] * v[1][j] + x for i in range(3) for j, x in enumerate(c.cross(v[0], rows[i])))


def _apply_b(linear, moment, w):
    """`B psi` of the angular part w of psi."""
    trace = moment[0] + moment[4] + moment[8]
    transposed = tuple(moment[j] * w[0] + moment[3 + j] * w[1] + moment[6 + j] * w[2] for j in range(3))
    n = tuple(2 * (trace * x - y) for x, y in zip(w, transposed, strict=True))
    return (n, c.scale(2, c.cross(w, linear)))


def _apply_b_transposed(linear, moment, s):
    """Angular part of `B^T S`; the linear part is zero."""
    trace = moment[0] + moment[4] + moment[8]
    along = tuple(c.dot(moment[3 * i : 3 * i + 3], s[0]) for i in range(3))
    turn = c.cross(linear, s[1])
    return tuple(2 * (x + trace * y - z) for x, y, z in zip(turn, s[0], along, strict=True))


def _select_dofs(t: Topology, mask, x):
    """A six-vector over bodies at the masked degrees of freedom, zero elsewhere."""
    return jax.tree.map(lambda y: jnp.where(mask[:, None], to_dofs(t, y), 0), x)


def _subspace_derivatives(t: Topology, b: Bodies, q, v, a):
    """Derivatives of the motion of joints whose subspace depends on their coordinates.

    For each degree of freedom j: `(d(S v)/dq_j, d(S a + bias)/dq_j, d bias/dv_j)` in child axes, and the list of
    `(m, dS/dq_m)` over local coordinate numbers m. Derivatives with respect to q are along the tangents of `integrate`.
    """
    at = lambda q, v: joint_states(t, b.joints, q, v)[2:]
    number = np.concatenate([np.arange(n) for n in t.body_nv])
    slope, curve, gain, turns = None, None, None, []
    for m, dq in enumerate(joint_tangents(t, b.joints, q, v)):
        _, (ds, dbias) = jax.jvp(lambda x: at(x, v), (q,), (jnp.broadcast_to(dq, q.shape),))
        dv = jnp.broadcast_to(jnp.asarray(number == m, v.dtype)[:, None], v.shape)
        _, (_, dbias_v) = jax.jvp(lambda x: at(q, x), (v,), (dv,))
        pick = ft.partial(_select_dofs, t, number == m)
        total = lambda rate, ds=ds: jax.tree.map(lambda s: to_bodies(t, s * rate), ds)
        parts = (pick(total(v)), pick(c.add6(total(a), dbias)), pick(dbias_v))
        slope, curve, gain = (
            x if y is None else c.add6(y, x) for x, y in zip(parts, (slope, curve, gain), strict=True)
        )
        turns.append((number == m, ds))
    return slope, curve, gain, turns


def inverse_dynamics_jacobians(t: Topology, b: Bodies, q, v, a, external):
    """`(dtau/dq, dtau/dv, dtau/da)` of all joint coordinates, `(full_nv, full_nv, lanes)` each."""
    lanes = rc.lanes_of(q, v, a, b.mass, b.translation, b.rotation, external)
    q, v, a = (jnp.broadcast_to(x, (x.shape[0], lanes)) for x in (q, v, a))
    tree = TreeState(t, b, q, v, a, b.mass, external)
    r, p, vc, vp, ap, sums = _sweep(tree, external)
    sums = subtree_sum(t, sums, tree.lanes, tree.dtype)
    over_dofs = lambda x: jax.tree.map(lambda y: to_dofs(t, y), x)
    r, p, vc, vp, ap, sums = over_dofs((r, p, vc, vp, ap, sums))
    ten, force = (sums[0], sums[1:4], sums[4:10]), (sums[10:13], sums[13:16])
    linear, moment = sums[16:19], sums[19:28]
    s = rc.to_world(r, p, tree.subspace if rc.has_translating_joints(t) else (tree.subspace[0], None))

    psi = c.cross_motion(vp, s)
    alpha = c.add6(c.cross_motion(ap, s), c.cross_motion(vp, psi))
    both = c.add6(vc, vp)
    alpha_v = c.cross_motion(both, s)
    turns = []
    if tree.bias is not None:
        slope, curve, gain, turns = _subspace_derivatives(t, b, q, v, a)
        slope, curve, gain = (c.motion_to_world(r, p, x) for x in (slope, curve, gain))
        psi = c.add6(psi, slope)
        alpha = c.add6(alpha, curve, c.cross_motion(both, slope))
        alpha_v = c.add6(alpha_v, gain)
    comoving = c.add6(rc.apply_inertia(ten, alpha), _apply_b(linear, moment, psi[0]))
    above = c.add6(comoving, c.cross_force(s, force))
    for_v = c.add6(rc.apply_inertia(ten, alpha_v), _apply_b(linear, moment, s[0]))
    inertia_s = rc.apply_inertia(ten, s)
    transposed = _apply_b_transposed(linear, moment, s)

    flat_s, flat_momentum = (*s[0], *s[1]), (*inertia_s[0], *inertia_s[1])
    below = (*flat_momentum, *transposed)
    inner = outer(flat_s, (*comoving[0], *comoving[1]))
    local_force = c.force_to_local(r, p, force)
    for columns, ds in turns:
        inner = inner + jnp.where(columns[None, :, None], c.dot6(ds, local_force)[:, None], 0)
    same = (t.dof_ancestors & t.dof_ancestors.T)[..., None]
    dq_above = jnp.where(same, inner, outer(flat_s, (*above[0], *above[1])))
    dq = mask_by_tree(t, dq_above, outer(below, (*alpha[0], *alpha[1], *psi[0])))
    dv = mask_by_tree(t, outer(flat_s, (*for_v[0], *for_v[1])), outer(below, (*alpha_v[0], *alpha_v[1], *s[0])))
    da = mask_by_tree(t, outer(flat_s, flat_momentum), outer(flat_momentum, flat_s)) + diagonal(b.armature)
    return dq, dv, da


derivatives_kernel = kernel(inverse_dynamics_jacobians)


class InverseDynamicsDerivatives(eqx.Module):
    """Jacobians of `rnea`; derivatives with respect to q are in the tangent space of `integrate`."""

    dq: Float[Array, "nv nv"]
    dv: Float[Array, "nv nv"]
    #: the mass matrix
    da: Float[Array, "nv nv"]


def rnea_derivatives(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
) -> InverseDynamicsDerivatives:
    """Jacobians of `rnea` with respect to q (in the tangent space), v and a, by analytical formulas.

    Arguments:

    * `model`: the robot
    * `q`: configuration, `(nq,)`
    * `v`: velocity, `(nv,)`, rad/s or m/s
    * `a`: acceleration, `(nv,)`, rad/s^2 or m/s^2
    * `external`: wrenches (moment, force) on the links, `(num_links, 6)`, in link axes about the link's origin, or None

    Returns `InverseDynamicsDerivatives` with `dq`, `dv` and `da`, `(nv, nv)` each, for wrenches that are constant in
    link axes; `da` is the mass matrix.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    model = jd.robots.double_pendulum()
    d = jd.rnea_derivatives(model, jnp.array([0.1, 0.2]), jnp.array([0.5, -0.5]), jnp.zeros(2))
    stiffness = d.dq
    ```
    """
    q, v, a = check_state(model, q=q, v=v, a=a)
    t = model.topology
    wrenches = body_wrenches(model, external, q.dtype)
    if not t.bodies:
        return InverseDynamicsDerivatives(*(jnp.zeros((0, 0), q.dtype),) * 3)
    state = full_configuration(model, q), full_velocity(model, v), full_velocity(model, a)
    dq, dv, da = derivatives_kernel(t, bodies(model), *state, wrenches)
    dq, dv = (reduce_columns(model, reduce_effort(model, x)) for x in (dq, dv))
    return InverseDynamicsDerivatives(dq, dv, reduce_mass_matrix(model, da))
