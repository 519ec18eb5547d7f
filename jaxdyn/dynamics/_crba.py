"""The mass matrix by composite bodies, and what else is a product of subspaces and composite inertias."""

import jax.numpy as jnp
import numpy as np

from jaxdyn._numerics import kernel
from jaxdyn.model import Topology
from jaxdyn.model import _recursion as rc
from jaxdyn.model._bodies import Bodies, parallel_axis, to_dofs
from jaxdyn.model._sweep import sweep_up
from jaxdyn.spatial import _components as c


def world_subspace(t: Topology, r, p, s):
    """Motion subspaces in world axes, components over degrees of freedom."""
    rd = tuple(tuple(to_dofs(t, x) for x in row) for row in r)
    pd = tuple(to_dofs(t, x) for x in p)
    return rc.to_world(rd, pd, s if rc.translates(t) else (s[0], None))


def inertia_about_origin(r, p, mass, com, inertia):
    """`(m, m c, I)` of a body in world axes about the origin: ten numbers that add over a subtree."""
    centre = c.add(p, c.rotate(r, com))
    turned = c.sym_conjugate(r, inertia)
    shifted = tuple(i + mass * d for i, d in zip(turned, parallel_axis(centre), strict=True))
    return (mass, c.scale(mass, centre), shifted)


def apply_inertia(ten, m):
    """Momentum `I m` for an inertia `(m, m c, I)` about the origin."""
    mass, first, second = ten
    n = c.add(c.sym_rotate(second, m[0]), c.cross(first, m[1]))
    return (n, c.sub(c.scale(mass, m[1]), c.cross(first, m[0])))


def subtree_sum(t: Topology, xs, lanes: int, dtype):
    """Sum of the components `xs` (a flat tuple over bodies) over the subtree of each body."""
    zero = tuple(jnp.zeros(lanes, dtype) for _ in xs)

    def step(total, x):
        total = c.add(total, x)
        return total, total

    return sweep_up(t.body_slots, step, zero, xs)


def outer(left, right):
    """`left_i . right_j` for all pairs, from vectors over degrees of freedom in flat components."""
    total = left[0][:, None] * right[0][None]
    for x, y in zip(left[1:], right[1:], strict=True):
        total = total + x[:, None] * y[None]
    return total


def masked(t: Topology, above, below):
    """Entry (i, j) from `above` where i carries j, from `below` where j carries i, zero elsewhere."""
    carries = t.dof_ancestors.reshape(*t.dof_ancestors.shape, *[1] * (above.ndim - 2))
    return jnp.where(carries, above, jnp.where(carries.swapaxes(0, 1), below, 0))


def diagonal(x):
    """Diagonal matrices out of `(n, lanes)`."""
    return jnp.where(np.eye(x.shape[0], dtype=bool)[..., None], x[:, None], 0)


def _factors(t: Topology, b: Bodies, q):
    """World-axes subspaces S and momenta `I^c S` of composite bodies, whose products are the mass matrix."""
    lanes = rc.lanes_of(q, b.mass, b.translation, b.rotation)
    dtype = jnp.result_type(q, b.mass)
    r, p, s = rc.poses(t, b, q, lanes)
    own = inertia_about_origin(r, p, *rc.inertial_components(b))
    total = subtree_sum(t, (own[0], *own[1], *own[2]), lanes, dtype)
    composite = tuple(to_dofs(t, x) for x in total)
    s = world_subspace(t, r, p, s)
    force = apply_inertia((composite[0], composite[1:4], composite[4:]), s)
    return (*s[0], *s[1]), (*force[0], *force[1])


def symmetric(t: Topology, s, force, armature):
    """`M_ij = S_i . I^c_j S_j` where i carries j, mirrored, with the armatures on the diagonal."""
    return masked(t, outer(s, force), outer(force, s)) + jnp.diag(armature)


factors_kernel = kernel(_factors)
