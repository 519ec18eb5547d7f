"""Newton-Euler equations of each link in the external frame, with the reactions eliminated.

After sections 20.1 and 20.2 of M. Vukobratovic and V. Potkonjak, "Robot Dynamics" (chapter 20 of a CRC handbook, 2002).
Numbers in parentheses are its equations. Two are misprinted there: (20.43) has `r_jj` where (20.27), of which it is a
part, has `r'_jj`, which differs for prismatic joints; and Rodrigues' formula (20.108) has `e x V` for `e . V` in its
middle term. The chain of the source is serial; here it may branch: "link j - 1" is the parent of link j, and a sum over
`k = j ... n` runs over all links that joint j carries.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float, Mat3, Scalar, Vec3
from jaxdyn.formulations._axes import (
    TURNS_AND_SLIDES,
    AxisBodies,
    axis_bodies,
    carried_bodies,
    find_unsupported_or_fixed,
    is_prismatic,
)
from jaxdyn.formulations._formulation import AbstractFormulation
from jaxdyn.model import Model
from jaxdyn.recursion import body_wrenches, sweep_down
from jaxdyn.spatial import axis_angle_to_matrix, skew


class LinearForms(eqx.Module):
    """Velocities and accelerations of the links as linear forms (20.32 to 20.35), in axes of the external frame.

        w_j = Lambda_j v,  v_j = Xi_j v,  dw_j/dt = Lambda_j a + Gamma_j,  dv_j/dt = Xi_j a + Delta_j

    One row per moving link j, including links fixed to it; `v_j` is the velocity of its mass centre.
    """

    Lambda: Float[Array, "bodies 3 nv"]
    Xi: Float[Array, "bodies 3 nv"]
    #: rad/s^2
    Gamma: Float[Array, "bodies 3"]
    #: m/s^2
    Delta: Float[Array, "bodies 3"]
    #: angular velocity, rad/s
    spin: Float[Array, "bodies 3"]
    #: transformation matrix `A_j` from link axes to external ones (20.9)
    rotation: Float[Array, "bodies 3 3"]
    #: mass centre `C_j`, m
    centre: Float[Array, "bodies 3"]
    #: unit vector `e_j` of the joint
    axis: Float[Array, "bodies 3"]
    #: point `S_j` of the joint, fixed in the parent, m; for a prismatic joint the origin of its coordinate
    joint: Float[Array, "bodies 3"]


class Reactions(eqx.Module):
    """Forces and couples that the joints transmit to the link (20.17 to 20.19), about `S_j`, in external axes.

        F_S = F_R + s tau e,   M_S = M_R + (1 - s) tau e

    One row per moving joint; N and N m.
    """

    #: total force `F_S` and couple `M_S`
    total_force: Float[Array, "bodies 3"]
    total_couple: Float[Array, "bodies 3"]
    #: reaction `F_R`, perpendicular to the axis of a prismatic joint
    force: Float[Array, "bodies 3"]
    #: reaction `M_R`, perpendicular to the axis of a revolute joint
    couple: Float[Array, "bodies 3"]
    #: effort `tau` of the drive on the mechanism, without the effort that accelerates the rotor (`armature`)
    drive: Float[Array, " nv"]


class _Link(NamedTuple):
    """Inputs of one step of the recursion for link j; constants with a tilde in the source are in link axes."""

    home: Mat3  # A_(j-1,j) at q = 0
    e: Vec3  # e~_j
    r_before: Vec3  # r_(j-1,j): from S_j to C_(j-1), in axes of link j - 1
    r_own: Vec3  # r~_jj: from S_j to C_j
    s: Scalar
    q: Scalar
    rate: Scalar
    own: Float[Array, " nv"]  # row j of the identity matrix, which selects column j


class _State(NamedTuple):
    """State of the recursion at one link."""

    A: Mat3
    spin: Vec3
    Lambda: Float[Array, "3 nv"]
    Gamma: Vec3
    Xi: Float[Array, "3 nv"]
    Delta: Vec3
    centre: Vec3


def _next_link(before: _State, x: _Link):
    """From link j - 1 to link j: equations 20.8, 20.9, 20.23, 20.25 and 20.40 to 20.43."""
    A = before.A @ x.home @ axis_angle_to_matrix(x.e, (1 - x.s) * x.q)
    e = A @ x.e
    turn, slide = (1 - x.s) * e, x.s * e
    r_before = before.A @ x.r_before
    r = A @ x.r_own + slide * x.q  # r'_jj (20.8)
    spin = before.spin + x.rate * turn
    Lambda = before.Lambda + jnp.outer(turn, x.own)
    Gamma = before.Gamma + x.rate * jnp.cross(spin, turn)
    Xi = before.Xi - _cross_columns(before.Lambda, r_before) + _cross_columns(Lambda, r) + jnp.outer(slide, x.own)
    Delta = (
        before.Delta
        - jnp.cross(before.Gamma, r_before)
        + jnp.cross(Gamma, r)
        - jnp.cross(before.spin, jnp.cross(before.spin, r_before))
        + jnp.cross(spin, jnp.cross(spin, r))
        + 2 * x.rate * jnp.cross(spin, slide)
    )
    centre = before.centre - r_before + r
    state = _State(A, spin, Lambda, Gamma, Xi, Delta, centre)
    return state, (Lambda, Xi, Gamma, Delta, spin, A, centre, e, centre - r)


def _cross_columns(columns, r):
    """`columns_k x r`."""
    return jnp.cross(columns, r[:, None], axis=0)


def linear_forms(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> LinearForms:
    """The matrices Lambda, Xi, Gamma and Delta of all links, by the recursion (20.40) to (20.43).

    For models of revolute, continuous and prismatic joints; q in rad or m, v in rad/s or m/s.
    """
    q, v = NewtonEulerReactions().checked(model, q, v)
    return _forms(model, axis_bodies(model), q, v)


def _forms(model: Model, b: AxisBodies, q, v) -> LinearForms:
    t, n = model.topology, model.nv
    dtype = jnp.result_type(q, v, b.translation)
    s = is_prismatic(model)
    com_before = jnp.concatenate([b.com, jnp.zeros((1, 3), dtype)])[np.array(t.body_parents, int)]
    axis = jnp.where(s[:, None] == 1, b.screw[:, 3:], b.screw[:, :3])
    links = _Link(
        b.rotation, axis, com_before - b.translation, b.com, jnp.asarray(s, dtype), q, v, jnp.eye(n, dtype=dtype)
    )
    zero, no_columns = jnp.zeros(3, dtype), jnp.zeros((3, n), dtype)
    world = _State(jnp.eye(3, dtype=dtype), zero, no_columns, zero, no_columns, zero, zero)
    links = jax.tree.map(lambda x: jnp.asarray(x, dtype), links)
    return LinearForms(*sweep_down(t.body_slots, _next_link, world, links))


def _inertia(b: AxisBodies, f: LinearForms):
    """`A_k J~_k A_k^T`, the inertias in external axes."""
    return f.rotation @ b.inertia @ jnp.swapaxes(f.rotation, 1, 2)


def _at_joints(model: Model, f: LinearForms, force, couple):
    """Sums over the links that each joint carries: `sum F_k` and `sum (M_k + r_k^(j) x F_k)`.

    `r_k^(j) = C_k - S_j` (20.49). Forces at the mass centres and couples may have further axes.
    """
    subtree = jnp.asarray(carried_bodies(model), force.dtype)
    total = jnp.einsum("jk,kc...->jc...", subtree, force)
    about_origin = couple + jnp.einsum("kcd,kd...->kc...", skew(f.centre), force)
    moment = jnp.einsum("jk,kc...->jc...", subtree, about_origin)
    return total, moment - jnp.einsum("jcd,jd...->jc...", skew(f.joint), total)


def _project_on_axes(model: Model, f: LinearForms, force, couple):
    """Component along `e_j`, without reaction: of the force (prismatic, 20.50) or of the couple (revolute, 20.51)."""
    s = jnp.asarray(is_prismatic(model), force.dtype).reshape(-1, *[1] * (force.ndim - 2))
    along = lambda x: jnp.einsum("jc,jc...->j...", f.axis, x)
    return s * along(force) + (1 - s) * along(couple)


class NewtonEulerReactions(AbstractFormulation):
    """`H(q) a + h(q, v) = tau` from the equilibrium of the subtree of each joint (20.47 to 20.60).

    With `w = Lambda v` and the other `LinearForms`, the motion of link k requires the force `m (Xi a + Delta - g)` at
    its mass centre and the couple `J (Lambda a + Gamma) + w x J w`. Their sums over the subtree of joint j, projected
    on `e_j`, are row j of H and h: forces for a prismatic joint (20.54), moments about `S_j` for a revolute joint
    (20.58), in one formula with the indicator `s_j` (20.6). Covers trees of revolute, continuous and prismatic joints.
    Armatures are added on the diagonal of H, as the rotors in (20.73).
    """

    def covers(self, model):
        return find_unsupported_or_fixed(model, *TURNS_AND_SLIDES)

    def mass_matrix(self, model, q):
        (q,) = self.checked(model, q)
        b = axis_bodies(model)
        f = _forms(model, b, q, jnp.zeros_like(q))
        rows = _at_joints(model, f, b.mass[:, None, None] * f.Xi, _inertia(b, f) @ f.Lambda)
        return _project_on_axes(model, f, *rows) + jnp.diag(model.properties.armature)

    def bias(self, model, q, v):
        q, v = self.checked(model, q, v)
        return self.inverse_dynamics(model, q, v, jnp.zeros_like(v))

    def inverse_dynamics(self, model, q, v, a, external=None):
        q, v, a = self.checked(model, q, v, a)
        b = axis_bodies(model)
        f = _forms(model, b, q, v)
        force, couple = _at_joints(model, f, *_link_loads(model, b, f, a, external))
        return _project_on_axes(model, f, force, couple) + model.properties.armature * a


def _link_loads(model: Model, b: AxisBodies, f: LinearForms, a, external):
    """`-(G_k + F_kI)` and `-M_kI` (20.44 to 20.46) of each link, minus the external wrench on it."""
    J = _inertia(b, f)
    angular = jnp.einsum("kcn,n->kc", f.Lambda, a) + f.Gamma  # (20.34)
    linear = jnp.einsum("kcn,n->kc", f.Xi, a) + f.Delta  # (20.35)
    apply_inertia = lambda x: jnp.einsum("kij,kj->ki", J, x)
    force = b.mass[:, None] * (linear - model.gravity)
    couple = apply_inertia(angular) + jnp.cross(f.spin, apply_inertia(f.spin))
    push = body_wrenches(model, external, force.dtype)
    to_external = lambda x: jnp.einsum("kij,kj->ki", f.rotation, x)
    at_centre = to_external(push[:, :3] - jnp.cross(b.com, push[:, 3:]))
    return force - to_external(push[:, 3:]), couple - at_centre


def reactions(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
) -> Reactions:
    """Forces and couples that the joints transmit, and the reactions `F_R`, `M_R` in them (20.17 to 20.20).

    `F_S = -sum (G_k + F_kI)` and `M_S = -sum (M_kI + r_k^(j) x (G_k + F_kI))` (20.47, 20.48) over the links that joint
    j carries; the reactions are the rest after subtraction of the drive (20.19). Wrenches `external` as for `rnea`.
    """
    q, v, a = NewtonEulerReactions().checked(model, q, v, a)
    b = axis_bodies(model)
    f = _forms(model, b, q, v)
    force, couple = _at_joints(model, f, *_link_loads(model, b, f, a, external))
    drive = _project_on_axes(model, f, force, couple)
    s = jnp.asarray(is_prismatic(model), force.dtype)
    along_axis = lambda x: x[:, None] * f.axis
    return Reactions(force, couple, force - along_axis(s * drive), couple - along_axis((1 - s) * drive), drive)
