"""Constrained motion for simulations, and constraint stabilisation.

Under numerical integration the state drifts off the constraints, because rounding and integration errors of the
accelerations are integrated twice. A stabilisation method is an object with its parameters.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.constraints._dynamics import factorise_constraints
from jaxdyn.constraints.contract import AbstractConstraint
from jaxdyn.constraints.evaluation import (
    KKT,
    ConstrainedSolution,
    constraint_kinematics,
    constraint_rates,
    constraint_residuals,
    constraint_wrenches,
    holonomic_rows,
    linearise_constraints,
    optional_constraints,
    solve_constrained_motion,
)
from jaxdyn.constraints.types import described_constraints
from jaxdyn.dynamics import AbstractMotion, Action, mass_matrix
from jaxdyn.kinematics import integrate
from jaxdyn.model import Model


class AbstractStabilisation(eqx.Module):
    """A method that keeps a simulation on its constraints."""

    #: True if the state is projected after each step
    projects: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def correction(self, position, velocity) -> Array | None:
        """The required second derivative of the residual, from the residual and its rate; None stands for zero."""

    @abc.abstractmethod
    def drift(self, position) -> Array | None:
        """The required rate of the residual by a motion of q that v does not contain; None stands for zero."""

    @abc.abstractmethod
    def project(self, model: Model, constraints, t, q, v, tolerance) -> tuple[Array, Array]:
        """The state after a step, projected onto the constraints; `tolerance` is the rank tolerance or None."""


class Projection(AbstractStabilisation):
    """Projection after each step: Newton iterations onto `g = 0` and the nearest velocity with `A v = b`.

    Nearest is in the metric of M. A step of the integrator leaves the constraint by little, and each of the
    `iterations` squares the residual. At the end of a simulation `ConstrainedMotion.violates_constraints` checks that
    they sufficed.
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

        def correct(state, _):
            q, v = state
            x = constraint_kinematics(model, t, q, jnp.zeros_like(v))
            a, drift = linearise_constraints(model, constraints, x)
            mass = mass_matrix(model, q)
            kkt = KKT.factorise(mass, a, tolerance)
            back = kkt if rows.all() else KKT.factorise(mass, a * jnp.asarray(rows[:, None], q.dtype), tolerance)
            q = integrate(model, q, -back.minimum_norm(constraint_residuals(model, constraints, x)))
            return (q, kkt.project(v, drift)[0]), None

        # a scan, so that the iteration is compiled once
        return jax.lax.scan(correct, (q, v), None, length=self.iterations)[0]


class Baumgarte(AbstractStabilisation):
    """Baumgarte stabilisation: residuals decay as `gddot + 2 w gdot + w^2 g = 0` (Baumgarte 1972)."""

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
    """Gear-Gupta-Leimkuhler stabilisation: a second multiplier mu enforces the constraint at position level.

        qdot = v + M^-1 A^T mu,    gdot = -k g,    gddot = -k gdot

    For explicit integrators the condition g = 0, whose multiplier is zero, is replaced by exponential decay of g (Gear,
    Gupta and Leimkuhler 1985).
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
    """The motion of a `System` under constraints: `System(model, parts, motion=ConstrainedMotion(constraints))`.

    Arguments:

    * `constraints`: one constraint or a sequence; by default the closures of the model (`described_constraints`).
    * `stabilisation`: `Projection()` by default, or `Baumgarte`, `GearGuptaLeimkuhler`.
    * `tolerance`, `accuracy`: see the fields.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    import jaxdyn.constraints as jc
    from jaxdyn.simulation import System

    b = jd.ModelBuilder()
    b.add_link("x", "world", jd.joints.Prismatic((1, 0, 0)))
    point = b.add_link("point", "x", jd.joints.Prismatic((0, 0, 1)), jd.spatial.point_mass(1.0)).build()
    rod = jc.Distance("rod", "world", "point", 1.0)
    system = System(point, motion=jc.ConstrainedMotion(rod))  # a pendulum in Cartesian coordinates
    path = jd.simulate(system, jnp.array([1.0, 0.0]), jnp.zeros(2), jnp.array([0.0, 0.1]), dt=0.02)
    assert abs(path.q[-1] @ path.q[-1] - 1.0) < 1e-6
    ```
    """

    constraints: tuple[AbstractConstraint, ...] | None = eqx.field(converter=optional_constraints, default=None)
    stabilisation: AbstractStabilisation = Projection()
    #: singular values below this fraction of the largest one count as zero, by default `4 sqrt(eps)`. In float32 the
    #: default is 1e-3: a closure between bodies a million times heavier than the lightest one needs a smaller value
    tolerance: ArrayLike | None = None
    #: a state violates the constraints if a residual (rad, m) exceeds `accuracy` or a rate `accuracy (1 + max |v|)`;
    #: by default `eps^(1/3)`
    accuracy: ArrayLike | None = None

    @property
    def projects(self) -> bool:
        return self.stabilisation.projects

    @property
    def adds_constraints(self) -> bool:
        return self.constraints is not None

    def check(self, model):
        return None  # the constraints check the names of links and joints when they are evaluated

    def acceleration(self, model, t, q, v, effort, external):
        return self._solve(model, t, q, v, effort, external).a

    def residual(self, model, t, q, v, a, effort, external):
        return a - self.acceleration(model, t, q, v, effort, external)

    @property
    def has_affine_residual(self) -> bool:
        return False

    def velocity(self, model, t, q, v):
        constraints, x = self._constraints_of(model), constraint_kinematics(model, t, q, v)
        drift = self.stabilisation.drift(constraint_residuals(model, constraints, x))
        if drift is None:
            return v
        rows = jnp.asarray(holonomic_rows(model, constraints), q.dtype)
        a, _ = linearise_constraints(model, constraints, x)
        return v + KKT.factorise(mass_matrix(model, q), a * rows[:, None], self.tolerance).minimum_norm(drift)

    def project(self, model, t, q, v):
        return self.stabilisation.project(model, self._constraints_of(model), t, q, v, self.tolerance)

    def violates_constraints(self, model, t, q, v):
        constraints, x = self._constraints_of(model), constraint_kinematics(model, t, q, v)
        accuracy = jnp.finfo(q.dtype).eps ** (1 / 3) if self.accuracy is None else self.accuracy
        largest = lambda r: jnp.max(jnp.abs(r), initial=0)
        satisfied = largest(constraint_residuals(model, constraints, x)) <= accuracy
        return ~(satisfied & (largest(constraint_rates(model, constraints, x)) <= accuracy * (1 + largest(v))))

    def exerted(self, model, t, q, v, effort, external):
        solution = self._solve(model, t, q, v, effort, external)
        wrenches, efforts = constraint_wrenches(
            model, self._constraints_of(model), solution.kinematics, solution.multipliers
        )
        return Action(efforts, wrenches)

    def jump(self, model, t, q, impulse):
        kkt, drift = factorise_constraints(model, self._constraints_of(model), q, t=t, tolerance=self.tolerance)
        return kkt.solve(impulse, jnp.zeros_like(drift))[0]

    def _constraints_of(self, model) -> tuple[AbstractConstraint, ...]:
        return described_constraints(model) if self.constraints is None else self.constraints

    def _solve(self, model, t, q, v, effort, external) -> ConstrainedSolution:
        constraints = self._constraints_of(model)

        def correction(x):
            return self.stabilisation.correction(
                constraint_residuals(model, constraints, x), constraint_rates(model, constraints, x)
            )

        return solve_constrained_motion(
            model, constraints, t, q, v, effort, external, correction=correction, tolerance=self.tolerance
        )
