"""Constrained motion for simulations, and how it stays on its constraints.

Accelerations alone leave the constraint: rounding and the error of the integrator enter twice integrated. The
remedies are objects with what they need.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.constraints._contract import AbstractConstraint
from jaxdyn.constraints._ends import as_float
from jaxdyn.constraints._evaluate import as_constraints, bias, evaluated, holonomic_rows, linearised, rates, residuals
from jaxdyn.constraints._kkt import KKT
from jaxdyn.dynamics import AbstractMotion, bias_forces, mass_matrix
from jaxdyn.kinematics import integrate
from jaxdyn.model import Model


class AbstractStabilisation(eqx.Module):
    """How a simulation is kept on its constraints."""

    #: whether the state is corrected after each step
    projects: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def correction(self, position, velocity) -> Any:
        """What the second derivative of the residual should be, from the residual and its rate; None is zero."""

    @abc.abstractmethod
    def drift(self, position) -> Any:
        """What the first derivative should be besides, made by moving q without velocity; None is zero."""

    @abc.abstractmethod
    def project(self, model: Model, constraints, t, q, v) -> Any:
        """The state after a step, corrected."""


class Projection(AbstractStabilisation):
    """After each step: Newton's steps back to `g = 0` and the velocity nearest to `A v = b`, in the metric of M.

    A step of the integrator leaves the constraint by little, and each of the `iterations` squares that.
    """

    projects: bool = eqx.field(static=True, default=True, init=False)
    iterations: int = eqx.field(static=True, default=2)

    def correction(self, position, velocity):
        return None

    def drift(self, position):
        return None

    def project(self, model, constraints, t, q, v):
        if not constraints:
            return q, v
        rows = holonomic_rows(model, constraints)

        def corrected(state, _):
            q, v = state
            x = evaluated(model, t, q, jnp.zeros_like(v))
            a, drift = linearised(model, constraints, x)
            mass = mass_matrix(model, q)
            kkt = KKT.of(mass, a)
            back = kkt if rows.all() else KKT.of(mass, a * jnp.asarray(rows[:, None], q.dtype))
            q = integrate(model, q, -back.least(residuals(model, constraints, x)))
            return (q, kkt.project(v, drift)[0]), None

        # a loop, so that it is compiled once
        return jax.lax.scan(corrected, (q, v), None, length=self.iterations)[0]


class Baumgarte(AbstractStabilisation):
    """Residuals die out like a damped oscillator: `gddot + 2 w gdot + w^2 g = 0` (Baumgarte 1972)."""

    projects: bool = eqx.field(static=True, default=False, init=False)
    #: w, rad/s
    frequency: Float[Array, ""] = eqx.field(converter=as_float, default=20.0)

    def correction(self, position, velocity):
        return -2 * self.frequency * velocity - self.frequency**2 * position

    def drift(self, position):
        return None

    def project(self, model, constraints, t, q, v):
        return q, v


class GearGuptaLeimkuhler(AbstractStabilisation):
    """The configuration gets a multiplier of its own: `qdot = v + M^-1 A^T mu` with `gdot = -k g` along q, and
    accelerations the damping `gddot = -k gdot`, so that both levels hold (Gear, Gupta and Leimkuhler 1985).

    In an explicit integrator the multiplier of an exact solution, zero, is replaced by one that dies out.
    """

    projects: bool = eqx.field(static=True, default=False, init=False)
    #: k, 1/s
    rate: Float[Array, ""] = eqx.field(converter=as_float, default=20.0)

    def correction(self, position, velocity):
        return -self.rate * velocity

    def drift(self, position):
        return -self.rate * position

    def project(self, model, constraints, t, q, v):
        return q, v


class ConstrainedMotion(AbstractMotion):
    """The motion of a `System` under constraints, `System(model, parts, motion=ConstrainedMotion(constraints))`."""

    constraints: tuple[AbstractConstraint, ...] = eqx.field(converter=as_constraints)
    stabilisation: AbstractStabilisation = Projection()

    @property
    def projects(self) -> bool:
        return self.stabilisation.projects

    def acceleration(self, model, t, q, v, effort, external):
        x = evaluated(model, t, q, v)
        kkt = KKT.of(mass_matrix(model, q), linearised(model, self.constraints, x)[0])
        target = -bias(model, self.constraints, x)
        errors = residuals(model, self.constraints, x), rates(model, self.constraints, x)
        correction = self.stabilisation.correction(*errors)
        target = target if correction is None else target + correction
        return kkt.solve(effort - bias_forces(model, q, v, external), target)[0]

    def velocity(self, model, t, q, v):
        x = evaluated(model, t, q, v)
        drift = self.stabilisation.drift(residuals(model, self.constraints, x))
        if drift is None:
            return v
        rows = jnp.asarray(holonomic_rows(model, self.constraints), q.dtype)
        a, _ = linearised(model, self.constraints, x)
        return v + KKT.of(mass_matrix(model, q), a * rows[:, None]).least(drift)

    def project(self, model, t, q, v):
        return self.stabilisation.project(model, self.constraints, t, q, v)
