"""Rolling without slipping and knife edges: nonholonomic constraints, which no residual g(q, t) expresses."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float, safe_norm, tangent_basis
from jaxdyn._types import Array, Float
from jaxdyn.constraints.contract import AbstractHolonomic, AbstractNonholonomic, Configuration, KinematicState
from jaxdyn.constraints.types._ends import End, as_end


def _plane(c: "RollingBall | RollingDisc | BallOnPlane | DiscOnPlane", x: Configuration):
    """A point of the plane, its unit normal and its tangents, in the world."""
    base = c.base.pose(x)
    normal = c.normal.astype(base.rotation.dtype)
    n = normal / safe_norm(normal)
    along, across = tangent_basis(n)
    return base.translation, base.rotation @ n, jnp.stack([across, -along]) @ base.rotation.T


def _slip(x: KinematicState, body: End, base: End, contact):
    """Slip velocity: that of the body's material point at the contact point, relative to the base."""
    return x.point_velocity(body.link, contact) - x.point_velocity(base.link, contact)


class RollingBall(AbstractNonholonomic):
    """A ball rolls without slipping on a plane fixed to the world or a link: two rows.

    `t_k . (v_c + w x (-r n)) = 0`, with velocities relative to `base`. The multipliers are the tangential forces on the
    ball along the unit vectors `t_1 = n x e / |n x e|`, with e the x axis of `base` (y where the normal is within 26
    degrees of x), and `t_2 = n x t_1`. For a plane with normal z these are the y and -x axes of `base`. The joints, or
    the holonomic constraint `BallOnPlane`, keep the centre at the height r.
    """

    name: str = eqx.field(static=True)
    #: its origin is the centre
    ball: End = eqx.field(converter=as_end)
    radius: Float[Array, ""] = eqx.field(converter=as_float)
    #: of the plane, in axes of `base`, of any length except zero
    normal: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, 0.0, 1.0))
    base: End = eqx.field(converter=as_end, default="world")

    def rate(self, x: KinematicState):
        _, n, tangents = _plane(self, x.configuration)
        contact = self.ball.pose(x.configuration).translation - self.radius * n
        return tangents @ _slip(x, self.ball, self.base, contact)


class RollingDisc(AbstractNonholonomic):
    """A thin disc rolls without slipping on a plane fixed to the world or a link: two rows.

    Its axle is the z axis of `disc`. The contact point is `c - r u`, with u the unit vector along the component of the
    normal across the axle; it is undefined for a disc that lies flat. Multipliers as in `RollingBall`.
    """

    name: str = eqx.field(static=True)
    #: its origin is the centre and its z axis the axle
    disc: End = eqx.field(converter=as_end)
    radius: Float[Array, ""] = eqx.field(converter=as_float)
    #: of the plane, in axes of `base`, of any length except zero
    normal: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, 0.0, 1.0))
    base: End = eqx.field(converter=as_end, default="world")

    def rate(self, x: KinematicState):
        _, n, tangents = _plane(self, x.configuration)
        return tangents @ _slip(x, self.disc, self.base, _lowest_point(self, n, x.configuration))


class DiscOnPlane(AbstractHolonomic):
    """The lowest point of a disc's rim is on the plane through the origin of `base`: one row.

    The multiplier is the normal force on the disc, N.
    """

    name: str = eqx.field(static=True)
    disc: End = eqx.field(converter=as_end)
    radius: Float[Array, ""] = eqx.field(converter=as_float)
    #: of the plane, in axes of `base`, of any length except zero
    normal: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, 0.0, 1.0))
    base: End = eqx.field(converter=as_end, default="world")

    def residual(self, x: Configuration):
        origin, n, _ = _plane(self, x)
        return (n @ (_lowest_point(self, n, x) - origin))[None]


class BallOnPlane(AbstractHolonomic):
    """A ball touches the plane through the origin of `base`: its centre is at the height r, one row.

    The multiplier is the normal force on the ball, N.
    """

    name: str = eqx.field(static=True)
    ball: End = eqx.field(converter=as_end)
    radius: Float[Array, ""] = eqx.field(converter=as_float)
    #: of the plane, in axes of `base`, of any length except zero
    normal: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, 0.0, 1.0))
    base: End = eqx.field(converter=as_end, default="world")

    def residual(self, x: Configuration):
        origin, n, _ = _plane(self, x)
        return (n @ (self.ball.pose(x).translation - origin) - self.radius)[None]


def _lowest_point(disc: RollingDisc | DiscOnPlane, n, x: Configuration):
    pose = disc.disc.pose(x)
    axle = pose.rotation[:, 2]
    up = n - (n @ axle) * axle
    return pose.translation - disc.radius * up / safe_norm(up)


class KnifeEdge(AbstractNonholonomic):
    """A knife edge, such as a skate: the origin of a frame has no velocity along the frame's y axis, one row.

    The velocity is relative to the world or to the link of `base`. The multiplier is the force on the blade along y, N.
    """

    name: str = eqx.field(static=True)
    blade: End = eqx.field(converter=as_end)
    base: End = eqx.field(converter=as_end, default="world")

    def rate(self, x: KinematicState):
        pose = self.blade.pose(x.configuration)
        return (pose.rotation[:, 1] @ _slip(x, self.blade, self.base, pose.translation))[None]
