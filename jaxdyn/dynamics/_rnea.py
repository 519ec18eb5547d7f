"""Inverse dynamics by the recursive Newton-Euler algorithm."""

import jax.numpy as jnp

from jaxdyn import recursion as rc
from jaxdyn._numerics import kernel
from jaxdyn._types import Array, Float
from jaxdyn.dynamics._rnea_pullback import pullback
from jaxdyn.model import Model
from jaxdyn.recursion import (
    Bodies,
    Topology,
    TreeState,
    bodies,
    body_wrenches,
    check_state,
    full_configuration,
    full_velocity,
    project_wrench,
    reduce_inertial_effort,
    six_columns,
    sweep_down,
    sweep_up,
)
from jaxdyn.recursion import components as c


def newton_euler_forces(tree: TreeState, external):
    """Downward sweep: pose, velocity, inertia about the origin and force `I a + v x* I v - f_ext` of each body."""

    def down(parent, x):
        pose, v, a = parent
        local, rate, acceleration, ten, load = x
        r, p = rc.compose_poses(pose, local)
        v, a = rc.accelerate(r, p, v, a, rate, acceleration)
        ten = rc.inertia_to_world(r, p, ten)
        f = rc.body_force(ten, v, a)
        f = c.add6(f, c.scale6(-1, c.force_to_world(r, p, load)))
        return ((r, p), v, a), (r, p, v, ten, f)

    root = (tree.root_pose(), tree.zero(), tree.gravity())
    xs = (tree.local, tree.rate, tree.acceleration, rc.inertial_moments(tree.bodies), six_columns(external))
    return sweep_down(tree.topology.body_slots, down, root, xs)


def _efforts(t: Topology, b: Bodies, q, v, a, external):
    """Efforts `S^T f + armature a`, f being the wrench that each joint transmits, in the frame of its child."""
    tree = TreeState(t, b, q, v, a, b.mass, external)
    r, p, _, _, f = newton_euler_forces(tree, external)

    def up(total, x):
        r, p, f = x
        f = c.add6(total, f)
        return f, c.force_to_local(r, p, f)

    wrench = sweep_up(t.body_slots, up, tree.zero(), (r, p, f))
    return project_wrench(t, tree.subspace, wrench) + b.armature * a


rnea_kernel = kernel(_efforts, pullback=pullback)


def rnea(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
) -> Float[Array, " nv"]:
    """Inverse dynamics: `tau = M(q) a + h(q, v) - sum J^T f_ext` by the recursive Newton-Euler algorithm.

    Arguments:

    * `model`: the robot
    * `q`: configuration, `(nq,)`
    * `v`: velocity, `(nv,)`, rad/s or m/s
    * `a`: acceleration, `(nv,)`, rad/s^2 or m/s^2
    * `external`: wrenches (moment, force) on the links, `(num_links, 6)`, in link axes about the link's origin, or None

    Returns the efforts tau, `(nv,)`, N m or N. Armatures are included; damping, friction and springs are not (add
    `passive_forces`). Arrays of a wrong shape raise `ShapeError`.

    The cost is linear in the number of joints (Featherstone 2008, table 5.1); a reverse-mode gradient with respect to
    all leaves costs about four evaluations (`dynamics/_rnea_pullback.py`).

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    model = jd.robots.double_pendulum()
    tau = jd.rnea(model, jnp.array([0.1, 0.2]), jnp.array([0.5, -0.5]), jnp.array([1.0, 2.0]))
    ```
    """
    q, v, a = check_state(model, q=q, v=v, a=a)
    wrenches = body_wrenches(model, external, q.dtype)
    if not model.topology.bodies:
        return jnp.zeros(0, q.dtype)
    state = full_configuration(model, q), full_velocity(model, v), full_velocity(model, a)
    effort = rnea_kernel(model.topology, bodies(model), *state, wrenches)
    return reduce_inertial_effort(model, effort, a)


def bias_forces(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
) -> Float[Array, " nv"]:
    """Bias forces `h(q, v)`, `(nv,)`: Coriolis, centrifugal and gravity terms, the efforts at zero acceleration.

    Wrenches `external` as for `rnea` enter with `-sum J^T f_ext`.
    """
    q, v = check_state(model, q=q, v=v)
    return rnea(model, q, v, jnp.zeros_like(v), external)


def gravity_forces(model: Model, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """Gravity forces `g(q) = dU/dq`, `(nv,)`: the efforts that keep the robot at rest."""
    (q,) = check_state(model, q=q)
    zero = jnp.zeros(model.nv, q.dtype)
    return rnea(model, q, zero, zero)
