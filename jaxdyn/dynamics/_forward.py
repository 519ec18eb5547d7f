"""Forward dynamics, by articulated bodies or by factorising the mass matrix."""

from collections.abc import Callable

import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._types import Array, Float
from jaxdyn.dynamics._aba import aba_kernel
from jaxdyn.dynamics._crba import factors_kernel, symmetric
from jaxdyn.dynamics._inverse import bias_forces, checked_state
from jaxdyn.dynamics._loads import body_loads
from jaxdyn.model import Model
from jaxdyn.model._bodies import Bodies, bodies
from jaxdyn.model._mimic import full_configuration, own_columns, own_effort


def mass_matrix(model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    """`M(q)`, symmetric and positive definite, by composite rigid bodies: `M_ij = S_i . I_j S_j`.

    `I_j` is the inertia of all that joint j carries, in common axes, and joint i carries joint j
    (Featherstone 2008, section 6.2). The armatures are on its diagonal.
    """
    return mass_of_bodies(model, bodies(model), check_shape("q", q, (model.nq,)))


def mass_of_bodies(model: Model, b: Bodies, q):
    """`mass_matrix` out of `bodies(model)`, which others may have a use for."""
    t = model.topology
    if not t.bodies:
        return jnp.zeros((0, 0), q.dtype)
    subspaces, momenta = factors_kernel(t, b, full_configuration(model, q))
    full = symmetric(t, subspaces, momenta, b.armature)
    if not t.mimics:
        return full
    return own_columns(model, own_effort(model, full)) + jnp.diag(model.properties.armature)


def aba(model: Model, q, v, tau, external=None) -> Float[Array, " nv"]:
    """Accelerations by the articulated-body algorithm, linear in the number of joints.

    Not for models with mimicking joints, which couple branches of the tree.
    """
    if model.topology.mimics:
        raise ModelError("aba cannot couple mimicking joints; use method=jaxdyn.crba_solve")
    q, v, tau = checked_state(model, q, v, tau)
    load = body_loads(model, external, q.dtype)
    return aba_kernel(model.topology, bodies(model), q, v, tau, load) if model.nv else tau


def crba_solve(model: Model, q, v, tau, external=None) -> Float[Array, " nv"]:
    """Accelerations from `M a = tau - h`, by Cholesky factorisation of the mass matrix."""
    q, v, tau = checked_state(model, q, v, tau)
    return cho_solve(cho_factor(mass_matrix(model, q)), tau - bias_forces(model, q, v, external))


def forward_dynamics(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
    *,
    method: Callable | None = None,
) -> Float[Array, " nv"]:
    """Accelerations under the efforts tau: `a = M^-1 (tau - h + sum J^T f_ext)`.

    `method` is any function with this signature; by default `aba`, or `crba_solve` where joints mimic others. The
    derivative of `aba` is implicit, `da = M^-1 (dtau - d rnea)`: a gradient costs one solve and one pullback of `rnea`,
    and reaches every leaf.
    """
    if method is None:
        method = crba_solve if model.topology.mimics else aba
    return method(model, q, v, tau, external)
