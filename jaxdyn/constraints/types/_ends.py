"""Frames on links that constraints refer to."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.constraints.contract import Configuration
from jaxdyn.spatial import Pose, matrix_to_quaternion


class End(eqx.Module):
    """A frame fixed to a link, to one of the model's own frames, or to "world"."""

    #: a link, a frame of the model, or "world"
    link: str = eqx.field(static=True)
    #: origin of the frame in axes of the link, m
    translation: Float[Array, "3"] = eqx.field(converter=as_float)
    #: quaternion of the frame in axes of the link, scalar first, of any length except zero
    rotation: Float[Array, "4"] = eqx.field(converter=as_float, default=(1.0, 0.0, 0.0, 0.0))

    def pose(self, x: Configuration) -> Pose:
        """Pose of the frame in the world."""
        return x.pose(self.link) @ Pose.from_quaternion(self.rotation, self.translation)


def as_end(end: End | str | tuple) -> End:
    """Converts the name of a link or frame, `(link, translation)` or `(link, translation, quaternion)` to an `End`."""
    if isinstance(end, End):
        return end
    return End(end, (0.0, 0.0, 0.0)) if isinstance(end, str) else End(*end)


def relative_pose(x: Configuration, first: End, second: End) -> Pose:
    """Pose of the second frame in the first."""
    return first.pose(x).inverse() @ second.pose(x)


def tilt(rotation):
    """Rotation about x and y from the z axis of a reference to the z axis of a frame: two rows.

    Their norm is `2 sin(angle / 2)`, as in `rotation_error`: zero where the axes coincide, and largest where they are
    opposite.
    """
    across, c = jnp.stack([-rotation[1, 2], rotation[0, 2]]), rotation[2, 2]  # of length sin(angle)
    square = across @ across
    parallel = square == 0  # equal or opposite axes
    sine = jnp.sqrt(jnp.where(parallel, 1, square))
    far = jnp.where(parallel, jnp.array([1.0, 0.0], c.dtype), across / sine) * jnp.sqrt(2 * (1 - jnp.minimum(c, 0)))
    near = across * jnp.sqrt(2 / (1 + jnp.maximum(c, 0)))
    return jnp.where(c < 0, far, near)


def rotation_error(rotation):
    """Twice the vector part of the quaternion with positive scalar part: `2 sin(angle / 2)` times the axis.

    It equals the rotation vector to first order, and is zero at the identity only.
    """
    q = matrix_to_quaternion(rotation)
    return 2 * jnp.where(q[0] < 0, -1, 1) * q[1:]
