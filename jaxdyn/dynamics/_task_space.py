"""The equations of motion of a frame."""

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from jaxdyn._numerics import default_tolerance, pseudo_inverse
from jaxdyn._types import Array, Float
from jaxdyn.dynamics._forward import mass_matrix
from jaxdyn.dynamics._inverse import bias_forces, checked_state
from jaxdyn.kinematics import LOCAL, jacobian, jacobian_derivative
from jaxdyn.model import Model


class TaskSpaceDynamics(eqx.Module):
    """`F = inertia @ dV/dt + bias` for the spatial velocity V of a frame."""

    inertia: Float[Array, "6 6"]
    bias: Float[Array, "6"]
    jacobian: Float[Array, "6 nv"]
    #: whether the six directions can be moved independently; if not, inertia and bias belong to those that can
    full_rank: Float[Array, ""]


def task_space_dynamics(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], name: str, *, reference=LOCAL
) -> TaskSpaceDynamics:
    """`Lambda = (J M^-1 J^T)^+` and `eta = Lambda (J M^-1 h - dJ/dt v)` of a link or frame (Khatib 1987).

    The pseudo-inverse drops directions in which the frame cannot move (singular poses, fewer than six joints);
    `full_rank` is 1 where there are none and 0 otherwise.
    """
    q, v = checked_state(model, q, v)
    j = jacobian(model, q, name, reference=reference)
    drift = jacobian_derivative(model, q, v, name, reference=reference) @ v
    factor = jnp.linalg.cholesky(mass_matrix(model, q))
    half = lambda x: solve_triangular(factor, x, lower=True)
    root = half(j.T)  # whose square is the mobility
    inverse, rank = pseudo_inverse(root, jnp.asarray(default_tolerance(root.dtype), root.dtype))
    inertia = inverse @ inverse.T
    bias = inertia @ (root.T @ half(bias_forces(model, q, v)) - drift)
    return TaskSpaceDynamics(inertia, bias, j, (rank == 6).astype(root.dtype))
