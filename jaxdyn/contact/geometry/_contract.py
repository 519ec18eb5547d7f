"""The contracts of a shape and of a surface.

A shape is a set of balls: one, or those with centres on a segment or a circle. A surface has a signed distance. The gap
between both is that of the ball nearest to the surface. So a shape asks a surface for the nearest point of a segment or
of a circle, and a surface knows nothing else of shapes.
"""

import abc

import equinox as eqx

from jaxdyn._types import Array, Float
from jaxdyn.spatial import Pose


class AbstractSurface(eqx.Module):
    """Contract of a surface of the second body of a gap, in axes of the frame to which it is fixed."""

    @abc.abstractmethod
    def distance_and_normal(self, p: Float[Array, "3"]) -> tuple[Float[Array, ""], Float[Array, "3"]]:
        """Signed distance of a point from the surface, m, and its gradient, of unit length.

        The normal of a point at the centre of a surface, where it is not defined, is a constant of the surface.
        """

    @abc.abstractmethod
    def nearest_on_segment(self, start: Float[Array, "3"], end: Float[Array, "3"]) -> Float[Array, "3"]:
        """The point of a segment with the least distance; where several have it, one of them."""

    @abc.abstractmethod
    def nearest_on_circle(
        self, centre: Float[Array, "3"], first: Float[Array, "3"], second: Float[Array, "3"], radius: Float[Array, ""]
    ) -> Float[Array, "3"]:
        """The point of a circle with the least distance; where several have it, one of them.

        `first` and `second` are perpendicular unit vectors in the plane of the circle.
        """


class AbstractShape(eqx.Module):
    """Contract of a shape on the first body of a gap, a set of balls, in axes of the frame to which it is fixed."""

    @abc.abstractmethod
    def nearest_ball(self, surface: AbstractSurface, pose: Pose) -> tuple[Float[Array, "3"], Float[Array, ""]]:
        """Centre and radius of the ball nearest to the surface, in axes of the surface, for the pose of the shape."""
