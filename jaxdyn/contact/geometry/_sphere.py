"""A sphere, on the first body or the second."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.contact.geometry._contract import AbstractShape, AbstractSurface
from jaxdyn.contact.geometry._direction import length_and_direction
from jaxdyn.contact.geometry._segments import nearest_parameter
from jaxdyn.spatial import Pose


class Sphere(AbstractShape, AbstractSurface):
    """A sphere about the origin of its frame, a shape of the first body or a surface of the second.

    The normal at its centre is the z axis of its frame. If the centre is on the axis of a circle, the nearest point of
    the circle is on the first axis of the circle, x for a `Disc`.
    """

    #: m
    radius: Float[Array, ""] = eqx.field(converter=as_float)

    def nearest_ball(self, surface: AbstractSurface, pose: Pose):
        return pose.translation, self.radius.astype(pose.translation.dtype)

    def distance_and_normal(self, p):
        length, n = length_and_direction(p, axis=2)
        return length - self.radius.astype(p.dtype), n

    def nearest_on_segment(self, start, end):
        along = end - start
        return start + nearest_parameter(start, along, 0) * along

    def nearest_on_circle(self, centre, first, second, radius):
        _, u = length_and_direction(jnp.stack([-centre @ first, -centre @ second]), axis=0)
        return centre + radius * (u[0] * first + u[1] * second)
