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
from jaxdyn.constraints._described import described_constraints
from jaxdyn.constraints._ends import as_float
from jaxdyn.constraints._evaluate import (
    as_constraints,
    bias,
    constraint_wrenches,
    evaluated,
    holonomic_rows,
    linearised,
    rates,
    residuals,
)
from jaxdyn.constraints._kkt import KKT
from jaxdyn.dynamics import AbstractMotion, Action, bias_forces, mass_matrix
from jaxdyn.kinematics import integrate
from jaxdyn.model import Model


def _given(constraints):
    return None if constraints is None else as_constraints(constraints)


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
    def project(self, model: Model, constraints, t, q, v, tolerance) -> Any:
        """The state after a step, corrected; `tolerance` is that of the rank, None for the default."""


class Projection(AbstractStabilisation):
    """After each step: Newton's steps back to `g = 0` and the velocity nearest to `A v = b`, in the metric of M.

    A step of the integrator leaves the constraint by little, and each of the `iterations` squares that. Whether they
    sufficed is seen from the last state of a simulation (`ConstrainedMotion.astray`).
    """

    projects: bool = eqx.field(static=True, default=True, init=False)
    iterations: int = eqx.field(static=True, default=2)

    def correction(self, position, velocity):
        return None

    def drift(self, position):
        return None

    def project(self, model, constraints, t, q, v, tolerance):
        if not constraints:
            return q, v
        rows = holonomic_rows(model, constraints)

        def corrected(state, _):
            q, v = state
            x = evaluated(model, t, q, jnp.zeros_like(v))
            a, drift = linearised(model, constraints, x)
            mass = mass_matrix(model, q)
            kkt = KKT.of(mass, a, tolerance)
            back = kkt if rows.all() else KKT.of(mass, a * jnp.asarray(rows[:, None], q.dtype), tolerance)
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

    def project(self, model, constraints, t, q, v, tolerance):
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

    def project(self, model, constraints, t, q, v, tolerance):
        return q, v


class ConstrainedMotion(AbstractMotion):
    """The motion of a `System` under constraints, `System(model, parts, motion=ConstrainedMotion(constraints))`.

    Without any given they are those that the model describes (`described_constraints`), whose numbers are the model's.
    """

    constraints: tuple[AbstractConstraint, ...] | None = eqx.field(converter=_given, default=None)
    stabilisation: AbstractStabilisation = Projection()
    #: singular values below this part of the largest one count as zero, by default `4 sqrt(eps)`; in float32 that is
    #: 1e-3, and a closure between bodies a million times heavier than the lightest one needs less
    tolerance: Any = None
    #: residuals (rad, m) above it, rates above `accuracy (1 + max |v|)` are off the constraint; by default `eps^(1/3)`
    accuracy: Any = None

    @property
    def projects(self) -> bool:
        return self.stabilisation.projects

    def acceleration(self, model, t, q, v, effort, external):
        return self._solved(model, t, q, v, effort, external)[0]

    def velocity(self, model, t, q, v):
        constraints, x = self._of(model), evaluated(model, t, q, v)
        drift = self.stabilisation.drift(residuals(model, constraints, x))
        if drift is None:
            return v
        rows = jnp.asarray(holonomic_rows(model, constraints), q.dtype)
        a, _ = linearised(model, constraints, x)
        return v + KKT.of(mass_matrix(model, q), a * rows[:, None], self.tolerance).least(drift)

    def project(self, model, t, q, v):
        return self.stabilisation.project(model, self._of(model), t, q, v, self.tolerance)

    def astray(self, model, t, q, v):
        constraints, x = self._of(model), evaluated(model, t, q, v)
        accuracy = jnp.finfo(q.dtype).eps ** (1 / 3) if self.accuracy is None else self.accuracy
        largest = lambda r: jnp.max(jnp.abs(r), initial=0)
        met = largest(residuals(model, constraints, x)) <= accuracy
        return ~(met & (largest(rates(model, constraints, x)) <= accuracy * (1 + largest(v))))

    def exerted(self, model, t, q, v, effort, external):
        _, multipliers, x = self._solved(model, t, q, v, effort, external)
        wrenches, efforts = constraint_wrenches(model, self._of(model), x, multipliers)
        return Action(efforts, wrenches)

    def jump(self, model, t, q, impulse):
        x = evaluated(model, t, q, jnp.zeros_like(impulse))
        a, _ = linearised(model, self._of(model), x)
        return KKT.of(mass_matrix(model, q), a, self.tolerance).solve(impulse, jnp.zeros(a.shape[0], a.dtype))[0]

    def _of(self, model) -> tuple[AbstractConstraint, ...]:
        return described_constraints(model) if self.constraints is None else self.constraints

    def _solved(self, model, t, q, v, effort, external):
        """Accelerations, multipliers, and the state as constraints see it."""
        constraints, x = self._of(model), evaluated(model, t, q, v)
        kkt = KKT.of(mass_matrix(model, q), linearised(model, constraints, x)[0], self.tolerance)
        target = -bias(model, constraints, x)
        errors = residuals(model, constraints, x), rates(model, constraints, x)
        correction = self.stabilisation.correction(*errors)
        target = target if correction is None else target + correction
        return *kkt.solve(effort - bias_forces(model, q, v, external), target), x
