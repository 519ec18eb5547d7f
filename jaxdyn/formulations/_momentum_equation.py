"""The momentum equation from inertia matrix and potential energy: theorem 1 and lemma 1 of Celentano.

L. Celentano, "An Innovative Method for Robots Modeling and Simulation", in "New Approaches in Automation and
Robotics", I-Tech 2008, section 2. `jaxdyn.simulation.CanonicalMomenta` integrates the same equation.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._errors import check_shape
from jaxdyn._types import Array, Config, Effort, Float, Scalar, Velocity
from jaxdyn.formulations._formulation import (
    AbstractFormulation,
    angular_velocity,
    external_efforts,
    find_quasi_velocity_joint,
    link_poses_and_rates,
)
from jaxdyn.formulations._lagrange import potential
from jaxdyn.model import Model

Number = float | jax.Array | np.ndarray


class AbstractGradient(eqx.Module):
    """Method that computes the gradient of a scalar function of q."""

    @abc.abstractmethod
    def __call__(self, f: Callable[[Config], Scalar], q: Float[Array, " nq"]) -> Float[Array, " nq"]:
        """`df/dq` of a scalar function f at q."""

    @abc.abstractmethod
    def bound(self, frequency: Number) -> Number:
        """Bound on the error of the derivative of `sin(frequency q)` (equation 9), without rounding."""


class ExactGradient(AbstractGradient):
    """Reverse-mode automatic differentiation: exact to rounding, at the cost of a few evaluations."""

    def __call__(self, f, q):
        return jax.grad(f)(q)

    def bound(self, frequency):
        return 0 * frequency


class TwoPointGradient(AbstractGradient):
    """`(f(q + d) - f(q)) / d` for each coordinate (equation 8): `nq + 1` evaluations in one batch.

    For `sin(a q)` the error is `-a^2 d sin(a x) / 2` at some x between the two points. The source recommends steps of
    1e-4 to 1e-3.
    """

    step: Number = 1e-4

    def __call__(self, f, q):
        return (_shift_each_coordinate(f, q, self.step) - f(q)) / self.step

    def bound(self, frequency):
        return frequency**2 * self.step / 2


class ThreePointGradient(AbstractGradient):
    """`(f(q + d) - f(q - d)) / 2 d` for each coordinate (equation 8): `2 nq` evaluations in one batch.

    For `sin(a q)` the error is `-a^3 d^2 cos(a x) / 6` at some x between the two points. The source recommends steps of
    1e-3 to 1e-2.
    """

    step: Number = 1e-3

    def __call__(self, f, q):
        return (_shift_each_coordinate(f, q, self.step) - _shift_each_coordinate(f, q, -self.step)) / (2 * self.step)

    def bound(self, frequency):
        return frequency**3 * self.step**2 / 6


def _shift_each_coordinate(f, q, step):
    return jax.vmap(lambda e: f(q + step * e))(jnp.eye(q.shape[0], dtype=q.dtype))


def inertia_matrix(model: Model, q):
    """`B(q) = sum of m Jc^T Jc + Jw^T I Jw`, armatures on its diagonal, from the velocities for unit rates."""
    origin = jnp.zeros(model.nv, q.dtype)

    def velocities(rate):
        rotation, spin, _, velocity = link_poses_and_rates(model, q, origin, rate)
        return velocity + jnp.einsum("lij,lj->li", spin, model.links.com), angular_velocity(rotation, spin)

    com, w = jax.vmap(velocities)(jnp.eye(model.nv, dtype=q.dtype))
    moving = jnp.einsum("l,ali,bli->ab", model.links.mass, com, com)
    turning = jnp.einsum("ali,lij,blj->ab", w, model.links.inertia, w)
    return moving + (turning + turning.T) / 2 + jnp.diag(model.properties.armature)


def momentum_rates(
    model: Model,
    q: Float[Array, " nq"],
    p: Float[Array, " nv"],
    u: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
    *,
    gradient: AbstractGradient | None = None,
    passive: Callable[[Model, Config, Velocity], Effort] | None = None,
) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
    """Block F in figure 1 of the source: `(q, p, u) -> (v, p')` with `v = B^-1 p` and `p' = c - dU/dq + u_a + u`.

    `c = dT/dq` at fixed v, where `T = v . B(q) v / 2` (theorem 1, steps 1 to 4). Integrate both results to simulate the
    robot; Coriolis terms and `dB/dt` are not needed. u are the efforts of the drives, to which `J^T external` is added.
    `passive(model, q, v)`, for example `jaxdyn.passive_forces`, returns efforts that depend on the state, `eta` and
    `u_a` in the source (step 3). `gradient` computes c, by default `ExactGradient()`. For joints with `v = qdot`.
    """
    q, p, u = MomentumEquation().checked(model, q, p, u)
    u = u + external_efforts(model, q, external)
    v = cho_solve(cho_factor(inertia_matrix(model, q)), p)
    if passive is not None:
        u = u + check_shape("effort of passive", passive(model, q, v), (model.nv,))
    return v, kinetic_energy_gradient(model, q, v, gradient or ExactGradient()) - potential_energy_gradient(
        model, q
    ) + u


def kinetic_energy_gradient(model, q, v, gradient):
    """`c = dT/dq` at fixed v (equation 7)."""
    return gradient(lambda q: v @ inertia_matrix(model, q) @ v / 2, q)


def potential_energy_gradient(model, q):
    """`dU/dq`, the negative of the vector of gravity forces in the source."""
    return jax.grad(lambda q: potential(model, q, jnp.zeros(model.nv, q.dtype)))(q)


class MomentumEquation(AbstractFormulation):
    """`d/dt (B v) = c - dU/dq + u + J^T external` with `c = dT/dq` (equations 6 and 7).

    `h = dB/dt v - c + dU/dq`; if the momentum is the state, as in `momentum_rates`, the first term is not needed.
    `gradient` computes c; with `TwoPointGradient` or `ThreePointGradient` the accelerations have the corresponding
    error. Covers joints with `v = qdot`.
    """

    gradient: AbstractGradient = ExactGradient()

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
        _, momentum_rate = jax.jvp(lambda q, v: inertia_matrix(model, q) @ v, (q, v), (v, a))
        gradient = kinetic_energy_gradient(model, q, v, self.gradient) - potential_energy_gradient(model, q)
        return momentum_rate - gradient - external_efforts(model, q, external)
