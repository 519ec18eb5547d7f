"""Momentum about the world's origin and about the centre of mass."""

import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.dynamics._links import link_states, moving_mass
from jaxdyn.kinematics import configuration_velocity
from jaxdyn.model import Model
from jaxdyn.recursion import check_state, dof_carries_link, reduce_columns


def momentum(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, "6"]:
    """Momentum `sum of I_i v_i`: angular about the world's origin, then linear, in world axes (kg m^2/s, kg m/s)."""
    q, v = check_state(model, q=q, v=v)
    s = link_states(model, q, v)
    return jnp.einsum("lij,lj->i", s.inertia, s.velocity)


def centroidal_momentum_matrix(model: Model, q: Float[Array, " nq"]) -> Float[Array, "6 nv"]:
    """Centroidal momentum matrix `A(q)`: `A v` is the momentum about the centre of mass, in world axes.

    The centre is that of `center_of_mass`, without links fixed to the world (Orin and Goswami 2008).
    """
    (q,) = check_state(model, q=q)
    s = link_states(model, q)
    carries = jnp.asarray(dof_carries_link(model), q.dtype)
    composite = jnp.einsum("kl,lij->kij", carries, s.inertia)
    about_origin = jnp.einsum("kij,kj->ik", composite, s.bodies.subspace)
    mass = moving_mass(model)
    total = jnp.sum(mass)
    com = (mass @ s.com) / jnp.where(total == 0, 1, total)
    angular = about_origin[:3] - jnp.cross(com, about_origin[3:], axis=0) if model.nv else about_origin[:3]
    return reduce_columns(model, jnp.concatenate([angular, about_origin[3:]]))


def centroidal_momentum_matrix_derivative(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, "6 nv"]:
    """`dA/dt` along the motion: the rate of the centroidal momentum is `A a + (dA/dt) v`."""
    q, v = check_state(model, q=q, v=v)
    rate = configuration_velocity(model, q, v)
    return jax.jvp(lambda x: centroidal_momentum_matrix(model, x), (q,), (rate,))[1]
