"""Each public function of `jaxdyn.dynamics` as `f(model, q, v, a, external)`."""

import jax
import jax.numpy as jnp

import jaxdyn as jd

FUNCTIONS = {
    "rnea": lambda m, q, v, a, e: jd.rnea(m, q, v, a, e),
    "mass_matrix": lambda m, q, v, a, e: jd.mass_matrix(m, q),
    "forward_dynamics": lambda m, q, v, a, e: jd.forward_dynamics(m, q, v, a, e),
    "crba_solve": lambda m, q, v, a, e: jd.forward_dynamics(m, q, v, a, e, method=jd.crba_solve),
    "bias_forces": lambda m, q, v, a, e: jd.bias_forces(m, q, v, e),
    "gravity_forces": lambda m, q, v, a, e: jd.gravity_forces(m, q),
    "coriolis_matrix": lambda m, q, v, a, e: jd.coriolis_matrix(m, q, v),
    "christoffel_symbols": lambda m, q, v, a, e: jd.christoffel_symbols(m, q),
    "kinetic_energy": lambda m, q, v, a, e: jd.kinetic_energy(m, q, v),
    "potential_energy": lambda m, q, v, a, e: jd.potential_energy(m, q),
    "momentum": lambda m, q, v, a, e: jd.momentum(m, q, v),
    "centroidal_momentum_matrix": lambda m, q, v, a, e: jd.centroidal_momentum_matrix(m, q),
    "centroidal_momentum_matrix_derivative": lambda m, q, v, a, e: jd.centroidal_momentum_matrix_derivative(m, q, v),
    "inertial_regressor": lambda m, q, v, a, e: jd.inertial_regressor(m, q, v, a),
    "inertial_parameters": lambda m, q, v, a, e: jd.inertial_parameters(m),
    "joint_reactions": lambda m, q, v, a, e: jd.joint_reactions(m, q, v, a, e),
    "passive_forces": lambda m, q, v, a, e: jd.passive_forces(m, q, v),
    "rnea_derivatives": lambda m, q, v, a, e: jd.rnea_derivatives(m, q, v, a, e),
    "forward_dynamics_derivatives": lambda m, q, v, a, e: jd.forward_dynamics_derivatives(m, q, v, a, e),
    "task_space_dynamics": lambda m, q, v, a, e: jd.task_space_dynamics(m, q, v, m.frame_names[0]),
}

# leaves that a function of the whole state cannot depend on
PASSIVE = ("damping", "friction", "friction_velocity", "stiffness", "rest", "limits", "frames")


def scalar(name: str):
    """A scalar: the sum of all outputs of a function with fixed, unequal weights."""

    def f(*args):
        leaves = jax.tree.leaves(FUNCTIONS[name](*args))
        leaves = [x for x in leaves if jnp.issubdtype(x.dtype, jnp.floating)]
        weigh = lambda x, k: (x.ravel() * jnp.cos(1.0 + k + jnp.arange(x.size, dtype=x.dtype))).sum()
        return sum(weigh(x, k) for k, x in enumerate(leaves))

    return f
