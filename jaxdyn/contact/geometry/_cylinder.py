"""An infinite cylinder of the second body."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.contact.geometry._contract import AbstractSurface
from jaxdyn.contact.geometry._direction import length_and_direction
from jaxdyn.contact.geometry._search import circle, nearest_point
from jaxdyn.contact.geometry._segments import nearest_parameter


class Cylinder(AbstractSurface):
    """An infinite cylinder about the z axis of its frame.

    The normal on its axis is the x axis of its frame. The nearest point of a segment parallel to the axis is its
    midpoint.
    """

    #: m
    radius: Float[Array, ""] = eqx.field(converter=as_float)

    def distance_and_normal(self, p):
        length, n = length_and_direction(p[:2], axis=0)
        return length - self.radius.astype(p.dtype), jnp.append(n, 0)

    def nearest_on_segment(self, start, end):
        along = end - start
        return start + nearest_parameter(start[:2], along[:2], along @ along) * along

    def nearest_on_circle(self, centre, first, second, radius):
        return nearest_point(self, circle(centre, first, second, radius))
