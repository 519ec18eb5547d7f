"""The thin rim of a disc of the first body."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.contact.geometry._contract import AbstractShape, AbstractSurface
from jaxdyn.spatial import Pose


class Disc(AbstractShape):
    """The thin rim of a disc, whose axle is the z axis of its frame: a wheel, a coin, the edge of a peg.

    If all points of the rim are at the same distance, the nearest point is the one on the x axis of its frame.
    """

    #: m
    radius: Float[Array, ""] = eqx.field(converter=as_float)

    def nearest_ball(self, surface: AbstractSurface, pose: Pose):
        x, y = pose.rotation[:, 0], pose.rotation[:, 1]
        point = surface.nearest_on_circle(pose.translation, x, y, self.radius.astype(x.dtype))
        return point, jnp.zeros_like(point[0])
