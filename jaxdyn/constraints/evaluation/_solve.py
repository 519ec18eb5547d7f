"""The solve for accelerations and multipliers that all constrained dynamics share."""

from collections.abc import Callable
from typing import NamedTuple

from jax.typing import ArrayLike

from jaxdyn._types import Array, Float
from jaxdyn.constraints.evaluation._evaluate import (
    ConstraintKinematics,
    Constraints,
    acceleration_bias,
    constraint_kinematics,
    linearise_constraints,
)
from jaxdyn.constraints.evaluation._kkt import KKT
from jaxdyn.dynamics import bias_forces, mass_matrix
from jaxdyn.model import Model


class ConstrainedSolution(NamedTuple):
    """Result of `solve_constrained_motion`."""

    a: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    #: right-hand side of `A a = target`
    target: Float[Array, " rows"]
    kkt: KKT
    kinematics: ConstraintKinematics


def solve_constrained_motion(
    model: Model,
    constraints: Constraints,
    t,
    q,
    v,
    effort,
    external=None,
    *,
    correction: Callable[[ConstraintKinematics], Array | None] | None = None,
    tolerance: ArrayLike | None = None,
) -> ConstrainedSolution:
    """Solves `M a + h = effort + J^T external + A^T lambda`, `A a + gamma = correction` for a and lambda.

    `correction` maps the kinematics to the second derivative of the residuals, `(rows,)`; None stands for zero.
    """
    x = constraint_kinematics(model, t, q, v)
    kkt = KKT.factorise(mass_matrix(model, q), linearise_constraints(model, constraints, x)[0], tolerance)
    target = -acceleration_bias(model, constraints, x)
    second_rate = None if correction is None else correction(x)
    target = target if second_rate is None else target + second_rate
    a, multipliers = kkt.solve(effort - bias_forces(model, q, v, external), target)
    return ConstrainedSolution(a, multipliers, target, kkt, x)
