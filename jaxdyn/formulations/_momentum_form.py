"""Theorem 1 and lemma 1 of Celentano: the inertia matrix and the potential are enough.

L. Celentano, "An Innovative Method for Robots Modeling and Simulation", in "New Approaches in Automation and
Robotics", I-Tech 2008, section 2. `jaxdyn.simulation.MomentumForm` integrates the same equation.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._errors import check_shape
from jaxdyn._types import Array, Float
from jaxdyn.formulations._formulation import (
    AbstractFormulation,
    angular_velocity,
    external_efforts,
    link_motions,
    no_coordinates_for_velocities,
)
from jaxdyn.formulations._lagrange import potential
from jaxdyn.model import Model


class AbstractGradient(eqx.Module):
    """How the gradient of a function of q is taken."""

    @abc.abstractmethod
    def __call__(self, f: Any, q: Float[Array, " nq"]) -> Float[Array, " nq"]:
        """`df/dq` of a scalar function at q."""

    @abc.abstractmethod
    def bound(self, frequency: Any) -> Any:
        """The largest error of a derivative of `sin(frequency q)` (equation 9), rounding aside."""


class ExactGradient(AbstractGradient):
    """By automatic differentiation in reverse mode, exact to rounding at the cost of a few evaluations."""

    def __call__(self, f, q):
        return jax.grad(f)(q)

    def bound(self, frequency):
        return 0 * frequency


class TwoPointGradient(AbstractGradient):
    """`(f(q + d) - f(q)) / d` for each coordinate (equation 8): `nq + 1` evaluations, side by side.

    For `sin(a q)` the error is `-a^2 d sin(a x) / 2` at some x in between. The source recommends steps of 1e-4 to 1e-3.
    """

    step: Any = 1e-4

    def __call__(self, f, q):
        return (_ahead(f, q, self.step) - f(q)) / self.step

    def bound(self, frequency):
        return frequency**2 * self.step / 2


class ThreePointGradient(AbstractGradient):
    """`(f(q + d) - f(q - d)) / 2 d` for each coordinate (equation 8): `2 nq` evaluations, side by side.

    For `sin(a q)` the error is `-a^3 d^2 cos(a x) / 6` at some x in between. The source recommends steps of 1e-3 to
    1e-2.
    """

    step: Any = 1e-3

    def __call__(self, f, q):
        return (_ahead(f, q, self.step) - _ahead(f, q, -self.step)) / (2 * self.step)

    def bound(self, frequency):
        return frequency**3 * self.step**2 / 6


def _ahead(f, q, step):
    return jax.vmap(lambda e: f(q + step * e))(jnp.eye(q.shape[0], dtype=q.dtype))


def inertia_matrix(model: Model, q):
    """`B(q) = sum of m Jc^T Jc + Jw^T I Jw`, armatures on its diagonal, by the velocities that unit rates cause."""
    here = jnp.zeros(model.nv, q.dtype)

    def velocities(rate):
        rotation, spin, _, velocity = link_motions(model, q, here, rate)
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
    passive: Callable[..., Any] | None = None,
) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
    """The block F of the source's figure 1: `(q, p, u) -> (v, p')` with `v = B^-1 p` and `p' = c - dU/dq + u_a + u`.

    `c = dT/dq` at fixed v, where `T = v . B(q) v / 2` (theorem 1, steps 1 to 4): two integrators make it a simulation,
    and neither Coriolis terms nor `dB/dt` are needed. u are the efforts of the drives, `J^T external` added to them.
    `passive(model, q, v)` gives efforts that depend on the state, the source's `eta` and `u_a` (step 3), of which v is
    known here alone: `jaxdyn.passive_forces` or a function of your own. `gradient` says how c is taken, by default
    `ExactGradient()`. For joints with `v = qdot` alone.
    """
    q, p, u = MomentumEquation().checked(model, q, p, u)
    u = u + external_efforts(model, q, external)
    v = cho_solve(cho_factor(inertia_matrix(model, q)), p)
    if passive is not None:
        u = u + check_shape("effort of passive", passive(model, q, v), (model.nv,))
    return v, kinetic_slope(model, q, v, gradient or ExactGradient()) - potential_slope(model, q) + u


def kinetic_slope(model, q, v, gradient):
    """`c = dT/dq` at fixed v (equation 7)."""
    return gradient(lambda q: v @ inertia_matrix(model, q) @ v / 2, q)


def potential_slope(model, q):
    """`dU/dq`; the source's vector of gravity forces is its negative."""
    return jax.grad(lambda q: potential(model, q, jnp.zeros(model.nv, q.dtype)))(q)


class MomentumEquation(AbstractFormulation):
    """`d/dt (B v) = c - dU/dq + u + J^T external` with `c = dT/dq` (equations 6 and 7).

    `h = dB/dt v - c + dU/dq`; where the momentum is the state, as in `momentum_rates`, the first term is not needed.
    `gradient` says how c is taken: with `TwoPointGradient` or `ThreePointGradient` accelerations have the error of
    these. Covers joints with `v = qdot`.
    """

    gradient: AbstractGradient = ExactGradient()

    def covers(self, model):
        return no_coordinates_for_velocities(model)

    def mass_matrix(self, model, q):
        (q,) = self.checked(model, q)
        return inertia_matrix(model, q)

    def bias(self, model, q, v):
        q, v = self.checked(model, q, v)
        return self.inverse_dynamics(model, q, v, jnp.zeros_like(v))

    def inverse_dynamics(self, model, q, v, a, external=None):
        q, v, a = self.checked(model, q, v, a)
        _, moved = jax.jvp(lambda q, v: inertia_matrix(model, q) @ v, (q, v), (v, a))
        slope = kinetic_slope(model, q, v, self.gradient) - potential_slope(model, q)
        return moved - slope - external_efforts(model, q, external)
