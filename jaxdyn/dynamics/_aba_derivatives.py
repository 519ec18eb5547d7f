"""Jacobians of forward dynamics: `da/dx = -M^-1 d rnea/dx` at the resulting acceleration, and `da/dtau = M^-1`."""

import functools as ft
import operator

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._numerics import kernel
from jaxdyn._types import Array, Float
from jaxdyn.dynamics._aba import aba_factors
from jaxdyn.dynamics._forward_dynamics import forward_dynamics
from jaxdyn.dynamics._rnea_derivatives import inverse_dynamics_jacobians, rnea_derivatives
from jaxdyn.model import Model
from jaxdyn.recursion import (
    Bodies,
    Topology,
    bodies,
    body_wrenches,
    check_state,
)


def _invert(matrix):
    """Inverse of a symmetric positive definite matrix by Gauss-Jordan sweeps, no pivoting needed."""
    n = matrix.shape[0]
    index = jnp.arange(n, dtype=jnp.int32)

    def sweep(m, k):
        is_pivot = (index == k)[:, None]
        row, column = m[k], m[:, k]
        pivot = 1 / row[k]
        row = jnp.where(is_pivot, pivot, row * pivot)
        others = jnp.where(is_pivot[None], 0, m) - column[:, None] * row[None]
        return jnp.where(is_pivot[:, None], row[None], others), None

    return jax.lax.scan(sweep, matrix, index)[0]


def _multiply(left, right):
    """`left @ right` by rows, each in one pass over `right`, which stays in cache."""
    n = left.shape[0]
    if n > _LARGEST_SUM:
        return jnp.einsum("ikl,kjl->ijl", left, right)

    def row(_, weights):
        return None, ft.reduce(operator.add, (weights[k] * right[k] for k in range(n)))

    return jax.lax.scan(row, None, left)[1]


_LARGEST_SUM = 64


def _forward_derivatives(t: Topology, b: Bodies, q, v, tau, external):
    a, *_ = aba_factors(t, b, q, v, tau, external)
    dq, dv, da = inverse_dynamics_jacobians(t, b, q, v, a, external)
    inverse = _invert(da)
    return _multiply(-inverse, dq), _multiply(-inverse, dv), inverse


forward_derivatives_kernel = kernel(_forward_derivatives)


class ForwardDynamicsDerivatives(eqx.Module):
    """Jacobians of `forward_dynamics`; derivatives with respect to q are in the tangent space of `integrate`."""

    dq: Float[Array, "nv nv"]
    dv: Float[Array, "nv nv"]
    #: the inverse of the mass matrix
    dtau: Float[Array, "nv nv"]


def forward_dynamics_derivatives(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
) -> ForwardDynamicsDerivatives:
    """Jacobians of `forward_dynamics` with respect to q, v and tau, by analytical formulas.

    `da/dq = -M^-1 d rnea/dq`, `da/dv = -M^-1 d rnea/dv` at the resulting acceleration, and `da/dtau = M^-1`.

    Arguments:

    * `model`: the robot
    * `q`: configuration, `(nq,)`
    * `v`: velocity, `(nv,)`, rad/s or m/s
    * `tau`: efforts, `(nv,)`, N m or N
    * `external`: wrenches (moment, force) on the links, `(num_links, 6)`, in link axes about the link's origin, or None

    Returns `ForwardDynamicsDerivatives` with `dq`, `dv` and `dtau`, `(nv, nv)` each, for wrenches that are constant in
    link axes.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    model = jd.robots.double_pendulum()
    q, v, tau = jnp.array([0.1, 0.2]), jnp.array([0.5, -0.5]), jnp.zeros(2)
    d = jd.forward_dynamics_derivatives(model, q, v, tau)
    linearised = d.dq, d.dv, d.dtau
    ```
    """
    q, v, tau = check_state(model, q=q, v=v, tau=tau)
    if not model.topology.mimics and model.nv:
        wrenches = body_wrenches(model, external, q.dtype)
        full = forward_derivatives_kernel(model.topology, bodies(model), q, v, tau, wrenches)
        return ForwardDynamicsDerivatives(*full)
    d = rnea_derivatives(model, q, v, forward_dynamics(model, q, v, tau, external), external)
    if not model.nv:
        return ForwardDynamicsDerivatives(d.dq, d.dv, d.da)
    factor = cho_factor(d.da)
    dq, dv, dtau = (cho_solve(factor, x) for x in (-d.dq, -d.dv, jnp.eye(model.nv, dtype=q.dtype)))
    return ForwardDynamicsDerivatives(dq, dv, dtau)
