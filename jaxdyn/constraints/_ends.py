"""Frames on links between which constraints act."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.constraints._contract import Placed
from jaxdyn.spatial import Pose, matrix_to_quaternion


def as_float(x):
    """A floating-point array."""
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.result_type(float))


def as_function(f: Any) -> Any:
    """A function as a pytree: its own leaves if it has any, otherwise none."""
    return f if f is None or isinstance(f, eqx.Module | jax.tree_util.Partial) else jax.tree_util.Partial(f)


class End(eqx.Module):
    """A frame fixed to a link, to one of the model's own frames, or to "world"."""

    #: a link, a frame of the model, or "world"
    link: str = eqx.field(static=True)
    #: origin in its axes, m
    translation: Float[Array, "3"] = eqx.field(converter=as_float)
    #: quaternion of the frame in these, scalar first, of any length but zero
    rotation: Float[Array, "4"] = eqx.field(converter=as_float, default=(1.0, 0.0, 0.0, 0.0))

    def pose(self, x: Placed) -> Pose:
        """Pose of the frame in the world."""
        return x.pose(self.link) @ Pose.from_quaternion(self.rotation, self.translation)


def as_end(end: Any) -> End:
    """An end out of `(link, translation)` or `(link, translation, quaternion)`, or the name of a link or frame."""
    if isinstance(end, End):
        return end
    return End(end, (0.0, 0.0, 0.0)) if isinstance(end, str) else End(*end)


def relative(x: Placed, first: End, second: End) -> Pose:
    """Pose of the second frame in the first."""
    return first.pose(x).inverse() @ second.pose(x)


def tilt(rotation):
    """The turn about x and y that takes the z axis of a frame to that of a reference: two rows.

    Their length is `2 sin(angle / 2)`, that of `turn`: it vanishes where the axes point the same way, and is largest
    where they are opposed.
    """
    across, c = jnp.stack([-rotation[1, 2], rotation[0, 2]]), rotation[2, 2]  # of length sin(angle)
    square = across @ across
    opposed = square == 0  # or equal: then the first branch is meant
    sine = jnp.sqrt(jnp.where(opposed, 1, square))
    far = jnp.where(opposed, jnp.array([1.0, 0.0], c.dtype), across / sine) * jnp.sqrt(2 * (1 - jnp.minimum(c, 0)))
    near = across * jnp.sqrt(2 / (1 + jnp.maximum(c, 0)))
    return jnp.where(c < 0, far, near)


def turn(rotation):
    """Twice the vector part of the nearer quaternion: about the rotation vector, zero at the identity only."""
    q = matrix_to_quaternion(rotation)
    return 2 * jnp.where(q[0] < 0, -1, 1) * q[1:]
