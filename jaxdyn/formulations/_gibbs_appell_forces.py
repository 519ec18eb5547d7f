"""Generalised forces of gravity, manipulation, inertia and drives.

After equations 25 to 33 of I. Negrean, A. Duca, K. Kacso, S. Mura-Cozma and C. Schonstein, "New formulations on serial
robots dynamics", COMEC 2009. Each is a wrench of all that a joint carries, multiplied by the column of the Jacobian of
that joint; the source takes moments about the origin of frame {n} (`resultants` has them so), elsewhere they are about
the world's here, as any point gives the same product. Signs: the sum (31) holds if g in (26) is the acceleration
opposite to free fall, and if the wrench in (28) is the one that the robot exerts; so they are taken. In (33) the centre
that `m_j` stands for is `r_Cj`.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._types import Array, Config, Float, Velocity
from jaxdyn.formulations._axes import body_wrenches, matrices, nothing_moves
from jaxdyn.kinematics._frames import locate
from jaxdyn.kinematics._state import body_states
from jaxdyn.model import Model
from jaxdyn.model._bodies import bodies
from jaxdyn.model._mimic import own_columns, own_effort


class BodyMotions(eqx.Module):
    """Moving bodies (`topology.bodies`) and their motion, accelerations as forms `dv_C = J a + b`, `dw = K a + c`.

    What is fixed to a body is part of it. Angular quantities are in body axes, all others in those of the world.
    """

    mass: Float[Array, " bodies"]
    #: about the mass centre, in body axes
    inertia: Float[Array, "bodies 3 3"]
    rotation: Float[Array, "bodies 3 3"]
    origin: Float[Array, "bodies 3"]
    #: mass centre C
    centre: Float[Array, "bodies 3"]
    #: columns of the Jacobian, one row a coordinate of any joint, about the world's origin
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
    """The motion of the bodies; v is zero if not given."""
    reason = nothing_moves(model)
    if reason is not None:
        raise ModelError(f"there is no motion to describe: {reason}. Add a joint, or use Lagrange() and rnea")
    n, s = bodies(model), body_states(model, q, v)
    centre = s.translation + jnp.einsum("jkl,jl->jk", s.rotation, n.com)
    w, dw = s.velocity[:, :3], s.acceleration[:, :3]
    velocity = s.velocity[:, 3:] + jnp.cross(w, centre)
    b = s.acceleration[:, 3:] + jnp.cross(dw, centre) + jnp.cross(w, velocity)
    own = lambda x: jnp.einsum("jlk,jl...->jk...", s.rotation, x)
    moves = jnp.asarray(model.topology.body_ancestors[model.topology.dof_body].T, centre.dtype)
    turns = jnp.einsum("jn,nk->jkn", moves, s.subspace[:, :3])
    slides = jnp.einsum("jn,nk->jkn", moves, s.subspace[:, 3:])
    J = slides + jnp.cross(turns, centre[:, :, None], axis=1)
    mine = lambda x: own_columns(model, x.reshape(-1, x.shape[-1])).reshape(*x.shape[:2], model.nv)
    poses = (s.rotation, s.translation, centre, s.subspace)
    return BodyMotions(n.mass, matrices(n.inertia), *poses, own(w), mine(J), mine(own(turns)), b, own(dw))


class GeneralizedForces(eqx.Module):
    """What balances at each coordinate, `driving = inertia + gravity + manipulating` (31), N m or N."""

    #: what holds the weight (25, 26)
    gravity: Float[Array, " nv"]
    #: what the wrenches that the robot exerts on its environment take (27, 28)
    manipulating: Float[Array, " nv"]
    #: what accelerates the links (32, 33), and the rotors (`armature`)
    inertia: Float[Array, " nv"]
    #: what the drives give (29 to 31)
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

    The first three are `J_i^T` times the wrenches of all that joint i carries. The last come the other way, from the
    force and the moment in each joint, of which the drive is the part along its axis. `external` are the wrenches
    that the environment exerts on the links, as for `rnea`: the manipulating forces are those of their opposites.
    """
    q = check_shape("q", q, (model.nq,))
    v, a = check_shape("v", v, (model.nv,)), check_shape("a", a, (model.nv,))
    m = body_motions(model, q, v)
    exerted, held, moved = -_pushes(model, m, external), _weights(model, m), _inertia_wrenches(m, a)
    force, moment, drive = _joint_wrenches(model, m, exerted + held + moved)
    rotor = model.properties.armature * a
    project = lambda wrench: projected(model, m, wrench)
    return GeneralizedForces(project(held), project(exerted), project(moved) + rotor, drive + rotor, force, moment)


class Resultants(eqx.Module):
    """Wrenches `(moment, force)` of all that joint i carries, about the origin of one frame, in base axes (26, 28, 32).

    One row a moving joint; N m and N. Along the frame's own axes they are `(R^T moment, R^T force)`.
    """

    #: what holds the weight (26)
    gravity: Float[Array, "bodies 6"]
    #: what the robot exerts on its environment (28)
    manipulating: Float[Array, "bodies 6"]
    #: what accelerates the links (32, 33)
    inertia: Float[Array, "bodies 6"]


def resultants(
    model: Model,
    q: Config,
    v: Velocity,
    a: Velocity,
    name: str,
    external: Float[Array, "links 6"] | None = None,
) -> Resultants:
    """Resultants of gravity, manipulation and inertia about the origin of the link or frame `name`, the source's {n}.

    Of a chain that carries this frame, `J_i^T` times row i is the generalised force of joint i, J being the Jacobian
    of the frame in base axes, or the moving one with wrenches along moving axes (25, 27, 32). Arguments as for
    `generalized_forces`.
    """
    q = check_shape("q", q, (model.nq,))
    v, a = check_shape("v", v, (model.nv,)), check_shape("a", a, (model.nv,))
    m = body_motions(model, q, v)
    body, pose = locate(model, name)
    origin = pose.translation
    if body >= 0:
        origin = m.origin[body] + m.rotation[body] @ origin

    def about(wrench):
        total = jnp.asarray(model.topology.body_ancestors, wrench.dtype) @ wrench
        moment = total[:, :3] - jnp.cross(origin, total[:, 3:])
        return jnp.concatenate([moment, total[:, 3:]], axis=1)

    held, exerted, moved = _weights(model, m), -_pushes(model, m, external), _inertia_wrenches(m, a)
    return Resultants(about(held), about(exerted), about(moved))


def gravity_and_manipulating(model: Model, m: BodyMotions, external):
    """The sum of both, which is what does not depend on the motion."""
    return projected(model, m, _weights(model, m) - _pushes(model, m, external))


def projected(model: Model, m: BodyMotions, wrench):
    """`Q_i = J_i^T sum of the wrenches on j = i ... n`, in world axes about the world's origin (25, 27, 32)."""
    t = model.topology
    beyond = jnp.asarray(t.body_ancestors, wrench.dtype) @ wrench
    return own_effort(model, jnp.einsum("ik,ik->i", m.columns, beyond[t.dof_body]))


def _about_origin(point, force, moment: Any = 0):
    return jnp.concatenate([jnp.cross(point, force) + moment, force], axis=1)


def _weights(model: Model, m: BodyMotions):
    """(26): `M_j g` at the mass centres, with g opposite to free fall."""
    return _about_origin(m.centre, -m.mass[:, None] * model.gravity)


def _inertia_wrenches(m: BodyMotions, a):
    """(33): `F_j = M_j dv_Cj` and `N_j = I_j dw_j + w_j x I_j w_j`."""
    linear, angular = m.accelerations(a)
    couple = m.momentum(angular) + jnp.cross(m.spin, m.momentum(m.spin))
    return _about_origin(m.centre, m.mass[:, None] * linear, jnp.einsum("jkl,jl->jk", m.rotation, couple))


def _pushes(model: Model, m: BodyMotions, external):
    """(28): the wrenches on the bodies, from their own axes to the world's."""
    given = body_wrenches(model, external, m.origin.dtype)
    out = lambda x: jnp.einsum("jkl,jl->jk", m.rotation, x)
    return _about_origin(m.origin, out(given[:, 3:]), out(given[:, :3]))


def _joint_wrenches(model: Model, m: BodyMotions, wrench):
    """(29 to 31): the force and the moment in each joint, in link axes, and their part along the joint's axes."""
    t = model.topology
    own = lambda x, rotation=m.rotation: jnp.einsum("ilk,il->ik", rotation, x)
    beyond = jnp.asarray(t.body_ancestors, wrench.dtype) @ wrench
    force = own(beyond[:, 3:])
    moment = own(beyond[:, :3] - jnp.cross(m.origin, beyond[:, 3:]))
    link, spin = t.dof_body, m.columns[:, :3]
    axes = m.rotation[link]
    slide = m.columns[:, 3:] + jnp.cross(spin, m.origin[link])
    along = moment[link] * own(spin, axes) + force[link] * own(slide, axes)  # n_i Delta_i k_i + f_i (1 - Delta_i) k_i
    return force, moment, own_effort(model, jnp.sum(along, axis=1))
