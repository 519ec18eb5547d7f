"""A plane of the second body."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.contact.geometry._contract import AbstractSurface
from jaxdyn.contact.geometry._direction import length_and_direction


class Plane(AbstractSurface):
    """A plane through the origin of its frame; the body fills the half-space behind it.

    The nearest point of a segment parallel to the plane is its midpoint; that of a circle parallel to the plane is on
    the first axis of the circle, x for a `Disc`.
    """

    #: outward normal in axes of the frame, of any length except zero
    normal: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, 0.0, 1.0))

    def distance_and_normal(self, p):
        _, n = length_and_direction(self.normal.astype(p.dtype), axis=2)
        return n @ p, n

    def nearest_on_segment(self, start, end):
        slope = self.distance_and_normal(end - start)[0]
        return start + jnp.where(slope == 0, 0.5, jnp.where(slope > 0, 0, 1)) * (end - start)

    def nearest_on_circle(self, centre, first, second, radius):
        _, n = length_and_direction(self.normal.astype(centre.dtype), axis=2)
        _, u = length_and_direction(jnp.stack([-n @ first, -n @ second]), axis=0)
        return centre + radius * (u[0] * first + u[1] * second)
