"""The desired motion of a frame, and its deviation from the actual unit."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._numerics import as_float
from jaxdyn._types import Vec6
from jaxdyn.spatial import Pose, matrix_to_rotation_vector


class DesiredFrameMotion(NamedTuple):
    """Desired pose, velocity and acceleration of a frame, in world axes: angular, then of the origin."""

    pose: Pose
    #: rad/s and m/s
    velocity: Vec6
    #: rad/s^2 and m/s^2
    acceleration: Vec6


def desired_frame_motion(target: Pose | Callable[[jax.Array], Pose], t: ArrayLike) -> DesiredFrameMotion:
    """Desired motion at time t (s) for a target that is a constant `Pose` or a function `t -> Pose`.

    A function is differentiated twice by forward mode.
    """
    if isinstance(target, Pose):
        return DesiredFrameMotion(target, jnp.zeros(6), jnp.zeros(6))
    t = as_float(t)
    unit = jnp.ones_like(t)

    def velocity(t):
        pose, rate = jax.jvp(target, (t,), (unit,))
        spin = rate.rotation @ pose.rotation.T
        w = jnp.stack([spin[2, 1], spin[0, 2], spin[1, 0]])
        return jnp.concatenate([w, rate.translation])

    return DesiredFrameMotion(target(t), *jax.jvp(velocity, (t,), (unit,)))


def pose_error(pose: Pose, desired: Pose) -> Vec6:
    """Deviation `(log(R_d R^T), p_d - p)` of a pose from the desired unit, in world axes, rad and m."""
    turn = matrix_to_rotation_vector(desired.rotation @ pose.rotation.T)
    return jnp.concatenate([turn, desired.translation - pose.translation])
