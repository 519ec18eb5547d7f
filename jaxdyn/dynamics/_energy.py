"""Energies."""

import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.dynamics._inverse import checked_state
from jaxdyn.dynamics._links import link_states, moving_mass
from jaxdyn.model import Model


def kinetic_energy(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, ""]:
    """`T = sum of v_i . I_i v_i / 2`, that of the armatures included; J."""
    q, v = checked_state(model, q, v)
    s = link_states(model, q, v)
    bodies = jnp.einsum("li,lij,lj->", s.velocity, s.inertia, s.velocity)
    return (bodies + jnp.sum(model.properties.armature * v * v)) / 2


def potential_energy(model: Model, q: Float[Array, " nq"]) -> Float[Array, ""]:
    """`U = -sum of m_i g . c_i`, zero with every centre of mass at the world's origin; J.

    Links fixed to the world are not counted, as in Pinocchio.
    """
    (q,) = checked_state(model, q)
    s = link_states(model, q)
    return -jnp.sum(moving_mass(model) * (s.com @ model.gravity))
