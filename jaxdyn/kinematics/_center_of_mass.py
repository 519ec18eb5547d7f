"""Centre of mass, its velocity and its Jacobian."""

import jax.numpy as jnp

from jaxdyn import recursion as rc
from jaxdyn._numerics import kernel
from jaxdyn._types import Array, Config, Float, Scalar, Vec3, Velocity
from jaxdyn.model import Model, Topology
from jaxdyn.recursion import (
    Bodies,
    TreeState,
    bodies,
    check_model,
    check_state,
    full_configuration,
    reduce_columns,
    sweep_up,
    to_dofs,
)
from jaxdyn.recursion import components as c


def _mass_moments(t: Topology, b: Bodies, q):
    """The tree at `q`, the poses of the bodies, their masses, and mass times centre of mass of each."""
    tree = TreeState(t, b, q, None, None, b.mass, b.com, travelling=False)
    r, p = tree.poses()
    mass, first, _ = rc.inertial_moments(b)
    mass = jnp.broadcast_to(mass, p[0].shape)
    return tree, (r, p), mass, c.add(c.scale(mass, p), c.rotate(r, first))


def _divide_or_zero(total, x):
    """`x / total`, and 0 where the total is 0."""
    return jnp.where(total == 0, 0, x / jnp.where(total == 0, 1, total))


@kernel
def _center(t: Topology, b: Bodies, q):
    _, _, mass, moment = _mass_moments(t, b, q)
    return jnp.stack([_divide_or_zero(mass.sum(0), x.sum(0)) for x in moment])


@kernel
def _center_jacobian(t: Topology, b: Bodies, q):
    """`J_k = (m_sub S_v + S_w x (m c)_sub) / m`, with sums over the bodies that coordinate k moves."""
    tree, pose, mass, moment = _mass_moments(t, b, q)
    zero = jnp.zeros(mass.shape[-1], moment[0].dtype)

    def step(total, x):
        total = tuple(a + b for a, b in zip(total, x, strict=True))
        return total, total

    m, *h = sweep_up(t.body_slots, step, (zero,) * 4, (mass.astype(zero.dtype), *moment))
    over_dofs = lambda x: to_dofs(t, x)
    w, v = tree.world_subspace(*pose)
    columns = c.add(c.scale(over_dofs(m), v), c.cross(w, tuple(map(over_dofs, h))))
    return jnp.stack([_divide_or_zero(mass.sum(0), x) for x in columns])


def total_mass(model: Model) -> Scalar:
    """Mass of all links that can move (kg); links fixed to the world do not count."""
    check_model(model)
    if not model.topology.bodies:
        return jnp.zeros((), model.dtype)
    return bodies(model).mass.sum()


def center_of_mass(model: Model, q: Config) -> Vec3:
    """Centre of mass of all links that can move, in world axes, `c = sum m_i c_i / sum m_i`.

    Arguments:

    * `model`: the robot
    * `q`: configuration, `(nq,)`

    Returns c, `(3,)`, in m, zero for a model without mass. Links fixed to the world do not count, as in Pinocchio.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    model = jd.robots.pendulum()
    c = jd.center_of_mass(model, jnp.array([0.3]))
    ```
    """
    (q,) = check_state(model, q=q)
    if not model.topology.bodies:
        return jnp.zeros(3, model.dtype)
    return _center(model.topology, bodies(model), full_configuration(model, q))


def center_of_mass_velocity(model: Model, q: Config, v: Velocity) -> Vec3:
    """Velocity of the centre of mass in world axes, `cdot = J_c v` (m/s)."""
    q, v = check_state(model, q=q, v=v)
    return jnp.matmul(center_of_mass_jacobian(model, q), v, precision="highest")


def center_of_mass_jacobian(model: Model, q: Config) -> Float[Array, "3 nv"]:
    """Jacobian `J_c` of the centre of mass in world axes, `cdot = J_c v`, `(3, nv)`.

    Column k is `(m S_v + S_w x m c) / m_total`, with m and m c of the subtree that coordinate k moves.
    """
    (q,) = check_state(model, q=q)
    if not model.topology.bodies:
        return jnp.zeros((3, model.nv), model.dtype)
    return reduce_columns(model, _center_jacobian(model.topology, bodies(model), full_configuration(model, q)))
