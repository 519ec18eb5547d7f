"""Internal forces and moments at the sections of one link, whose beams follow each other."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Bool, Float, Int, Scalar, Vec3, Vec6
from jaxdyn.beams import Beam
from jaxdyn.loads._beams import LinkBeams
from jaxdyn.loads._link_forces import LinkForces, Moments, RobotForces


class LinkSections(eqx.Module):
    """Beams of a link with all forces on the link, attached at places of the beams.

    A rigid bracket connects each attached point with the nearest point of the beams. The part of the link beyond a
    section comprises the outer parts of the beam, the beams that follow, and what is attached to them.
    """

    beams: tuple[Beam, ...]
    forces: LinkForces
    #: beam, and distance from its start, of each attached point
    beam: Int[Array, " points"]
    s: Float[Array, " points"]

    def outer_wrench(self, number: int, s: Scalar, is_inner_side: Bool[Array, ""]) -> Vec6:
        """Force and moment that the outer part exerts on the section s of a beam, in axes of the beam.

        On the inner side of a section, points attached at the section belong to the outer part. Points at the end of
        the beam always do, points at its start never.
        """
        beam = self.beams[number]
        margin = _margin(beam)  # places agree up to rounding, which differs between the parts of a compiled program
        is_closed = (is_inner_side & (s > margin)) | (s > beam.length - margin)
        is_beyond = self.s > jnp.where(is_closed, s - margin, s + margin)
        is_outer = (self.beam > number) | ((self.beam == number) & is_beyond)
        wrench = jnp.where(is_outer[:, None], self.forces.wrenches, 0).sum(0) + self.forces.external
        wrench = wrench + self.forces.inertial_wrench(Moments.of(beam.inertia(s)))
        for outer in self.beams[number + 1 :]:
            wrench = wrench + self.forces.inertial_wrench(Moments.of(outer.inertia()))
        return _to_section(beam, s, wrench)

    def stations(self, number: int, count: int) -> tuple[Float[Array, " sections"], Bool[Array, " sections"]]:
        """Sections of a beam in order, and which of them are inner sides.

        There are `count` sections at equal distances, and both sides of each attached point.
        """
        beam = self.beams[number]
        even = beam.length * jnp.linspace(0, 1, count, dtype=beam.length.dtype)
        ends = jnp.where(self.beam < number, 0, beam.length)
        steps = jnp.where(self.beam == number, self.s, ends)
        s = jnp.concatenate([steps, even, steps])
        is_inner = jnp.arange(s.size) < steps.size
        order = jnp.lexsort((~is_inner, jax.lax.stop_gradient(s)))
        return s[order], is_inner[order]


def _to_section(beam: Beam, s: Scalar, wrench: Vec6) -> Vec6:
    """A wrench (moment, force) about the link's origin as (force, moment) about a section, in axes of the beam."""
    force = wrench[3:]
    moment = wrench[:3] - jnp.cross(axis_point(beam, s), force)
    return jnp.concatenate([force @ beam.placement.rotation, moment @ beam.placement.rotation])


def axis_point(beam: Beam, s: Scalar) -> Vec3:
    """Point of the axis of a beam in link axes."""
    return beam.placement.translation + s * beam.placement.rotation[:, 0]


def attach_forces(state: RobotForces, link: LinkBeams) -> LinkSections:
    """Attaches joints, lump and frames of a link to the nearest points of its beams, in this order."""
    mass = jax.tree.map(lambda *xs: sum(xs[1:], xs[0]), *(Moments.of(beam.inertia()) for beam in link.beams))
    forces = state.of(link.link, link.children, mass).with_points(state.model.frames.translation[link.frames])

    def place(point):
        s = jnp.stack([_nearest(beam, point) for beam in link.beams])
        gaps = jnp.stack([point - axis_point(beam, s[k]) for k, beam in enumerate(link.beams)])
        k = jnp.argmin(jnp.sum(gaps**2, 1))
        return k, s[k]

    number, s = jax.vmap(place)(forces.points)
    return LinkSections(link.beams, forces, number, s)


def _nearest(beam: Beam, point: Vec3) -> Scalar:
    """Distance of the nearest point of the axis from the start, which is exact at both ends in spite of rounding."""
    along = (point - beam.placement.translation) @ beam.placement.rotation[:, 0]
    margin = _margin(beam)
    return jnp.where(along < margin, 0, jnp.where(along > beam.length - margin, beam.length, along))


def _margin(beam: Beam) -> Scalar:
    """Distance between places that are the same, m."""
    return np.sqrt(np.finfo(beam.length.dtype).eps) * beam.length
