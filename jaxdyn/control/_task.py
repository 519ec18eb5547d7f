"""Task-space kinematics and dynamics of one frame, and the efforts that accelerate it."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._numerics import safe_norm
from jaxdyn._types import Array, Float
from jaxdyn.control._reference import apply_gain
from jaxdyn.dynamics import bias_forces, mass_matrix
from jaxdyn.kinematics import WORLD_ALIGNED, difference, frame_pose, jacobian, jacobian_derivative
from jaxdyn.model import Model
from jaxdyn.spatial import Pose

#: rows of a task that controls the orientation and position of a frame
POSE = np.eye(6)
#: rows of a task that controls the position only
POSITION = np.eye(6)[3:]


class Task(NamedTuple):
    """Kinematics and dynamics of a task with the acceleration `J a + drift`."""

    pose: Pose
    #: (6,), angular and linear in world axes
    velocity: Float[Array, "6"]
    #: Jacobian of the task
    jacobian: Float[Array, "m nv"]
    #: `rows @ dJ/dt v`
    drift: Float[Array, " m"]
    #: Jacobian of the frame
    full: Float[Array, "6 nv"]
    #: Cholesky factor of the mass matrix, for `cho_solve`
    mass: tuple[Float[Array, "nv nv"], bool]
    #: Cholesky factor of `J M^-1 J^T + damping`
    mobility: tuple[Float[Array, "m m"], bool]
    bias: Float[Array, " nv"]

    def efforts(self, acceleration, null_space_effort):
        """`h + J^T Lambda (xddot - drift) + N^T tau_0` with the null-space projector `N^T = 1 - J^T Lambda J M^-1`."""
        deficit = acceleration - self.drift - self.jacobian @ cho_solve(self.mass, null_space_effort)
        return self.bias + self.jacobian.T @ cho_solve(self.mobility, deficit) + null_space_effort


def evaluate_task(model: Model, q, v, frame: str, rows, damping) -> Task:
    """Evaluates the task `rows @ (angular, linear)` of a frame's motion, in world axes.

    `damping` is relative to the mean diagonal entry of `J M^-1 J^T`. It bounds the efforts at singular poses and is at
    least a multiple of the rounding error.
    """
    full = jacobian(model, q, frame, reference=WORLD_ALIGNED)
    rate = jacobian_derivative(model, q, v, frame, reference=WORLD_ALIGNED) @ v
    rows = jnp.asarray(rows, full.dtype)
    j, m = rows @ full, rows.shape[0]
    mass = cho_factor(mass_matrix(model, q))
    mobility = j @ cho_solve(mass, j.T)
    minimum = 50 * m * float(jnp.finfo(full.dtype).eps)
    scale = jnp.maximum(damping, minimum) * jnp.trace(mobility) / m
    scale = jnp.where(scale > 0, scale, 1)
    factor = cho_factor((mobility + mobility.T) / 2 + scale * jnp.eye(m, dtype=full.dtype))
    return Task(frame_pose(model, q, frame), full @ v, j, rows @ rate, full, mass, factor, bias_forces(model, q, v))


def posture_effort(model: Model, posture, kp, kd, q, v):
    """`kp (posture - q) - kd v`, without the first term if `posture` is None."""
    spring = 0 if posture is None else apply_gain(kp, difference(model, q, posture))
    return spring - apply_gain(kd, v)


def normalise(x):
    """The unit vector along x, or zero, and the norm of x."""
    size = safe_norm(x)
    return x / jnp.where(size > 0, size, 1), size
