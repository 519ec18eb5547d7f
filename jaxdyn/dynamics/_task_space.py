"""Equations of motion in the task space of a frame."""

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from jaxdyn._numerics import default_tolerance, pseudo_inverse
from jaxdyn._types import Array, Float
from jaxdyn.dynamics._crba import mass_matrix
from jaxdyn.dynamics._rnea import bias_forces
from jaxdyn.kinematics import LOCAL, AbstractReference, jacobian, jacobian_derivative
from jaxdyn.model import Model
from jaxdyn.recursion import check_state


class TaskSpaceDynamics(eqx.Module):
    """Equation of motion `F = inertia @ dV/dt + bias` for the spatial velocity V of a frame."""

    inertia: Float[Array, "6 6"]
    bias: Float[Array, "6"]
    jacobian: Float[Array, "6 nv"]
    #: 1 if the Jacobian has rank 6; otherwise 0, and inertia and bias are those of its range
    full_rank: Float[Array, ""]


def task_space_dynamics(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], name: str, *, reference: AbstractReference = LOCAL
) -> TaskSpaceDynamics:
    """Task-space inertia `Lambda = (J M^-1 J^T)^+` and bias `eta = Lambda (J M^-1 h - dJ/dt v)` (Khatib 1987).

    The pseudo-inverse omits directions in which the frame cannot move (singular configurations, fewer than six joints).

    Arguments:

    * `model`: the robot
    * `q`: configuration, `(nq,)`
    * `v`: velocity, `(nv,)`, rad/s or m/s
    * `name`: a link or a frame; an unknown name raises `ModelError`
    * `reference`: `LOCAL`, `WORLD` or `WORLD_ALIGNED`, axes and origin of velocity and wrench

    Returns `TaskSpaceDynamics`: `inertia` `(6, 6)`, `bias` `(6,)`, `jacobian` `(6, nv)`, and `full_rank`, 1 where the
    Jacobian has rank 6 and 0 otherwise.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    model = jd.robots.double_pendulum()
    q, v = jnp.array([0.1, 0.2]), jnp.array([0.5, -0.5])
    task = jd.task_space_dynamics(model, q, v, model.link_names[-1], reference=jd.WORLD_ALIGNED)
    ```
    """
    q, v = check_state(model, q=q, v=v)
    j = jacobian(model, q, name, reference=reference)
    drift = jacobian_derivative(model, q, v, name, reference=reference) @ v
    factor = jnp.linalg.cholesky(mass_matrix(model, q))
    solve_factor = lambda x: solve_triangular(factor, x, lower=True)
    root = solve_factor(j.T)  # root.T @ root is the inverse of the task-space inertia
    inverse, rank = pseudo_inverse(root, jnp.asarray(default_tolerance(root.dtype), root.dtype))
    inertia = inverse @ inverse.T
    bias = inertia @ (root.T @ solve_factor(bias_forces(model, q, v)) - drift)
    return TaskSpaceDynamics(inertia, bias, j, (rank == 6).astype(root.dtype))
