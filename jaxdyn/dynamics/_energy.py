"""Kinetic and potential energy."""

import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.dynamics._links import link_states, moving_mass
from jaxdyn.model import Model
from jaxdyn.recursion import check_state


def kinetic_energy(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, ""]:
    """Kinetic energy `T = sum of v_i . I_i v_i / 2`, including the armatures, J."""
    q, v = check_state(model, q=q, v=v)
    s = link_states(model, q, v)
    bodies = jnp.einsum("li,lij,lj->", s.velocity, s.inertia, s.velocity)
    return (bodies + jnp.sum(model.properties.armature * v * v)) / 2


def potential_energy(model: Model, q: Float[Array, " nq"]) -> Float[Array, ""]:
    """Potential energy `U = -sum of m_i g . c_i`, J, zero with every centre of mass at the world's origin.

    Links fixed to the world do not count, as in Pinocchio.
    """
    (q,) = check_state(model, q=q)
    s = link_states(model, q)
    return -jnp.sum(moving_mass(model) * (s.com @ model.gravity))
