"""Each public function of `jaxdyn.kinematics` as `f(model, q, v, a)` for one frame."""

import jax
import jax.numpy as jnp

import jaxdyn.kinematics as jk
from jaxdyn.spatial import Pose, rotation_vector_to_matrix

NAME = "f0"


def _inverse_kinematics_near(m, q, v, a):
    """Inverse kinematics to a target near q, which converges in a few steps."""
    there = jk.frame_pose(m, jax.lax.stop_gradient(q), NAME)
    turn = rotation_vector_to_matrix(0.05 * v[:3])
    return jk.inverse_kinematics(m, NAME, Pose(there.rotation @ turn, there.translation + 0.05 * a[:3]), q).q


def _desired_motion_along(m, q, v):
    """The motion of a frame at the constant velocity v, as a target that is a function of time."""
    motion = jk.desired_frame_motion(lambda t: jk.frame_pose(m, jk.integrate(m, q, t * v), NAME), 0.0)
    return motion.pose.translation, motion.velocity, motion.acceleration


FUNCTIONS = {
    "forward_kinematics": lambda m, q, v, a: jk.forward_kinematics(m, q),
    "frame_pose": lambda m, q, v, a: jk.frame_pose(m, q, NAME),
    "frame_velocity": lambda m, q, v, a: jk.frame_velocity(m, q, v, NAME),
    "frame_acceleration": lambda m, q, v, a: jk.frame_acceleration(m, q, v, a, NAME, reference=jk.WORLD),
    "frame_classical_acceleration": lambda m, q, v, a: jk.frame_classical_acceleration(
        m, q, v, a, NAME, reference=jk.WORLD_ALIGNED
    ),
    "jacobian": lambda m, q, v, a: jk.jacobian(m, q, NAME),
    "jacobian_derivative": lambda m, q, v, a: jk.jacobian_derivative(m, q, v, NAME, reference=jk.WORLD_ALIGNED),
    "total_mass": lambda m, q, v, a: jk.total_mass(m),
    "center_of_mass": lambda m, q, v, a: jk.center_of_mass(m, q),
    "center_of_mass_velocity": lambda m, q, v, a: jk.center_of_mass_velocity(m, q, v),
    "center_of_mass_jacobian": lambda m, q, v, a: jk.center_of_mass_jacobian(m, q),
    "neutral": lambda m, q, v, a: jk.neutral(m),
    "random_configuration": lambda m, q, v, a: jk.random_configuration(m, jax.random.PRNGKey(0)),
    "integrate": lambda m, q, v, a: jk.integrate(m, q, v),
    "difference": lambda m, q, v, a: jk.difference(m, q, jk.integrate(m, q, 0.1 * v)),
    "configuration_velocity": lambda m, q, v, a: jk.configuration_velocity(m, q, v),
    "inverse_kinematics": _inverse_kinematics_near,
    "desired_frame_motion": lambda m, q, v, a: _desired_motion_along(m, q, v),
    "pose_error": lambda m, q, v, a: jk.pose_error(
        jk.frame_pose(m, q, NAME), jk.frame_pose(m, jk.integrate(m, q, 0.1 * v), NAME)
    ),
}


def scalar(names):
    """A scalar: the sum of all outputs of these functions with fixed, unequal weights."""

    def f(*args):
        leaves = [x for name in names for x in jax.tree.leaves(FUNCTIONS[name](*args))]
        weigh = lambda x, k: (x.ravel() * jnp.cos(1.0 + k + jnp.arange(x.size, dtype=x.dtype))).sum()
        return sum(weigh(x, k) for k, x in enumerate(leaves))

    return f
