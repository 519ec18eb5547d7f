"""Every public function of the kinematics as `f(model, q, v, a)` of one frame."""

import jax
import jax.numpy as jnp

import jaxdyn.kinematics as jk
from jaxdyn.spatial import Pose, rotation_vector_to_matrix

NAME = "f0"


def _solved(m, q, v, a):
    """A target near the start: reached in a few steps."""
    there = jk.frame_pose(m, jax.lax.stop_gradient(q), NAME)
    turn = rotation_vector_to_matrix(0.05 * v[:3])
    return jk.inverse_kinematics(m, NAME, Pose(there.rotation @ turn, there.translation + 0.05 * a[:3]), q).q


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
    "inverse_kinematics": _solved,
}


def scalar(names):
    """A scalar that weighs all outputs of these functions with fixed, unequal numbers."""

    def f(*args):
        leaves = [x for name in names for x in jax.tree.leaves(FUNCTIONS[name](*args))]
        weigh = lambda x, k: (x.ravel() * jnp.cos(1.0 + k + jnp.arange(x.size, dtype=x.dtype))).sum()
        return sum(weigh(x, k) for k, x in enumerate(leaves))

    return f
