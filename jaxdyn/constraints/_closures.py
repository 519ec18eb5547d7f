"""Joints that close loops: one frame tied to another, all in axes of the first.

With the origin d and the rotation R of the second frame in the first, residuals are made of components of d, of
the tilt of the z axis and of the turn, so that a multiplier is the force or moment in axes of the first frame
that the first link exerts on the second.
"""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.constraints._contract import AbstractHolonomic, Placed
from jaxdyn.constraints._ends import End, as_end, as_float, relative, tilt, turn


class PointClosure(AbstractHolonomic):
    """Two origins coincide and any rotation is left, as in a ball joint: `d = 0`, three rows."""

    name: str = eqx.field(static=True)
    first: End = eqx.field(converter=as_end)
    second: End = eqx.field(converter=as_end)

    def residual(self, x: Placed):
        return relative(x, self.first, self.second).translation


class WeldClosure(AbstractHolonomic):
    """Two frames coincide: turn and origin, six rows, angular first."""

    name: str = eqx.field(static=True)
    first: End = eqx.field(converter=as_end)
    second: End = eqx.field(converter=as_end)

    def residual(self, x: Placed):
        pose = relative(x, self.first, self.second)
        return jnp.concatenate([turn(pose.rotation), pose.translation])


class RevoluteClosure(AbstractHolonomic):
    """Rotation about the common z axis is left: tilt and origin, five rows.

    Six would lock the loop that it closes.
    """

    name: str = eqx.field(static=True)
    first: End = eqx.field(converter=as_end)
    second: End = eqx.field(converter=as_end)

    def residual(self, x: Placed):
        pose = relative(x, self.first, self.second)
        return jnp.concatenate([tilt(pose.rotation), pose.translation])


class CylindricalClosure(AbstractHolonomic):
    """Rotation about and sliding along the common z axis are left: four rows."""

    name: str = eqx.field(static=True)
    first: End = eqx.field(converter=as_end)
    second: End = eqx.field(converter=as_end)

    def residual(self, x: Placed):
        pose = relative(x, self.first, self.second)
        return jnp.concatenate([tilt(pose.rotation), pose.translation[:2]])


class PrismaticClosure(AbstractHolonomic):
    """Sliding along the common z axis is left: turn and two rows of the origin, five rows."""

    name: str = eqx.field(static=True)
    first: End = eqx.field(converter=as_end)
    second: End = eqx.field(converter=as_end)

    def residual(self, x: Placed):
        pose = relative(x, self.first, self.second)
        return jnp.concatenate([turn(pose.rotation), pose.translation[:2]])


class PlanarClosure(AbstractHolonomic):
    """The xy planes of two frames coincide: tilt and distance, three rows."""

    name: str = eqx.field(static=True)
    first: End = eqx.field(converter=as_end)
    second: End = eqx.field(converter=as_end)

    def residual(self, x: Placed):
        pose = relative(x, self.first, self.second)
        return jnp.concatenate([tilt(pose.rotation), pose.translation[2:]])


class Distance(AbstractHolonomic):
    """A massless rod with ball joints: `(d.d - l^2) / (2 l) = 0`, one row; the multiplier is its thrust."""

    name: str = eqx.field(static=True)
    first: End = eqx.field(converter=as_end)
    second: End = eqx.field(converter=as_end)
    #: m, not zero
    length: Float[Array, ""] = eqx.field(converter=as_float)

    def residual(self, x: Placed):
        d = relative(x, self.first, self.second).translation
        return ((d @ d - self.length**2) / (2 * self.length))[None]
