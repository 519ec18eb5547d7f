"""Equations of motion of a robot in contact, projected onto its functional coordinates."""

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jax.typing import ArrayLike

from jaxdyn._numerics import default_tolerance, pseudo_inverse
from jaxdyn._types import Array, Float, Int
from jaxdyn.constraints import ConstraintStatus
from jaxdyn.contact.coordinates._coordinates import FunctionalCoordinates
from jaxdyn.dynamics import bias_forces, mass_matrix
from jaxdyn.model import Model
from jaxdyn.recursion import check_state


class ProjectedDynamics(eqx.Module):
    """Result of `projected_dynamics`: `Lambda sdd + eta = T + (0, F)`."""

    #: accelerations of the free coordinates
    free_acceleration: Float[Array, " free"]
    #: F, reactions along the constrained coordinates; N, N m
    reaction: Float[Array, " constrained"]
    #: Lambda
    inertia: Float[Array, "k k"]
    #: eta
    bias: Float[Array, " k"]
    #: T
    force: Float[Array, " k"]
    #: a `ConstraintStatus`
    status: Int[Array, ""]


def projected_dynamics(
    model: Model,
    coordinates: FunctionalCoordinates,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
    *,
    t: ArrayLike = 0.0,
    tolerance: ArrayLike | None = None,
) -> ProjectedDynamics:
    """Equations of motion in functional coordinates, with the constrained ones at zero.

        Lambda = (J H^-1 J^T)^-1,   eta = Lambda (J H^-1 h - A),   T = Lambda J H^-1 tau
        Lambda_ff sdd_f = T_f - eta_f,   F = Lambda_cf sdd_f + eta_c - T_c

    The robot's equation is `H a + h = tau + J_c^T F`. For as many coordinates as degrees of freedom, Lambda is
    `J^-T H J^-1` and T is `J^-T tau`. F equals the multipliers of `coordinates.constraint()` in
    `jaxdyn.constraints.constrained_dynamics`, which needs J_c only.

    Arguments: state `q`, `v` with `s^c = 0` and `ds^c/dt = 0`; `tau` `(nv,)`, N m or N; `external` wrenches on the
    links, `(links, 6)`, in link axes; time `t`, s; rank `tolerance` as in `constrained_dynamics`. Returns a
    `ProjectedDynamics`; its status is `SINGULAR_CHART` where the coordinates are not independent functions of the
    configuration, at singular poses or with more coordinates than degrees of freedom.
    """
    q, v, tau = check_state(model, q=q, v=v, tau=tau)
    s = coordinates.evaluate(model, q, v, t=t)
    factor = jnp.linalg.cholesky(mass_matrix(model, q))
    solve_factor = lambda x: solve_triangular(factor, x, lower=True)
    root = solve_factor(s.jacobian.T)
    tolerance = jnp.asarray(default_tolerance(q.dtype) if tolerance is None else tolerance, q.dtype)
    inverse, rank = pseudo_inverse(root, tolerance)
    inertia = inverse @ inverse.T
    force = inverse @ solve_factor(tau)
    bias = inverse @ solve_factor(bias_forces(model, q, v, external)) - inertia @ s.bias
    free, held = coordinates.split(jnp.arange(s.value.shape[0]))
    free_acceleration = _solve(inertia[free][:, free], (force - bias)[free], tolerance**2)
    reaction = inertia[held][:, free] @ free_acceleration + (bias - force)[held]
    status = jnp.where(rank < s.value.shape[0], ConstraintStatus.SINGULAR_CHART, ConstraintStatus.SOLVED)
    is_finite = jnp.isfinite(free_acceleration).all() & jnp.isfinite(reaction).all()
    status = jnp.where(is_finite, status, ConstraintStatus.NOT_FINITE).astype(jnp.int32)
    return ProjectedDynamics(free_acceleration, reaction, inertia, bias, force, status)


def _solve(matrix, x, tolerance):
    return pseudo_inverse(matrix, tolerance)[0] @ x if x.shape[0] else x
