"""Constrained dynamics in reduced coordinates and in task space."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ShapeError, check_is_array
from jaxdyn._numerics import default_tolerance, pseudo_inverse
from jaxdyn._types import Array, Float, Int
from jaxdyn.constraints._dynamics import ConstraintStatus
from jaxdyn.constraints.contract import ConstraintSet
from jaxdyn.constraints.evaluation import (
    as_constraints,
    solve_constrained_motion,
)
from jaxdyn.dynamics import TaskSpaceDynamics, mass_matrix, rnea
from jaxdyn.kinematics import LOCAL, difference, jacobian, jacobian_derivative
from jaxdyn.model import Model
from jaxdyn.recursion import check_state


class ReducedDynamics(eqx.Module):
    """Result of `reduced_dynamics`: `inertia yddot + bias = J^T tau`."""

    #: yddot
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
    chart: Callable[..., Array],
    y: Float[Array, " ny"],
    ydot: Float[Array, " ny"],
    tau: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
    *,
    t: ArrayLike | None = None,
) -> ReducedDynamics:
    """Equations of motion in independent coordinates y of a constraint, given by a chart `q = chart(y)`.

        J^T M J yddot + J^T (M Jdot ydot + h) = J^T (tau + J_ext^T external),    v = J(y) ydot

    Every `chart(y)` satisfies the constraint, so constraint forces do not appear. J and `Jdot ydot` are forward
    derivatives of the chart on the configuration manifold, with every term.

    Arguments:

    * `chart`: function from y `(ny,)` to q `(nq,)`, with a Jacobian J of full column rank. With a time `t` it is
      `chart(y, t)` and `v = J ydot + dq/dt`, for coordinates relative to an object with prescribed motion.
    * `y`, `ydot`: `(ny,)`.
    * `tau`: generalised forces `(nv,)`, N m or N.
    * `external`: wrenches on the links `(links, 6)` in link axes.

    Returns a `ReducedDynamics`; its status is `SINGULAR_CHART` where J loses rank. Raises `ShapeError` if the chart
    does not return a configuration. Murray, Li and Sastry 1994, section 6.2.3.
    """
    (tau,) = check_state(model, tau=tau)
    for name, x in (("y", y), ("ydot", ydot)):
        check_is_array(name, x, "(ny,)")
    configuration = (lambda y, s: chart(y)) if t is None else chart
    t = jnp.zeros((), y.dtype) if t is None else jnp.asarray(t, y.dtype)
    q = configuration(y, t)  # pyright: ignore[reportCallIssue]
    if jnp.shape(q) != (model.nq,) or jnp.shape(y) != jnp.shape(ydot):
        raise ShapeError(
            f"chart(y) has shape {jnp.shape(q)} and ydot {jnp.shape(ydot)}; expected a configuration, {(model.nq,)}, "
            f"and the shape of y, {jnp.shape(y)}"
        )
    one = jnp.ones_like(t)

    def velocity(y, t, ydot, dt):
        here = configuration(y, t)  # pyright: ignore[reportCallIssue]
        return jax.jvp(lambda y, t: difference(model, here, configuration(y, t)), (y, t), (ydot, dt))[1]  # pyright: ignore[reportCallIssue]

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
    constraints: ConstraintSet,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    name: str,
    *,
    reference=LOCAL,
    t: ArrayLike = 0.0,
    tolerance: ArrayLike | None = None,
) -> TaskSpaceDynamics:
    """Task-space dynamics `F = Lambda dV/dt + eta` of a frame of a constrained robot with spatial velocity V.

        Lambda = (J N J^T)^+,    eta = -Lambda (J a_0 + dJ/dt v)

    `N = M^-1 - M^-1 A^T (A M^-1 A^T)^+ A M^-1` is the inverse inertia of the constrained robot and a_0 its
    acceleration under zero efforts. Lambda and eta vanish in directions in which the constraints prevent motion of the
    frame; `full_rank` is then 0. Without constraints the result is that of `jaxdyn.task_space_dynamics`.

    Arguments: `name` of a link or frame, `reference` as for `jaxdyn.jacobian`, time `t` (s), and the rank
    `tolerance` of `constrained_dynamics`. Khatib 1987.
    """
    q, v = check_state(model, q=q, v=v)
    constraints = as_constraints(constraints)
    solution = solve_constrained_motion(model, constraints, t, q, v, jnp.zeros_like(v), tolerance=tolerance)
    j = jacobian(model, q, name, reference=reference)
    drift = jacobian_derivative(model, q, v, name, reference=reference) @ v
    root = solution.kkt.free_component(j.T)
    tolerance = default_tolerance(q.dtype) if tolerance is None else tolerance
    inverse, rank = pseudo_inverse(root, jnp.asarray(tolerance, q.dtype))
    inertia = inverse @ inverse.T
    return TaskSpaceDynamics(inertia, -inertia @ (j @ solution.a + drift), j, (rank == 6).astype(q.dtype))
