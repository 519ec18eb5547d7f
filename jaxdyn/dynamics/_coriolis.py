"""The Coriolis matrix and the Christoffel symbols."""

import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.dynamics._links import link_states
from jaxdyn.kinematics import configuration_velocity
from jaxdyn.model import Model
from jaxdyn.recursion import body_states, check_state, dof_carries_link, reduce_columns, reduce_effort
from jaxdyn.spatial import skew


def coriolis_matrix(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, "nv nv"]:
    """Coriolis matrix `C(q, v)`, `(nv, nv)`, with `C v = h(q, v) - g(q)` and `dM/dt - 2 C` skew-symmetric.

    `C = sum of J_i^T (I_i dJ_i/dt + B_i J_i)`, `B = [v x* I - I v x + (.) x* I v] / 2` (Echeandia and Wensing
    2021, equation 14), with sums over common subtrees of 6x6 matrices.
    """
    q, v = check_state(model, q=q, v=v)
    s = link_states(model, q, v)
    rate = configuration_velocity(model, q, v)
    columns = lambda x: body_states(model, x).subspace
    sub, sub_rate = jax.jvp(columns, (q,), (rate,))
    momentum = jnp.einsum("lij,lj->li", s.inertia, s.velocity)
    b = (_force_operator(s.velocity) @ s.inertia - s.inertia @ _motion_operator(s.velocity)) / 2
    b = b + _swapped_force_operator(momentum) / 2
    carries = jnp.asarray(dof_carries_link(model), q.dtype)
    inertia, b = (jnp.einsum("kl,lij->kij", carries, x) for x in (s.inertia, b))
    above = model.topology.dof_ancestors
    dense = lambda left, m, right: jnp.einsum("ia,jab,jb->ij", left, m, right)
    outer = dense(sub, inertia, sub_rate) + dense(sub, b, sub)  # the common subtree is that of j
    inner = jnp.einsum("ia,iab,jb->ij", sub, inertia, sub_rate) + jnp.einsum("ia,iab,jb->ij", sub, b, sub)
    full = jnp.where(above, outer, jnp.where(above.T, inner, 0))
    return reduce_columns(model, reduce_effort(model, full))


def christoffel_symbols(model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv nv"]:
    """Christoffel symbols `G[i, j, k]`, with `C_ij = sum of G[i, j, k] v_k`.

    They are the derivatives of the Coriolis matrix with respect to v. For joints with `v = qdot` they are the symbols
    of the first kind, `G[i, j, k] = (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2`.
    """
    (q,) = check_state(model, q=q)
    zero = jnp.zeros(model.nv, q.dtype)
    return jax.jacfwd(lambda v: coriolis_matrix(model, q, v))(zero)


def _blocks(a, b, c, d):
    return jnp.concatenate([jnp.concatenate([a, b], axis=-1), jnp.concatenate([c, d], axis=-1)], axis=-2)


def _motion_operator(v):
    w, u = skew(v[..., :3]), skew(v[..., 3:])
    return _blocks(w, jnp.zeros_like(w), u, w)


def _force_operator(v):
    w, u = skew(v[..., :3]), skew(v[..., 3:])
    return _blocks(w, u, jnp.zeros_like(w), w)


def _swapped_force_operator(f):
    """Matrix of `m -> m x* f`."""
    n, l = skew(f[..., :3]), skew(f[..., 3:])
    return -_blocks(n, l, l, jnp.zeros_like(n))
