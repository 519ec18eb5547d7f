"""Poses as `(quaternion, translation)`, from the forms in which users give them."""

import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._numerics import namespace
from jaxdyn.spatial import matrix_to_quaternion


def placement(translation=(0.0, 0.0, 0.0), *, rotation=None, quaternion=None, rpy=None):
    """A pose as `(quaternion, translation)`, with the rotation in at most one of three forms."""
    given = [x for x in (rotation, quaternion, rpy) if x is not None]
    if len(given) > 1:
        raise ModelError("several rotations are given; give at most one of rotation (a matrix), quaternion and rpy")
    if rpy is not None:
        quaternion = _rpy_quaternion(rpy)
    if rotation is not None:
        quaternion = matrix_to_quaternion(jnp.asarray(rotation, float))
    if quaternion is None:
        quaternion = np.array([1.0, 0, 0, 0])
    return quaternion, translation


def _rpy_quaternion(rpy):
    """`q_yaw q_pitch q_roll`, scalar first."""
    xp = namespace(rpy)
    half = xp.asarray(rpy, float) / 2
    with np.errstate(invalid="ignore"):  # non-finite numbers are reported by name in `build`
        (cr, cp, cy), (sr, sp, sy) = xp.cos(half), xp.sin(half)
    return xp.stack(
        [
            cy * cp * cr + sy * sp * sr,
            cy * cp * sr - sy * sp * cr,
            cy * sp * cr + sy * cp * sr,
            sy * cp * cr - cy * sp * sr,
        ]
    )


def as_pose_pair(pose):
    """A pose given as a translation or as a pair (quaternion, translation)."""
    if isinstance(pose, tuple) and len(pose) == 2:
        return pose
    return np.array([1.0, 0, 0, 0]), pose
