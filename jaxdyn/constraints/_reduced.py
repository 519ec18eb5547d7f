"""Constrained motion with fewer numbers: in coordinates of the constraint, and seen from one frame."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ShapeError
from jaxdyn._numerics import default_tolerance, pseudo_inverse
from jaxdyn._types import Array, Float, Int
from jaxdyn.constraints._dynamics import ConstraintStatus
from jaxdyn.constraints._evaluate import as_constraints, bias, evaluated, linearised
from jaxdyn.constraints._kkt import KKT
from jaxdyn.dynamics import TaskSpaceDynamics, bias_forces, mass_matrix, rnea
from jaxdyn.kinematics import LOCAL, difference, jacobian, jacobian_derivative
from jaxdyn.model import Model


class ReducedDynamics(eqx.Module):
    """Result of `reduced_dynamics`: `inertia yddot + bias = J^T tau`."""

    acceleration: Float[Array, " ny"]
    inertia: Float[Array, "ny ny"]
    bias: Float[Array, " ny"]
    #: `v = J ydot`
    jacobian: Float[Array, "nv ny"]
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    a: Float[Array, " nv"]
    #: a `ConstraintStatus`
    status: Int[Array, ""]


def reduced_dynamics(
    model: Model,
    chart: Callable[[Any], Any],
    y: Float[Array, " ny"],
    ydot: Float[Array, " ny"],
    tau: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
    *,
    t: Any = None,
) -> ReducedDynamics:
    """Equations of motion in coordinates y of a constraint, which `q = chart(y)` meets by itself.

        J^T M J yddot + J^T (M Jdot ydot + h) = J^T (tau + J_ext^T external),    v = J(y) ydot

    With a time `t` the chart is `q = chart(y, t)`, and `v = J ydot + dq/dt`: functional coordinates relative to an
    object that moves by itself.

    J and `Jdot ydot` are forward derivatives of the chart on the configuration manifold, with no term left out. Forces
    that do no work on the constraint do not appear. The chart has to be regular: J of full column rank.

    Murray, Li and Sastry 1994, section 6.2.3.
    """
    place = (lambda y, s: chart(y)) if t is None else chart
    t = jnp.zeros((), y.dtype) if t is None else jnp.asarray(t, y.dtype)
    q = place(y, t)  # pyright: ignore[reportCallIssue]
    if jnp.shape(q) != (model.nq,) or jnp.shape(y) != jnp.shape(ydot):
        raise ShapeError(
            f"chart(y) has shape {jnp.shape(q)} and ydot {jnp.shape(ydot)}, expected {(model.nq,)}, a configuration, "
            f"and that of y, {jnp.shape(y)}"
        )
    one = jnp.ones_like(t)

    def velocity(y, t, ydot, tick):
        here = place(y, t)  # pyright: ignore[reportCallIssue]
        return jax.jvp(lambda y, t: difference(model, here, place(y, t)), (y, t), (ydot, tick))[1]  # pyright: ignore[reportCallIssue]

    j = jax.jacfwd(lambda e: velocity(y, t, e, 0 * one))(ydot)
    v, rest = jax.jvp(lambda y, t: velocity(y, t, ydot, one), (y, t), (ydot, one))
    root = jnp.linalg.cholesky(mass_matrix(model, q)).T @ j
    inverse, rank = pseudo_inverse(root, jnp.asarray(default_tolerance(root.dtype), root.dtype))
    bias = j.T @ rnea(model, q, v, rest, external)
    acceleration = inverse @ (inverse.T @ (j.T @ tau - bias))
    status = jnp.where(rank < y.shape[0], ConstraintStatus.SINGULAR_CHART, ConstraintStatus.SOLVED)
    status = jnp.where(jnp.isfinite(acceleration).all(), status, ConstraintStatus.NOT_FINITE).astype(jnp.int32)
    return ReducedDynamics(acceleration, root.T @ root, bias, j, q, v, j @ acceleration + rest, status)


def constrained_task_space_dynamics(
    model: Model,
    constraints: Any,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    name: str,
    *,
    reference=LOCAL,
    t: Any = 0.0,
    tolerance: Any = None,
) -> TaskSpaceDynamics:
    """`F = Lambda dV/dt + eta` of a link or frame of a constrained robot, V being its spatial velocity.

        Lambda = (J N J^T)^+,    eta = -Lambda (J a_0 + dJ/dt v)

    N is the constrained inverse inertia, `M^-1 - M^-1 A^T (A M^-1 A^T)^+ A M^-1`, and a_0 the acceleration without
    efforts. In directions in which constraints let the frame not move, both are zero; `full_rank` is 0 if there are
    any. As `jaxdyn.task_space_dynamics`, with which it agrees without constraints (Khatib 1987).
    """
    constraints = as_constraints(constraints)
    x = evaluated(model, t, q, v)
    kkt = KKT.of(mass_matrix(model, q), linearised(model, constraints, x)[0], tolerance)
    free, _ = kkt.solve(-bias_forces(model, q, v), -bias(model, constraints, x))
    j = jacobian(model, q, name, reference=reference)
    drift = jacobian_derivative(model, q, v, name, reference=reference) @ v
    root = kkt.admitted(j.T)
    tolerance = default_tolerance(q.dtype) if tolerance is None else tolerance
    inverse, rank = pseudo_inverse(root, jnp.asarray(tolerance, q.dtype))
    inertia = inverse @ inverse.T
    return TaskSpaceDynamics(inertia, -inertia @ (j @ free + drift), j, (rank == 6).astype(q.dtype))
