"""Newton-Euler algorithm with twists and wrenches in centre-of-mass frames.

After the lecture notes "Chapter 8: Dynamics of open chains" (2023) on K. Lynch and F. Park, "Modern Robotics", 2017,
sections 8.2, 8.3 and 8.5. The chain of the notes is serial; here it may branch, and the wrenches of all children are
summed. Misprints of the notes: the acceleration of the base `dV_0 = (0, -g)` lacks its dot; forward dynamics solves
`M a = tau - h - J^T F_tip`; and `I_b = -sum m [p]^2` lacks its sign.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float, Mat3, Vec3, Vec6
from jaxdyn.formulations._axes import SCREWS, axis_bodies, find_unsupported_or_fixed
from jaxdyn.formulations._exponentials import screw_exponential
from jaxdyn.formulations._formulation import AbstractFormulation
from jaxdyn.model import Model
from jaxdyn.recursion import body_wrenches, sweep_down, sweep_up
from jaxdyn.spatial import Inertia, Pose, principal_axes, skew

Mat6 = Float[Array, "6 6"]


def spatial_inertia(mass: Float[Array, ""], inertia: Mat3) -> Mat6:
    """`G_b = diag(I_b, m 1)`, the inertia of a body in a frame at its centre of mass (section 8.2.1); kg m^2 and kg."""
    none = jnp.zeros((3, 3), inertia.dtype)
    return jnp.block([[inertia, none], [none, mass * jnp.eye(3, dtype=inertia.dtype)]])


def inertia_in_frame(inertia: Mat6, pose: Pose) -> Mat6:
    """The spatial inertia of a body in another frame, `G_a = Ad(T_ba)^T G_b Ad(T_ba)` (section 8.2.3).

    `inertia` is `G_b`, `pose` is `T_ba`, the pose of the new frame {a} in {b}. For a rotated frame at the same origin
    this is `I_a = R_ba^T I_b R_ba`; for a translated frame it is Steiner's rule.
    """
    adjoint = pose.adjoint()
    return adjoint.T @ inertia @ adjoint


def twist_bracket(twist: Vec6) -> Mat6:
    """`[ad_V] = [[w], 0; [v], [w]]`, whose product with a twist is the Lie bracket of the two (section 8.2.2)."""
    w, v = skew(twist[:3]), skew(twist[3:])
    return jnp.block([[w, jnp.zeros_like(w)], [v, w]])


def body_wrench(inertia: Mat6, twist: Vec6, acceleration: Vec6) -> Vec6:
    """Wrench for the motion of a rigid body, `F = G dV - [ad_V]^T G V`, in any frame fixed to the body.

    `inertia` is G in that frame, `twist` is V and `acceleration` dV, the rate of its components there; N m and N.
    """
    return inertia @ acceleration - twist_bracket(twist).T @ inertia @ twist


def principal_frame(body: Inertia) -> tuple[Vec3, Pose]:
    """Principal moments in ascending order, and the frame {p} at the centre of mass in which the inertia is diagonal.

    `I_b = R_bp diag(moments) R_bp^T` with right-handed axes; the pose is that of {p} in the frame of `body`.
    Derivatives are finite everywhere. If two moments agree to 1e-8 of the largest, their axes are arbitrary within
    their plane, and the derivative of a rotation in this plane is set to zero.
    """
    moments, axes = _principal(body.inertia)
    return moments, Pose(axes, body.com)


@jax.custom_jvp
def _principal(inertia):
    return principal_axes(inertia)


@_principal.defjvp
def _principal_jvp(primals, tangents):
    moments, axes = _principal(*primals)
    rotated = axes.T @ (tangents[0] + tangents[0].T) @ axes / 2
    gap = moments[None, :] - moments[:, None]
    apart = jnp.abs(gap) > 1e-8 * jnp.max(jnp.abs(moments))
    spin = jnp.where(apart, rotated / jnp.where(apart, gap, 1), 0)
    return (moments, axes), (jnp.diag(rotated), axes @ spin)


class _Links(NamedTuple):
    """The constants of the algorithm, one row per body."""

    A: Float[Array, "n 6"]  # screw axis of joint i in {i}
    M: Pose  # M_(i,i-1) of {i-1} in {i} at zero
    G: Float[Array, "n 6 6"]  # spatial inertia


def _links(model: Model) -> _Links:
    """Frames {i} are parallel to the links, with their origins at the centres of mass."""
    b = axis_bodies(model)
    dtype = b.com.dtype
    com_before = jnp.concatenate([b.com, jnp.zeros((1, 3), dtype)])[np.array(model.topology.body_parents, int)]
    centred = Pose(jnp.broadcast_to(jnp.eye(3, dtype=dtype), b.rotation.shape), b.com)
    home = Pose(b.rotation, b.translation - com_before) @ centred  # M_(i-1,i)
    spin, slide = b.screw[:, :3], b.screw[:, 3:]
    A = jnp.concatenate([spin, slide + jnp.cross(spin, b.com)], axis=1)
    return _Links(A, home.inverse(), jax.vmap(spatial_inertia)(b.mass, b.inertia))


def _forward(before, x):
    """Adjoint, twist and acceleration of link i from those of link i - 1."""
    (V, dV), (A, M, q, v, a) = before, x
    adjoint = (screw_exponential(-A, q) @ M).adjoint()
    V = adjoint @ V + A * v
    dV = adjoint @ dV + twist_bracket(V) @ A * v + A * a
    return (V, dV), (adjoint, V, dV)


def _backward(outer, x):
    """The wrench that link i requires, and the effort of its joint."""
    adjoint, V, dV, A, G, external = x
    F = outer + body_wrench(G, V, dV) - external
    return adjoint.T @ F, F @ A


def _newton_euler(model: Model, links: _Links, q, v, a, gravity, external):
    """Outward iteration for twists, inward iteration for wrenches; `external` is in the frames {i}."""
    slots = model.topology.body_slots
    world = jnp.zeros_like(external[0])
    start = (world, world.at[3:].set(-gravity))
    motions = sweep_down(slots, _forward, start, (links.A, links.M, q, v, a))
    return sweep_up(slots, _backward, world, (*motions, links.A, links.G, external))


class TwistWrench(AbstractFormulation):
    """Newton-Euler algorithm in frames at the centres of mass: outward for twists, inward for wrenches.

        T_(i,i-1) = exp(-[A_i] q_i) M_(i,i-1)
        V_i  = Ad(T_(i,i-1)) V_(i-1) + A_i v_i
        dV_i = Ad(T_(i,i-1)) dV_(i-1) + [ad_V_i] A_i v_i + A_i a_i,        dV_0 = (0, -g)
        F_i  = Ad(T_(i+1,i))^T F_(i+1) + G_i dV_i - [ad_V_i]^T G_i V_i,    tau_i = F_i . A_i

    (Lynch and Park 2017, equations 8.50 to 8.54.) Column k of the mass matrix is its result at rest, without
    gravity, for the k-th unit acceleration. In the notes the tip exerts a wrench; here wrenches may act on any link
    (`external`). Covers trees of revolute, continuous, prismatic and helical joints; armatures are added at the joints.
    """

    def covers(self, model):
        return find_unsupported_or_fixed(model, *SCREWS)

    def mass_matrix(self, model, q):
        (q,) = self.checked(model, q)
        links, zero = _links(model), jnp.zeros_like(q)
        no_wrench = jnp.zeros((model.nv, 6), q.dtype)
        column = lambda a: _newton_euler(model, links, q, zero, a, jnp.zeros(3, q.dtype), no_wrench)
        return jax.vmap(column)(jnp.eye(model.nv, dtype=q.dtype)).T + jnp.diag(model.properties.armature)

    def bias(self, model, q, v):
        q, v = self.checked(model, q, v)
        return self.inverse_dynamics(model, q, v, jnp.zeros_like(v))

    def inverse_dynamics(self, model, q, v, a, external=None):
        q, v, a = self.checked(model, q, v, a)
        load = body_wrenches(model, external, q.dtype)
        moment = load[:, :3] - jnp.cross(axis_bodies(model).com, load[:, 3:])
        at_centres = jnp.concatenate([moment, load[:, 3:]], axis=1)
        effort = _newton_euler(model, _links(model), q, v, a, model.gravity, at_centres)
        return effort + model.properties.armature * a
