"""Hamilton's equations, from the energy as a function of configuration and momentum."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._errors import check_shape
from jaxdyn._types import Array, Config, Effort, Float, Velocity
from jaxdyn.formulations._formulation import (
    AbstractFormulation,
    external_efforts,
    find_quasi_velocity_joint,
)
from jaxdyn.formulations._lagrange import potential
from jaxdyn.formulations._momentum_equation import inertia_matrix
from jaxdyn.model import Model


def hamiltonian(model: Model, q: Float[Array, " nq"], p: Float[Array, " nv"]) -> Float[Array, ""]:
    """Hamiltonian `H(q, p) = p . M(q)^-1 p / 2 + U(q)`, the total energy in J, for joints with `v = qdot`."""
    q, p = Hamilton().checked(model, q, p)
    return _hamiltonian(model, q, p)


def _hamiltonian(model, q, p):
    v = cho_solve(cho_factor(inertia_matrix(model, q)), p)
    return p @ v / 2 + potential(model, q, jnp.zeros_like(p))


def hamilton_equations(
    model: Model,
    q: Float[Array, " nq"],
    p: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
    *,
    passive: Callable[[Model, Config, Velocity], Effort] | None = None,
) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
    """`qdot = dH/dp`, `pdot = -dH/dq + tau + J^T external` (Goldstein, "Classical Mechanics", equation 8.18).

    `p = M(q) v` is in kg m^2/s or kg m/s. `passive(model, q, qdot)`, for example `jaxdyn.passive_forces`, returns
    efforts that are added to tau. Returns `(qdot, pdot)`. For joints with `v = qdot`.
    """
    q, p, tau = Hamilton().checked(model, q, p, tau)
    by_q, by_p = jax.grad(lambda q, p: _hamiltonian(model, q, p), (0, 1))(q, p)
    if passive is not None:
        tau = tau + check_shape("effort of passive", passive(model, q, by_p), (model.nv,))
    return by_p, tau + external_efforts(model, q, external) - by_q


class Hamilton(AbstractFormulation):
    """`p = M v`, `tau + J^T external = pdot + dH/dq`, with `dH/dq` at fixed p.

    `h = dM/dt v + dH/dq`; the derivative of the kinetic energy with respect to q at fixed momentum is minus the
    derivative at fixed velocity. Covers joints with `v = qdot`.
    """

    def covers(self, model):
        return find_quasi_velocity_joint(model)

    def mass_matrix(self, model, q):
        (q,) = self.checked(model, q)
        return inertia_matrix(model, q)

    def bias(self, model, q, v):
        q, v = self.checked(model, q, v)
        return self.inverse_dynamics(model, q, v, jnp.zeros_like(v))

    def inverse_dynamics(self, model, q, v, a, external=None):
        q, v, a = self.checked(model, q, v, a)
        p, momentum_rate = jax.jvp(lambda q, v: inertia_matrix(model, q) @ v, (q, v), (v, a))
        return momentum_rate + jax.grad(lambda q: _hamiltonian(model, q, p))(q) - external_efforts(model, q, external)
