"""Rolling and skating: constraints on velocities that no function of the configuration expresses."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import safe_norm
from jaxdyn._types import Array, Float
from jaxdyn.constraints._contract import AbstractHolonomic, AbstractNonholonomic, Moving, Placed
from jaxdyn.constraints._ends import End, as_end, as_float


def _tangents(normal):
    """Two directions across a normal, in a frame that turns with it."""
    n = normal / safe_norm(normal)
    other = jnp.where(jnp.abs(n[0]) < 0.9, jnp.array([1.0, 0, 0], n.dtype), jnp.array([0, 1.0, 0], n.dtype))
    first = jnp.cross(n, other)
    first = first / safe_norm(first)
    return n, jnp.stack([first, jnp.cross(n, first)])


class RollingBall(AbstractNonholonomic):
    """A ball rolls without slipping on the plane with `normal` through the world: two rows.

    `t_k . (v_c + w x (-r n)) = 0` for the tangents t_k. That its centre stays at the height r is another
    constraint, `BallOnPlane`, or is seen to by the joints.
    """

    name: str = eqx.field(static=True)
    #: its origin is the centre
    ball: End = eqx.field(converter=as_end)
    radius: Float[Array, ""] = eqx.field(converter=as_float)
    normal: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, 0.0, 1.0))

    def rate(self, x: Moving):
        n, tangents = _tangents(self.normal)
        contact = self.ball.pose(x.placed).translation - self.radius * n
        return tangents @ x.point_velocity(self.ball.link, contact)


class RollingDisc(AbstractNonholonomic):
    """A thin disc rolls without slipping on the plane with `normal`: two rows.

    Its axle is the z axis of `disc`. The lowest point of the rim is `c - r u`, with u the normal less its part
    along the axle, at length one; lying flat the disc has none.
    """

    name: str = eqx.field(static=True)
    #: its origin is the centre and its z axis the axle
    disc: End = eqx.field(converter=as_end)
    radius: Float[Array, ""] = eqx.field(converter=as_float)
    normal: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, 0.0, 1.0))

    def rate(self, x: Moving):
        _, tangents = _tangents(self.normal)
        return tangents @ x.point_velocity(self.disc.link, _lowest(self, x.placed))


class DiscOnPlane(AbstractHolonomic):
    """The lowest point of a disc's rim is on the plane with `normal` through the world's origin: one row."""

    name: str = eqx.field(static=True)
    disc: End = eqx.field(converter=as_end)
    radius: Float[Array, ""] = eqx.field(converter=as_float)
    normal: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, 0.0, 1.0))

    def residual(self, x: Placed):
        n, _ = _tangents(self.normal)
        return (n @ _lowest(self, x))[None]


class BallOnPlane(AbstractHolonomic):
    """The centre of a ball is at its radius above the plane with `normal` through the world's origin: one row."""

    name: str = eqx.field(static=True)
    ball: End = eqx.field(converter=as_end)
    radius: Float[Array, ""] = eqx.field(converter=as_float)
    normal: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, 0.0, 1.0))

    def residual(self, x: Placed):
        n, _ = _tangents(self.normal)
        return (n @ self.ball.pose(x).translation - self.radius)[None]


def _lowest(disc: RollingDisc | DiscOnPlane, x: Placed):
    n, _ = _tangents(disc.normal)
    pose = disc.disc.pose(x)
    axle = pose.rotation[:, 2]
    up = n - (n @ axle) * axle
    return pose.translation - disc.radius * up / safe_norm(up)


class KnifeEdge(AbstractNonholonomic):
    """The origin of a frame does not move along the frame's y axis, like a skate or a wheel that is free to turn."""

    name: str = eqx.field(static=True)
    blade: End = eqx.field(converter=as_end)

    def rate(self, x: Moving):
        pose = self.blade.pose(x.placed)
        return (pose.rotation[:, 1] @ x.point_velocity(self.blade.link, pose.translation))[None]
