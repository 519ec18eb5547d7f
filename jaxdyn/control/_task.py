"""The motion of one frame, wanted and actual, and the efforts that accelerate it."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._numerics import safe_norm
from jaxdyn.control._reference import as_float, product
from jaxdyn.dynamics import bias_forces, mass_matrix
from jaxdyn.kinematics import WORLD_ALIGNED, difference, frame_pose, jacobian, jacobian_derivative
from jaxdyn.model import Model
from jaxdyn.spatial import Pose, matrix_to_rotation_vector

#: rows of a task that holds orientation and position of a frame
POSE = np.eye(6)
#: rows of a task that holds its position alone
POSITION = np.eye(6)[3:]


class Wanted(NamedTuple):
    """Pose of a frame, its velocity and its acceleration: angular, then that of its origin, in world axes."""

    pose: Pose
    velocity: Any
    acceleration: Any


def wanted(target: Any, t) -> Wanted:
    """What a target asks for at time t (s): a `Pose` to stay at, or a function `t -> Pose`, derived by forward mode."""
    if isinstance(target, Pose):
        return Wanted(target, jnp.zeros(6), jnp.zeros(6))
    t = as_float(t)
    one = jnp.ones_like(t)

    def velocity(t):
        pose, rate = jax.jvp(target, (t,), (one,))
        turning = rate.rotation @ pose.rotation.T
        w = jnp.stack([turning[2, 1], turning[0, 2], turning[1, 0]])
        return jnp.concatenate([w, rate.translation])

    return Wanted(target(t), *jax.jvp(velocity, (t,), (one,)))


def pose_error(pose: Pose, want: Pose):
    """`(log(R_d R^T), p_d - p)` in world axes, rad and m."""
    turn = matrix_to_rotation_vector(want.rotation @ pose.rotation.T)
    return jnp.concatenate([turn, want.translation - pose.translation])


class Task(NamedTuple):
    """A frame in motion: `J a + drift` is the acceleration of the rows chosen."""

    pose: Pose
    #: (6,), angular and linear in world axes
    velocity: Any
    #: rows of the task, (m, nv)
    jacobian: Any
    drift: Any
    #: the whole Jacobian, (6, nv)
    full: Any
    #: factors of the mass matrix
    mass: Any
    #: factors of `J M^-1 J^T + damping`
    mobility: Any
    bias: Any

    def efforts(self, acceleration, rest):
        """`h + J^T Lambda (xddot - drift) + N^T rest`, where rest moves no row: `N^T = 1 - J^T Lambda J M^-1`."""
        pull = acceleration - self.drift - self.jacobian @ cho_solve(self.mass, rest)
        return self.bias + self.jacobian.T @ cho_solve(self.mobility, pull) + rest


def task(model: Model, q, v, frame: str, rows, damping) -> Task:
    """The rows `rows @ (angular, linear)` of a frame's motion, in world axes.

    `damping` is relative to the mean of the diagonal of `J M^-1 J^T`; it bounds the efforts at singular poses,
    and is at least some units of rounding.
    """
    full = jacobian(model, q, frame, reference=WORLD_ALIGNED)
    rate = jacobian_derivative(model, q, v, frame, reference=WORLD_ALIGNED) @ v
    rows = jnp.asarray(rows, full.dtype)
    j, m = rows @ full, rows.shape[0]
    mass = cho_factor(mass_matrix(model, q))
    mobility = j @ cho_solve(mass, j.T)
    least = 50 * m * float(jnp.finfo(full.dtype).eps)
    scale = jnp.maximum(damping, least) * jnp.trace(mobility) / m
    scale = jnp.where(scale > 0, scale, 1)
    factor = cho_factor((mobility + mobility.T) / 2 + scale * jnp.eye(m, dtype=full.dtype))
    return Task(frame_pose(model, q, frame), full @ v, j, rows @ rate, full, mass, factor, bias_forces(model, q, v))


def posture_effort(model: Model, posture, kp, kd, q, v):
    """Spring and damper towards a configuration, or a damper alone if there is none."""
    pull = 0 if posture is None else product(kp, difference(model, q, posture))
    return pull - product(kd, v)


def unit(x):
    """A vector with length one, or zero."""
    size = safe_norm(x)
    return x / jnp.where(size > 0, size, 1), size
