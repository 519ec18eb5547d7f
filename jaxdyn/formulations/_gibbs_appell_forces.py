"""Generalised forces of gravity, manipulation, inertia and drives.

After equations 25 to 33 of I. Negrean, A. Duca, K. Kacso, S. Mura-Cozma and C. Schonstein, "New formulations on serial
robots dynamics", COMEC 2009. Each is the product of the Jacobian column of a joint and the total wrench on
its subtree. The source takes moments about the origin of frame {n}, as `resultants` does; the other functions take them
about the world's origin, which does not change the product. Signs: the sum (31) holds if g in (26) is the acceleration
opposite to free fall, and if the wrench in (28) is the one that the robot exerts; these signs are used here. In (33)
`m_j` stands for `r_Cj`.
"""

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Config, Float, Velocity
from jaxdyn.formulations._axes import find_fixed_model, symmetric_matrices
from jaxdyn.model import Model, place_frame
from jaxdyn.recursion import bodies, body_states, body_wrenches, check_state, reduce_columns, reduce_effort


class BodyMotions(eqx.Module):
    """Moving bodies (`topology.bodies`) and their motion, with accelerations `dv_C = J a + b`, `dw = K a + c`.

    Links fixed to a body are part of it. Angular quantities are in body axes, all others in world axes.
    """

    mass: Float[Array, " bodies"]
    #: about the mass centre, in body axes
    inertia: Float[Array, "bodies 3 3"]
    rotation: Float[Array, "bodies 3 3"]
    origin: Float[Array, "bodies 3"]
    #: mass centre C
    centre: Float[Array, "bodies 3"]
    #: columns of the Jacobian about the world's origin, one row per coordinate of any joint
    columns: Float[Array, "full_nv 6"]
    #: angular velocity w
    spin: Float[Array, "bodies 3"]
    J: Float[Array, "bodies 3 nv"]
    K: Float[Array, "bodies 3 nv"]
    b: Float[Array, "bodies 3"]
    c: Float[Array, "bodies 3"]

    def accelerations(self, a):
        """Acceleration of the mass centres, and angular acceleration, under a."""
        return self.J @ a + self.b, self.K @ a + self.c

    def momentum(self, w):
        """`I w` of each body."""
        return jnp.einsum("jkl,jl->jk", self.inertia, w)


def body_motions(model: Model, q, v=None) -> BodyMotions:
    """The motion of the bodies; v is zero if not wrench."""
    reason = find_fixed_model(model)
    if reason is not None:
        raise ModelError(f"the model has no moving body: {reason}. Add a joint, or use Lagrange() or rnea")
    n, s = bodies(model), body_states(model, q, v)
    centre = s.translation + jnp.einsum("jkl,jl->jk", s.rotation, n.com)
    w, dw = s.velocity[:, :3], s.acceleration[:, :3]
    velocity = s.velocity[:, 3:] + jnp.cross(w, centre)
    b = s.acceleration[:, 3:] + jnp.cross(dw, centre) + jnp.cross(w, velocity)
    to_body = lambda x: jnp.einsum("jlk,jl...->jk...", s.rotation, x)
    moves = jnp.asarray(model.topology.body_ancestors[model.topology.dof_body].T, centre.dtype)
    turns = jnp.einsum("jn,nk->jkn", moves, s.subspace[:, :3])
    slides = jnp.einsum("jn,nk->jkn", moves, s.subspace[:, 3:])
    J = slides + jnp.cross(turns, centre[:, :, None], axis=1)
    reduce = lambda x: reduce_columns(model, x.reshape(-1, x.shape[-1])).reshape(*x.shape[:2], model.nv)
    poses = (s.rotation, s.translation, centre, s.subspace)
    return BodyMotions(
        n.mass, symmetric_matrices(n.inertia), *poses, to_body(w), reduce(J), reduce(to_body(turns)), b, to_body(dw)
    )


class GeneralizedForces(eqx.Module):
    """Generalised forces `driving = inertia + gravity + manipulating` (31), N m or N."""

    #: efforts that support the weight (25, 26)
    gravity: Float[Array, " nv"]
    #: efforts for the wrenches that the robot exerts on its environment (27, 28)
    manipulating: Float[Array, " nv"]
    #: efforts that accelerate the links (32, 33) and the rotors (`armature`)
    inertia: Float[Array, " nv"]
    #: efforts of the drives (29 to 31)
    driving: Float[Array, " nv"]
    #: force and moment that each moving joint transmits to its link, in link axes about its origin (29, 30)
    joint_force: Float[Array, "bodies 3"]
    joint_moment: Float[Array, "bodies 3"]


def generalized_forces(
    model: Model,
    q: Config,
    v: Velocity,
    a: Velocity,
    external: Float[Array, "links 6"] | None = None,
) -> GeneralizedForces:
    """Gravity, manipulating, inertia and driving forces of any robot (25 to 33).

    The first three are `J_i^T` times the total wrenches on the subtree of joint i. The driving forces are computed
    independently, as the components along the joint axes of the force and moment in each joint. `external` are the
    wrenches that the environment exerts on the links, as for `rnea`; the robot exerts their opposites.
    """
    q, v, a = check_state(model, q=q, v=v, a=a)
    m = body_motions(model, q, v)
    exerted, weight, inertia = (
        -_external_wrenches(model, m, external),
        _weight_wrenches(model, m),
        _inertia_wrenches(m, a),
    )
    force, moment, drive = _joint_wrenches(model, m, exerted + weight + inertia)
    rotor = model.properties.armature * a
    project = lambda wrench: project_wrenches(model, m, wrench)
    return GeneralizedForces(project(weight), project(exerted), project(inertia) + rotor, drive + rotor, force, moment)


class Resultants(eqx.Module):
    """Total wrenches `(moment, force)` on the subtree of joint i about a frame's origin, in base axes (26, 28, 32).

    One row per moving joint; N m and N. In axes of the frame they are `(R^T moment, R^T force)`.
    """

    #: wrenches that support the weight (26)
    gravity: Float[Array, "bodies 6"]
    #: wrenches that the robot exerts on its environment (28)
    manipulating: Float[Array, "bodies 6"]
    #: wrenches that accelerate the links (32, 33)
    inertia: Float[Array, "bodies 6"]


def resultants(
    model: Model,
    q: Config,
    v: Velocity,
    a: Velocity,
    name: str,
    external: Float[Array, "links 6"] | None = None,
) -> Resultants:
    """Resultants of gravity, manipulation and inertia about the origin of the link or frame `name`, {n} in the source.

    For a chain that carries this frame, `J_i^T` times row i is the generalised force of joint i, where J is the
    Jacobian of the frame in base axes, or in moving axes for wrenches in moving axes (25, 27, 32). Arguments as for
    `generalized_forces`.
    """
    q, v, a = check_state(model, q=q, v=v, a=a)
    m = body_motions(model, q, v)
    body, pose = place_frame(model, name)
    origin = pose.translation
    if body >= 0:
        origin = m.origin[body] + m.rotation[body] @ origin

    def about(wrench):
        total = jnp.asarray(model.topology.body_ancestors, wrench.dtype) @ wrench
        moment = total[:, :3] - jnp.cross(origin, total[:, 3:])
        return jnp.concatenate([moment, total[:, 3:]], axis=1)

    weight, exerted, inertia = (
        _weight_wrenches(model, m),
        -_external_wrenches(model, m, external),
        _inertia_wrenches(m, a),
    )
    return Resultants(about(weight), about(exerted), about(inertia))


def gravity_and_manipulating(model: Model, m: BodyMotions, external):
    """Generalised forces of gravity and of the exerted wrenches, which do not depend on the motion."""
    return project_wrenches(model, m, _weight_wrenches(model, m) - _external_wrenches(model, m, external))


def project_wrenches(model: Model, m: BodyMotions, wrench):
    """`Q_i = J_i^T sum of the wrenches on j = i ... n`, in world axes about the world's origin (25, 27, 32)."""
    t = model.topology
    subtree = jnp.asarray(t.body_ancestors, wrench.dtype) @ wrench
    return reduce_effort(model, jnp.einsum("ik,ik->i", m.columns, subtree[t.dof_body]))


def _about_origin(point, force, moment: ArrayLike = 0):
    return jnp.concatenate([jnp.cross(point, force) + moment, force], axis=1)


def _weight_wrenches(model: Model, m: BodyMotions):
    """(26): `M_j g` at the mass centres, with g opposite to free fall."""
    return _about_origin(m.centre, -m.mass[:, None] * model.gravity)


def _inertia_wrenches(m: BodyMotions, a):
    """(33): `F_j = M_j dv_Cj` and `N_j = I_j dw_j + w_j x I_j w_j`."""
    linear, angular = m.accelerations(a)
    couple = m.momentum(angular) + jnp.cross(m.spin, m.momentum(m.spin))
    return _about_origin(m.centre, m.mass[:, None] * linear, jnp.einsum("jkl,jl->jk", m.rotation, couple))


def _external_wrenches(model: Model, m: BodyMotions, external):
    """(28): the external wrenches on the bodies in world axes about the world's origin."""
    wrench = body_wrenches(model, external, m.origin.dtype)
    to_world = lambda x: jnp.einsum("jkl,jl->jk", m.rotation, x)
    return _about_origin(m.origin, to_world(wrench[:, 3:]), to_world(wrench[:, :3]))


def _joint_wrenches(model: Model, m: BodyMotions, wrench):
    """(29 to 31): force and moment in each joint, in link axes, and their component along the joint axes."""
    t = model.topology
    to_body = lambda x, rotation=m.rotation: jnp.einsum("ilk,il->ik", rotation, x)
    subtree = jnp.asarray(t.body_ancestors, wrench.dtype) @ wrench
    force = to_body(subtree[:, 3:])
    moment = to_body(subtree[:, :3] - jnp.cross(m.origin, subtree[:, 3:]))
    link, spin = t.dof_body, m.columns[:, :3]
    axes = m.rotation[link]
    slide = m.columns[:, 3:] + jnp.cross(spin, m.origin[link])
    along = moment[link] * to_body(spin, axes) + force[link] * to_body(
        slide, axes
    )  # n_i Delta_i k_i + f_i (1 - Delta_i) k_i
    return force, moment, reduce_effort(model, jnp.sum(along, axis=1))
