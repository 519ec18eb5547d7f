"""All forces on a link: its inertia, reactions of its joints and external wrenches, in link axes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float, Int, Mat3, Scalar, Vec3, Vec6
from jaxdyn.dynamics import joint_reactions
from jaxdyn.model import Links, Model
from jaxdyn.recursion import body_states, check_state, check_wrenches, expand_to_links, link_poses
from jaxdyn.spatial import Inertia, steiner


class LinkMotions(eqx.Module):
    """Poses of links in the world, and their motion relative to free fall in link axes."""

    rotation: Float[Array, "*links 3 3"]
    translation: Float[Array, "*links 3"]
    angular_velocity: Float[Array, "*links 3"]
    angular_acceleration: Float[Array, "*links 3"]
    #: of the origin of the link, minus gravity
    acceleration: Float[Array, "*links 3"]


class Moments(eqx.Module):
    """Moments of a mass distribution about the origin of a link, which are linear in the mass."""

    mass: Scalar
    first: Vec3
    second: Mat3

    @classmethod
    def of(cls, body: Inertia) -> "Moments":
        """Mass, first moment and rotational inertia about the origin."""
        return cls(body.mass, body.mass * body.com, body.inertia + body.mass * steiner(body.com))


class LinkForces(eqx.Module):
    """The forces on one link, as (moment, force) about its origin."""

    motion: LinkMotions
    #: points where joints and the mass beside the beams are attached; the first one is the link's own joint
    points: Float[Array, "points 3"]
    wrenches: Float[Array, "points 6"]
    #: external wrench, which acts at the end of the beams
    external: Vec6

    def with_points(self, points: Float[Array, "more 3"]) -> "LinkForces":
        """The same forces with further attached points, where nothing acts."""
        wrenches = jnp.concatenate([self.wrenches, jnp.zeros((len(points), 6), self.wrenches.dtype)])
        return LinkForces(self.motion, jnp.concatenate([self.points, points]), wrenches, self.external)

    def inertial_wrench(self, mass: Moments) -> Vec6:
        """Minus the rate of momentum of a part of the link, and its weight."""
        return -_momentum_rate(self.motion, mass)


def _momentum_rate(x: LinkMotions, body: Moments) -> Vec6:
    """Newton's and Euler's equations about the origin of the link, accelerations relative to free fall."""
    w, alpha = x.angular_velocity, x.angular_acceleration
    force = body.mass * x.acceleration + jnp.cross(alpha, body.first) + jnp.cross(w, jnp.cross(w, body.first))
    moment = jnp.cross(body.first, x.acceleration) + body.second @ alpha + jnp.cross(w, body.second @ w)
    return jnp.concatenate([moment, force])


def link_motions(model: Model, q, v, a) -> LinkMotions:
    """Motion of all links, those behind fixed joints and on the world included."""
    t = model.topology
    b = body_states(model, q, v, a)
    r, p = link_poses(model, b.rotation, b.translation)
    velocity, acceleration = expand_to_links(t, b.velocity), expand_to_links(t, b.acceleration)
    w, alpha = velocity[:, :3], acceleration[:, :3]
    at_origin = velocity[:, 3:] + jnp.cross(w, p)
    linear = acceleration[:, 3:] + jnp.cross(alpha, p) + jnp.cross(w, at_origin) - model.gravity
    local = lambda x: jnp.einsum("lji,lj->li", r, x)
    return LinkMotions(r, p, local(w), local(alpha), local(linear))


class RobotForces(eqx.Module):
    """Motions, reactions and external wrenches of all links."""

    model: Model
    motions: LinkMotions
    #: wrench that the parent of each link exerts on it, in link axes about its origin
    reactions: Float[Array, "links 6"]
    external: Float[Array, "links 6"]

    def of(self, link: Int[Array, ""], children: Int[Array, " children"], beams: Moments) -> LinkForces:
        """Forces on one link, whose mass beside its `beams` is a lump at its centre of mass."""
        own = jax.tree.map(lambda x: x[link], self.motions)
        origins, wrenches = jax.vmap(lambda child: self._child_reaction(own, child))(children)
        lump, centre = _remainder(jax.tree.map(lambda x: x[link], self.model.links), beams)
        points = jnp.concatenate([jnp.zeros_like(centre)[None], origins, centre[None]])
        rows = [self.reactions[link][None], wrenches, -_momentum_rate(own, lump)[None]]
        return LinkForces(own, points, jnp.concatenate(rows), self.external[link])

    def _child_reaction(self, own: LinkMotions, child: Int[Array, ""]) -> tuple[Vec3, Vec6]:
        """Origin of a child link, and the wrench that it exerts on its parent, in axes of the parent."""
        back = own.rotation.T
        point = back @ (self.motions.translation[child] - own.translation)
        turn = back @ self.motions.rotation[child]
        force = -turn @ self.reactions[child, 3:]
        moment = -turn @ self.reactions[child, :3] + jnp.cross(point, force)
        return point, jnp.concatenate([moment, force])


def robot_forces(model: Model, q, v, a, external=None) -> RobotForces:
    """Motions, reactions and external wrenches of all links in one state."""
    q, v, a = check_state(model, q=q, v=v, a=a)
    reactions = joint_reactions(model, q, v, a, external).wrench
    external = jnp.zeros_like(reactions) if external is None else check_wrenches(model, external)
    return RobotForces(model, link_motions(model, q, v, a), reactions, external)


def _remainder(links: Links, beams: Moments) -> tuple[Moments, Vec3]:
    """The inertia of a link beside its beams, and its centre of mass.

    Where the masses agree up to rounding, the quotient of the first moment has neither value nor derivative; the centre
    of the link takes its place.
    """
    whole = Moments.of(Inertia(links.mass, links.com, (links.inertia + links.inertia.T) / 2))
    lump = jax.tree.map(lambda x, y: x - y, whole, beams)
    threshold = np.sqrt(np.finfo(lump.mass.dtype).eps) * (jnp.abs(whole.mass) + jnp.abs(beams.mass))
    vanishes = jnp.abs(lump.mass) <= threshold
    return lump, jnp.where(vanishes, links.com, lump.first / jnp.where(vanishes, 1, lump.mass))
