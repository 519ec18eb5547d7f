"""The centre of mass of what moves."""

import jax.numpy as jnp

from jaxdyn._errors import check_shape
from jaxdyn._numerics import kernel
from jaxdyn._types import Array, Config, Float, Scalar, Vec3, Velocity
from jaxdyn.model import Model, Topology
from jaxdyn.model import _recursion as rc
from jaxdyn.model._bodies import Bodies, bodies, to_dofs
from jaxdyn.model._mimic import full_configuration, own_columns
from jaxdyn.model._sweep import sweep_up
from jaxdyn.spatial import _components as c


def _moments(t: Topology, b: Bodies, q):
    """Poses, subspaces and, of each body, mass and mass times centre of mass."""
    lanes = rc.lanes_of(q, b.rotation, b.translation, b.mass, b.com)
    r, p, s = rc.poses(t, b, q, lanes, travelling=False)
    mass = jnp.broadcast_to(b.mass, p[0].shape)
    return r, p, s, mass, c.scale(mass, c.add(p, c.rotate(r, c.vector(b.com))))


def _over(total, x):
    return jnp.where(total == 0, 0, x / jnp.where(total == 0, 1, total))


@kernel
def _center(t: Topology, b: Bodies, q):
    _, _, _, mass, moment = _moments(t, b, q)
    return jnp.stack([_over(mass.sum(0), x.sum(0)) for x in moment])


@kernel
def _center_jacobian(t: Topology, b: Bodies, q):
    """`J_k = (m_sub S_v + S_w x (m c)_sub) / m`, the sums over what coordinate k moves."""
    r, p, s, mass, moment = _moments(t, b, q)
    zero = jnp.zeros(mass.shape[-1], moment[0].dtype)

    def step(total, x):
        total = tuple(a + b for a, b in zip(total, x, strict=True))
        return total, total

    m, *h = sweep_up(t.body_slots, step, (zero,) * 4, (mass.astype(zero.dtype), *moment))
    wide = lambda x: to_dofs(t, x)
    rd, pd = tuple(tuple(map(wide, row)) for row in r), tuple(map(wide, p))
    w, v = rc.to_world(rd, pd, s if rc.translates(t) else (s[0], None))
    columns = c.add(c.scale(wide(m), v), c.cross(w, tuple(map(wide, h))))
    return jnp.stack([_over(mass.sum(0), x) for x in columns])


def total_mass(model: Model) -> Scalar:
    """Mass of all links that can move, kg; links fixed to the world are not counted."""
    if not model.topology.bodies:
        return jnp.zeros((), model.dtype)
    return bodies(model).mass.sum()


def center_of_mass(model: Model, q: Config) -> Vec3:
    """Centre of mass of all links that can move, in the world, `c = sum m_i c_i / sum m_i` (m).

    Links fixed to the world are not counted, as in Pinocchio. Zero for a model without mass.
    """
    q = check_shape("q", q, (model.nq,))
    if not model.topology.bodies:
        return jnp.zeros(3, model.dtype)
    return _center(model.topology, bodies(model), full_configuration(model, q))


def center_of_mass_velocity(model: Model, q: Config, v: Velocity) -> Vec3:
    """Velocity of the centre of mass in world axes, `cdot = J_c v` (m/s)."""
    q, v = check_shape("q", q, (model.nq,)), check_shape("v", v, (model.nv,))
    return jnp.matmul(center_of_mass_jacobian(model, q), v, precision="highest")


def center_of_mass_jacobian(model: Model, q: Config) -> Float[Array, "3 nv"]:
    """Jacobian `J_c` of the centre of mass in world axes: `cdot = J_c v`, `(3, nv)`.

    Column k is `(m S_v + S_w x m c) / m_total` with m and m c of the subtree that coordinate k moves.
    """
    q = check_shape("q", q, (model.nq,))
    if not model.topology.bodies:
        return jnp.zeros((3, model.nv), model.dtype)
    return own_columns(model, _center_jacobian(model.topology, bodies(model), full_configuration(model, q)))
