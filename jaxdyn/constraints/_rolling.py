"""Rolling and skating: constraints on velocities that no function of the configuration expresses."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import safe_norm
from jaxdyn._types import Array, Float
from jaxdyn.constraints._contract import AbstractHolonomic, AbstractNonholonomic, Moving, Placed
from jaxdyn.constraints._ends import End, as_end, as_float


def _tangents(normal):
    """The normal at length one, and two directions across it."""
    n = normal / safe_norm(normal)
    other = jnp.where(jnp.abs(n[0]) < 0.9, jnp.array([1.0, 0, 0], n.dtype), jnp.array([0, 1.0, 0], n.dtype))
    first = jnp.cross(n, other)
    first = first / safe_norm(first)
    return n, jnp.stack([first, jnp.cross(n, first)])


def _plane(c: "RollingBall | RollingDisc | BallOnPlane | DiscOnPlane", x: Placed):
    """A point of the plane, its normal and its tangents, in the world."""
    base = c.base.pose(x)
    n, tangents = _tangents(c.normal.astype(base.rotation.dtype))
    return base.translation, base.rotation @ n, tangents @ base.rotation.T


def _slip(x: Moving, body: End, base: End, contact):
    """Velocity of a body's point at the contact, as seen from the base."""
    return x.point_velocity(body.link, contact) - x.point_velocity(base.link, contact)


class RollingBall(AbstractNonholonomic):
    """A ball rolls without slipping on a plane with `normal`, of the world or a link: two rows.

    `t_k . (v_c + w x (-r n)) = 0`, velocities as seen from `base`. Multipliers are the forces on the ball along
    `t_1 = n x e` at length one, with e the x axis of `base` (y where the normal is within 26 degrees of x), and
    `t_2 = n x t_1`; for a plane with `normal` z these are the y and the -x axis of `base`. That the centre stays at the
    height r is another constraint, `BallOnPlane`, or is seen to by the joints.
    """

    name: str = eqx.field(static=True)
    #: its origin is the centre
    ball: End = eqx.field(converter=as_end)
    radius: Float[Array, ""] = eqx.field(converter=as_float)
    #: of the plane, in axes of `base`, of any length but zero
    normal: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, 0.0, 1.0))
    base: End = eqx.field(converter=as_end, default="world")

    def rate(self, x: Moving):
        _, n, tangents = _plane(self, x.placed)
        contact = self.ball.pose(x.placed).translation - self.radius * n
        return tangents @ _slip(x, self.ball, self.base, contact)


class RollingDisc(AbstractNonholonomic):
    """A thin disc rolls without slipping on a plane with `normal`, of the world or a link: two rows.

    Its axle is the z axis of `disc`. The lowest point of the rim is `c - r u`, with u the normal less its part
    along the axle, at length one; lying flat the disc has none. Multipliers as in `RollingBall`.
    """

    name: str = eqx.field(static=True)
    #: its origin is the centre and its z axis the axle
    disc: End = eqx.field(converter=as_end)
    radius: Float[Array, ""] = eqx.field(converter=as_float)
    #: of the plane, in axes of `base`, of any length but zero
    normal: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, 0.0, 1.0))
    base: End = eqx.field(converter=as_end, default="world")

    def rate(self, x: Moving):
        _, n, tangents = _plane(self, x.placed)
        return tangents @ _slip(x, self.disc, self.base, _lowest(self, n, x.placed))


class DiscOnPlane(AbstractHolonomic):
    """The lowest point of a disc's rim is on the plane with `normal` through the origin of `base`: one row.

    The multiplier is the normal force on the disc, N.
    """

    name: str = eqx.field(static=True)
    disc: End = eqx.field(converter=as_end)
    radius: Float[Array, ""] = eqx.field(converter=as_float)
    #: of the plane, in axes of `base`, of any length but zero
    normal: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, 0.0, 1.0))
    base: End = eqx.field(converter=as_end, default="world")

    def residual(self, x: Placed):
        origin, n, _ = _plane(self, x)
        return (n @ (_lowest(self, n, x) - origin))[None]


class BallOnPlane(AbstractHolonomic):
    """The centre of a ball is at its radius above the plane with `normal` through the origin of `base`: one row.

    The multiplier is the normal force on the ball, N.
    """

    name: str = eqx.field(static=True)
    ball: End = eqx.field(converter=as_end)
    radius: Float[Array, ""] = eqx.field(converter=as_float)
    #: of the plane, in axes of `base`, of any length but zero
    normal: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, 0.0, 1.0))
    base: End = eqx.field(converter=as_end, default="world")

    def residual(self, x: Placed):
        origin, n, _ = _plane(self, x)
        return (n @ (self.ball.pose(x).translation - origin) - self.radius)[None]


def _lowest(disc: RollingDisc | DiscOnPlane, n, x: Placed):
    pose = disc.disc.pose(x)
    axle = pose.rotation[:, 2]
    up = n - (n @ axle) * axle
    return pose.translation - disc.radius * up / safe_norm(up)


class KnifeEdge(AbstractNonholonomic):
    """The origin of a frame does not move along the frame's y axis, like a skate or a wheel that is free to turn.

    It slides on the world, or on the link of `base`. The multiplier is the force on the blade along y, N.
    """

    name: str = eqx.field(static=True)
    blade: End = eqx.field(converter=as_end)
    base: End = eqx.field(converter=as_end, default="world")

    def rate(self, x: Moving):
        pose = self.blade.pose(x.placed)
        return (pose.rotation[:, 1] @ _slip(x, self.blade, self.base, pose.translation))[None]
