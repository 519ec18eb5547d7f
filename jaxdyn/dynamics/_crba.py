"""The mass matrix by the composite-rigid-body algorithm, and products of subspaces and composite inertias."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn import recursion as rc
from jaxdyn._numerics import kernel
from jaxdyn._types import Array, Float
from jaxdyn.dynamics._rnea import bias_forces
from jaxdyn.model import Model
from jaxdyn.recursion import (
    Bodies,
    Topology,
    TreeState,
    bodies,
    check_state,
    full_configuration,
    reduce_mass_matrix,
    sweep_up,
    to_dofs,
)
from jaxdyn.recursion import components as c


def subtree_sum(t: Topology, xs, lanes: int, dtype):
    """Sum of the components `xs` (a flat tuple over bodies) over the subtree of each body."""
    zero = tuple(jnp.zeros(lanes, dtype) for _ in xs)

    def step(total, x):
        total = c.add(total, x)
        return total, total

    return sweep_up(t.body_slots, step, zero, xs)


def outer(left, right):
    """`left_i . right_j` for all pairs of degrees of freedom, from vectors in flat components."""
    total = left[0][:, None] * right[0][None]
    for x, y in zip(left[1:], right[1:], strict=True):
        total = total + x[:, None] * y[None]
    return total


def mask_by_tree(t: Topology, above, below):
    """Entry (i, j) from `above` where i carries j, from `below` where j carries i, zero elsewhere."""
    carries = t.dof_ancestors.reshape(*t.dof_ancestors.shape, *[1] * (above.ndim - 2))
    return jnp.where(carries, above, jnp.where(carries.swapaxes(0, 1), below, 0))


def diagonal(x):
    """Diagonal matrices `(n, n, lanes)` from `(n, lanes)`."""
    return jnp.where(np.eye(x.shape[0], dtype=bool)[..., None], x[:, None], 0)


def _subspaces_and_momenta(t: Topology, b: Bodies, q):
    """Subspaces S and momenta `I^c S` of composite bodies in world axes, whose products are the mass matrix."""
    tree = TreeState(t, b, q, None, None, b.mass)
    r, p = tree.poses()
    inertia = rc.inertia_to_world(r, p, rc.inertial_moments(b))
    total = subtree_sum(t, (inertia[0], *inertia[1], *inertia[2]), tree.lanes, tree.dtype)
    composite = tuple(to_dofs(t, x) for x in total)
    s = tree.world_subspace(r, p)
    force = rc.apply_inertia((composite[0], composite[1:4], composite[4:]), s)
    return (*s[0], *s[1]), (*force[0], *force[1])


def assemble_mass_matrix(t: Topology, s, force, armature):
    """`M_ij = S_i . I^c_j S_j` where i carries j, mirrored, with the armatures on the diagonal."""
    return mask_by_tree(t, outer(s, force), outer(force, s)) + jnp.diag(armature)


factors_kernel = kernel(_subspaces_and_momenta)


def mass_matrix(model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    """Mass matrix `M(q)`, symmetric and positive definite, by the composite-rigid-body algorithm.

    `M_ij = S_i . I^c_j S_j` for a joint i that carries joint j, where `I^c_j` is the inertia of the subtree of joint j
    in common axes (Featherstone 2008, section 6.2). The armatures are added on the diagonal.

    Arguments:

    * `model`: the robot
    * `q`: configuration, `(nq,)`

    Returns M, `(nv, nv)`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    model = jd.robots.double_pendulum()
    M = jd.mass_matrix(model, jnp.array([0.1, 0.2]))
    ```
    """
    (q,) = check_state(model, q=q)
    return mass_matrix_of_bodies(model, bodies(model), q)


def mass_matrix_of_bodies(model: Model, b: Bodies, q):
    """`mass_matrix` for callers that have computed `bodies(model)` already."""
    t = model.topology
    if not t.bodies:
        return jnp.zeros((0, 0), q.dtype)
    subspaces, momenta = factors_kernel(t, b, full_configuration(model, q))
    return reduce_mass_matrix(model, assemble_mass_matrix(t, subspaces, momenta, b.armature))


def crba_solve(model: Model, q, v, tau, external=None) -> Float[Array, " nv"]:
    """Accelerations from `M a = tau - h + sum J^T f_ext` by Cholesky factorisation; arguments of `forward_dynamics`."""
    q, v, tau = check_state(model, q=q, v=v, tau=tau)
    return cho_solve(cho_factor(mass_matrix(model, q)), tau - bias_forces(model, q, v, external))
