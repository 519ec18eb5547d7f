"""Coordinates of a pose: position and angles, or depth, roll and deviations of a peg in a hole."""

import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.constraints.types import tilt
from jaxdyn.spatial import Pose


def pose_coordinates(pose: Pose) -> Float[Array, "6"]:
    """Position and z-y-x angles of a pose: (x, y, z, yaw, pitch, roll), m and rad.

    `R = Rz(yaw) Ry(pitch) Rx(roll)`. At a pitch of 90 degrees the yaw is set to zero. Use the angles for output and as
    free coordinates; constrain tilts as in `peg_coordinates`.
    """
    r = pose.rotation
    cosine2 = r[0, 0] ** 2 + r[1, 0] ** 2
    is_singular = cosine2 < jnp.finfo(r.dtype).tiny ** 0.25
    cosine = jnp.sqrt(jnp.where(is_singular, 1, cosine2))
    one, zero = jnp.ones_like(cosine), jnp.zeros_like(cosine)
    choose = lambda a, b: jnp.where(is_singular, a, b)
    yaw = jnp.arctan2(choose(zero, r[1, 0]), choose(one, r[0, 0]))
    pitch = jnp.arctan2(-r[2, 0], choose(zero, cosine))
    roll = jnp.arctan2(choose(-r[1, 2], r[2, 1]), choose(r[1, 1], r[2, 2]))
    return jnp.append(pose.translation, jnp.stack([yaw, pitch, roll]))


def peg_coordinates(pose: Pose) -> Float[Array, "6"]:
    """Coordinates of a peg along the z axis of a hole: (z, roll, x, y, tilt about x, tilt about y), m and rad.

    The roll is the angle about z, zero where the peg is upside down. The norm of the two tilts is `2 sin(angle / 2)` of
    the angle between both z axes. The last four are the constrained coordinates of a peg in a hole.
    """
    r, p = pose.rotation, pose.translation
    sine, cosine = r[1, 0] - r[0, 1], r[0, 0] + r[1, 1]
    is_singular = sine**2 + cosine**2 < jnp.finfo(r.dtype).tiny ** 0.25
    roll = jnp.arctan2(jnp.where(is_singular, 0, sine), jnp.where(is_singular, 1, cosine))
    return jnp.concatenate([jnp.stack([p[2], roll, p[0], p[1]]), tilt(r)])
