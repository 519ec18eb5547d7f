"""Lagrange's equations of the second kind, from kinetic and potential energy."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.formulations._formulation import (
    AbstractFormulation,
    angular_velocity,
    external_efforts,
    link_poses_and_rates,
)
from jaxdyn.formulations._poses import poses
from jaxdyn.kinematics import integrate
from jaxdyn.model import Model


def kinetic(model: Model, q, x, rate):
    """`T = sum of m |c'|^2 / 2 + w . I w / 2`, armatures included, in the chart of `link_poses_and_rates`; J."""
    rotation, spin, _, velocity = link_poses_and_rates(model, q, x, rate)
    com = velocity + jnp.einsum("lij,lj->li", spin, model.links.com)
    w = angular_velocity(rotation, spin)
    moving = jnp.sum(model.links.mass * jnp.sum(com * com, axis=1))
    turning = jnp.einsum("li,lij,lj->", w, model.links.inertia, w)
    return (moving + turning + jnp.sum(model.properties.armature * rate * rate)) / 2


def potential(model: Model, q, x):
    """`U = -sum of m g . c` in the same chart; J."""
    rotation, position = poses(model, integrate(model, q, x))
    com = position + jnp.einsum("lij,lj->li", rotation, model.links.com)
    return -jnp.sum(model.links.mass * (com @ model.gravity))


class Lagrange(AbstractFormulation):
    """`d/dt dT/dx' - dT/dx + dU/dx = tau + J^T external`, by automatic differentiation of the energies.

    The inputs are the energies T and U. The coordinates x are exponential coordinates about the present configuration,
    where `v = x'` and `a = x''`, so that quaternions, planar bases and free bodies need no special case: these are the
    Boltzmann-Hamel equations without their structure constants. Covers every model.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.formulations import Lagrange

    model = jd.robots.double_pendulum()
    q, v = jnp.array([0.1, 0.2]), jnp.array([0.5, -0.5])
    a = jd.forward_dynamics(model, q, v, jnp.zeros(2), method=Lagrange())
    ```
    """

    def covers(self, model):
        return None

    def mass_matrix(self, model, q):
        (q,) = self.checked(model, q)
        return _mass_matrix(model, q, jnp.zeros(model.nv, q.dtype))

    def bias(self, model, q, v):
        q, v = self.checked(model, q, v)
        return self.inverse_dynamics(model, q, v, jnp.zeros_like(v))

    def inverse_dynamics(self, model, q, v, a, external=None):
        q, v, a = self.checked(model, q, v, a)
        origin = jnp.zeros_like(v)
        energy = lambda x, rate: kinetic(model, q, x, rate)
        _, momentum_rate = jax.jvp(jax.grad(energy, 1), (origin, v), (v, a))
        gradient = jax.grad(lambda x: energy(x, v) - potential(model, q, x))(origin)
        return momentum_rate - gradient - external_efforts(model, q, external)


def _mass_matrix(model, q, x):
    """`M = d^2 T / dx'^2` in the chart; T is quadratic, so that column i is `dT/dx'` at the unit rate i."""
    return jax.vmap(jax.grad(lambda rate: kinetic(model, q, x, rate)))(jnp.eye(x.shape[0], dtype=x.dtype))


def _mass_derivative(model, q):
    """`dM_ij / dx_k` in the chart, and M."""
    origin = jnp.zeros(model.nv, q.dtype)

    def mass(x):
        m = _mass_matrix(model, q, x)
        return m, m

    return jax.jacfwd(mass, has_aux=True)(origin)


def _symbols(derivative):
    return (derivative + jnp.swapaxes(derivative, 1, 2) - jnp.moveaxis(derivative, 2, 0)) / 2


def lagrange_christoffel_symbols(model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv nv"]:
    """Symbols of the first kind, `G[i, j, k] = (dM_ij/dx_k + dM_ik/dx_j - dM_jk/dx_i) / 2`, from the kinetic energy.

    x are the coordinates of `Lagrange`, which are q where `v = qdot` (Celentano, "An Innovative Method for Robots
    Modeling and Simulation", equation 5, whose symbols times `v_k` add up to the Coriolis matrix). For such joints they
    are equal to `jaxdyn.christoffel_symbols`.
    """
    (q,) = Lagrange().checked(model, q)
    return _symbols(_mass_derivative(model, q)[0])


class SecondKind(NamedTuple):
    """The terms of `M a + C v + g = tau + J^T external`."""

    mass_matrix: Float[Array, "nv nv"]
    #: from Christoffel symbols, so that `dM/dt - 2 C` is skew-symmetric
    coriolis: Float[Array, "nv nv"]
    gravity: Float[Array, " nv"]
    #: `dM/dt` of the mass matrix in the chart of `Lagrange`; for `v = qdot` the rate of `mass_matrix(model, q)`
    mass_rate: Float[Array, "nv nv"]


def second_kind(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> SecondKind:
    """Terms of Lagrange's equations of the second kind, `M a + C v + g`, and the rate of M.

    `C_ij = sum of G[i, j, k] v_k` and `dM/dt = sum of dM/dx_k v_k`, from one derivative of the mass matrix. Passivity
    is `u . (dM/dt - 2 C) u = 0` for every u. Coordinates and units as for `Lagrange`: for free, spherical and planar
    joints `dM/dt` is the rate of M in exponential coordinates about q, which differs from the rate of
    `mass_matrix(model, q)` along the motion; C has the same symbols, so that the forces `C v` are correct.
    """
    q, v = Lagrange().checked(model, q, v)
    derivative, mass = _mass_derivative(model, q)
    gravity = jax.grad(lambda x: potential(model, q, x))(jnp.zeros_like(v))
    return SecondKind(mass, _symbols(derivative) @ v, gravity, derivative @ v)
