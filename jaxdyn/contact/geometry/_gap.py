"""Gaps: a shape and a surface, or a user's function."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ShapeError, check_instance
from jaxdyn._numerics import as_function
from jaxdyn.constraints.contract import Configuration
from jaxdyn.constraints.types import End, as_end
from jaxdyn.contact.contract import AbstractGap, Touch
from jaxdyn.contact.geometry._contract import AbstractShape, AbstractSurface


class Gap(AbstractGap):
    """The gap between a shape on one body and a surface of another one or the world.

    Arguments:

    * `first`: frame of the shape, an `End`, the name of a link or frame, or a tuple `(link, translation)` or
      `(link, translation, quaternion)`.
    * `shape`: `Point`, `Sphere`, `Capsule` or `Disc`.
    * `second`: frame of the surface, as `first`; "world" for an obstacle at rest.
    * `surface`: `Plane`, `Sphere`, `Cylinder`, `Capsule`, `ImplicitSurface`, or `Inside` of one of them.

    Radii, lengths, normals and the poses of both frames are leaves. `measure` returns the signed distance, the nearest
    point of the shape, and the normal from the surface to the shape.
    """

    first: End
    shape: AbstractShape
    second: End
    surface: AbstractSurface

    def __init__(
        self, first: End | str | tuple, shape: AbstractShape, second: End | str | tuple, surface: AbstractSurface
    ):
        check_instance("shape", shape, AbstractShape, "pass a Point, Sphere, Capsule or Disc")
        check_instance("surface", surface, AbstractSurface, "pass a Plane, Sphere, Cylinder or another surface")
        self.first, self.shape = as_end(first), shape
        self.second, self.surface = as_end(second), surface

    def measure(self, x: Configuration) -> Touch:
        base = self.second.pose(x)
        centre, radius = self.shape.nearest_ball(self.surface, base.inverse() @ self.first.pose(x))
        distance, normal = self.surface.distance_and_normal(centre)
        return _touch(x, distance - radius, base.apply(centre - radius * normal), base.rotation @ normal)


class GapFunction(AbstractGap):
    """A gap defined by a function of the configuration.

    Arguments: frames `first` and `second` of the bodies, as in `Gap`; `function`, which maps a `Configuration` to
    `(gap, point, normal)` in world axes, with the contract of `Touch`: a distance in m, the point of contact, and the
    unit normal from the second body to the first. It is three times differentiable. A function with parameters should
    be an `equinox.Module`, so that they are leaves.
    """

    first: End = eqx.field(converter=as_end)
    second: End = eqx.field(converter=as_end)
    function: Callable[[Configuration], tuple] = eqx.field(converter=as_function)

    def measure(self, x: Configuration) -> Touch:
        gap, point, normal = self.function(x)
        shapes = jnp.shape(gap), jnp.shape(point), jnp.shape(normal)
        if shapes != ((), (3,), (3,)):
            raise ShapeError(
                f"the function of a gap between {self.first.link!r} and {self.second.link!r} returned a gap, a point "
                f"and a normal of shapes {shapes}, expected ((), (3,), (3,))"
            )
        return _touch(x, gap, point, normal)


def _touch(x: Configuration, gap, point, normal) -> Touch:
    """A `Touch` in the precision of the state."""
    return Touch(*(jnp.asarray(y, x.q.dtype) for y in (gap, point, normal)))
