"""The contracts of a shape and of a surface.

A shape is a sphere-swept volume: a sphere whose centre is a point, or sweeps a segment or a circle. A surface has a
signed distance function. The gap is the least signed distance of the centres, minus the radius. A shape therefore asks
the surface for the nearest point of a segment or a circle, and surfaces do not depend on shapes.
"""

import abc

import equinox as eqx

from jaxdyn._types import Array, Float
from jaxdyn.spatial import Pose


class AbstractSurface(eqx.Module):
    """Contract of a surface on the second body of a gap, in the axes of its frame."""

    @abc.abstractmethod
    def distance_and_normal(self, p: Float[Array, "3"]) -> tuple[Float[Array, ""], Float[Array, "3"]]:
        """Signed distance of a point from the surface, m, and its gradient, the unit normal.

        Where the gradient is not defined, as at the centre of a sphere, the normal is a constant of the surface.
        """

    @abc.abstractmethod
    def nearest_on_segment(self, start: Float[Array, "3"], end: Float[Array, "3"]) -> Float[Array, "3"]:
        """The point of a segment with the least signed distance; if it is not unique, one of them."""

    @abc.abstractmethod
    def nearest_on_circle(
        self, centre: Float[Array, "3"], first: Float[Array, "3"], second: Float[Array, "3"], radius: Float[Array, ""]
    ) -> Float[Array, "3"]:
        """The point of a circle with the least signed distance; if it is not unique, one of them.

        `first` and `second` are perpendicular unit vectors in the plane of the circle.
        """


class AbstractShape(eqx.Module):
    """Contract of a shape on the first body of a gap, a sphere-swept volume in the axes of its frame."""

    @abc.abstractmethod
    def nearest_ball(self, surface: AbstractSurface, pose: Pose) -> tuple[Float[Array, "3"], Float[Array, ""]]:
        """Centre, in the frame of the surface, and radius of the sphere nearest to it, for the shape's pose there."""
