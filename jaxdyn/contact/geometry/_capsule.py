"""A capsule, on the first body or the second."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.contact.geometry._contract import AbstractShape, AbstractSurface
from jaxdyn.contact.geometry._direction import length_and_direction
from jaxdyn.contact.geometry._search import circle, nearest_point
from jaxdyn.contact.geometry._segments import nearest_between_segments
from jaxdyn.spatial import Pose


class Capsule(AbstractShape, AbstractSurface):
    """A cylinder with hemispherical ends about the z axis of its frame, a shape or a surface.

    As a surface, its normal on its axis is the x axis of its frame. The nearest point of two parallel capsules is the
    midpoint of the segment of nearest points. A capsule as a shape that lies on a plane touches it at both ends: use
    `capsule_ends`.
    """

    #: of the cylinder and the hemispheres, m
    radius: Float[Array, ""] = eqx.field(converter=as_float)
    #: of the cylinder, without the hemispheres, m
    length: Float[Array, ""] = eqx.field(converter=as_float)

    def nearest_ball(self, surface: AbstractSurface, pose: Pose):
        half = pose.rotation[:, 2] * self.length.astype(pose.rotation.dtype) / 2
        centre = surface.nearest_on_segment(pose.translation - half, pose.translation + half)
        return centre, self.radius.astype(centre.dtype)

    def distance_and_normal(self, p):
        half = self.length.astype(p.dtype) / 2
        z = jnp.where(p[2] > half, p[2] - half, jnp.where(p[2] < -half, p[2] + half, 0))
        length, n = length_and_direction(jnp.stack([p[0], p[1], z]), axis=0)
        return length - self.radius.astype(p.dtype), n

    def nearest_on_segment(self, start, end):
        axis = jnp.zeros_like(start).at[2].set(self.length.astype(start.dtype))
        return start + nearest_between_segments(start, end - start, -axis / 2, axis) * (end - start)

    def nearest_on_circle(self, centre, first, second, radius):
        return nearest_point(self, circle(centre, first, second, radius))
