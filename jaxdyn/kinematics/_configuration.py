"""The configuration manifold: integration, differences, neutral and random configurations."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._numerics import kernel
from jaxdyn._types import Config, Velocity
from jaxdyn.joints import AbstractJoint
from jaxdyn.model import Model, Topology
from jaxdyn.recursion import check_model, check_state


def _independent_members(t: Topology) -> list[list[int]]:
    """For each joint type, the members with independent coordinates, in the order of the state."""
    count, members = [0] * len(t.group_sizes), [[] for _ in t.group_sizes]
    independent = set(t.independent)
    for body, link in enumerate(t.bodies):
        g = t.groups[link]
        if body in independent:
            members[g].append(count[g])
        count[g] += 1
    return members


def _runs(t: Topology) -> list[tuple[int, int, int]]:
    """Bodies with independent coordinates, in order, as runs `(group, first independent member, count)`."""
    runs: list[list[int]] = []
    count = [0] * len(t.group_sizes)
    for body in t.independent:
        g = t.groups[t.bodies[body]]
        if runs and runs[-1][0] == g:
            runs[-1][2] += 1
        else:
            runs.append([g, count[g], 1])
        count[g] += 1
    return [(g, first, n) for g, first, n in runs]


def _independent_joints(model: Model) -> tuple[AbstractJoint, ...]:
    """`model.joints` without the joints that mimic others."""
    t = model.topology
    if not t.mimics:
        return model.joints
    rows = [np.array(m, int) for m in _independent_members(t)]
    return tuple(jax.tree.map(lambda x, r=r: x[r], joint) for joint, r in zip(model.joints, rows, strict=True))


def _split(t: Topology, x, which: int) -> dict[int, jax.Array]:
    """Coordinates (`which` 0) or velocities (1) by joint type: `(size, members, ...)`."""
    parts: dict[int, list] = {}
    at = 0
    for g, _, n in _runs(t):
        size = t.group_sizes[g][which]
        parts.setdefault(g, []).append(x[at : at + n * size].reshape(n, size, *x.shape[1:]))
        at += n * size
    concatenate = lambda rows: rows[0] if len(rows) == 1 else jnp.concatenate(rows)
    return {g: jnp.moveaxis(concatenate(rows), 1, 0) for g, rows in parts.items()}


def _merge(t: Topology, groups: dict[int, jax.Array]):
    """Inverse of `_split`."""
    parts = []
    for g, first, n in _runs(t):
        x = jnp.moveaxis(groups[g][:, first : first + n], 0, 1)
        parts.append(x.reshape(n * x.shape[1], *x.shape[2:]))
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)


def _apply_by_type(t: Topology, joints, method: str, x, y, kinds: tuple[int, int]):
    """Applies a method of two arguments to all joints, those of one type at once."""
    lanes = max(x.shape[-1], y.shape[-1], *(p.shape[-1] for p in jax.tree.leaves(joints)), 1)
    to_lanes = lambda z: jnp.broadcast_to(z, (*z.shape[:-1], lanes))
    xs, ys = _split(t, to_lanes(x), kinds[0]), _split(t, to_lanes(y), kinds[1])
    out = {}
    for g in xs:
        joint = jax.tree.map(lambda p: jnp.moveaxis(p, 0, -2), joints[g])
        out[g] = getattr(joint, method)(xs[g], ys[g])
    return _merge(t, out)


@kernel
def _integrate(t: Topology, joints, q, dv):
    return _apply_by_type(t, joints, "integrate", q, dv, (0, 1))


@kernel
def _difference(t: Topology, joints, q0, q1):
    return _apply_by_type(t, joints, "difference", q0, q1, (0, 0))


def neutral(model: Model) -> Config:
    """The configuration with every joint at zero, `(nq,)`: vectors are 0, quaternions the identity."""
    check_model(model)
    t = model.topology
    if model.nq == 0:
        return jnp.zeros(0, model.dtype)
    groups = {}
    for g, members in enumerate(_independent_members(t)):
        if members:
            one = jax.tree.map(lambda x, m=members: x[m[0]], model.joints[g]).neutral(model.dtype)
            groups[g] = jnp.broadcast_to(one[:, None], (one.shape[0], len(members)))
    return _merge(t, groups)


def random_configuration(model: Model, key) -> Config:
    """A random configuration, `(nq,)`, from a `jax.random` key.

    Coordinates are uniform between their position limits where both are finite. Other coordinates are drawn by their
    joint: angles in (-pi, pi), lengths in (-1, 1) m, rotations uniformly.
    """
    check_model(model)
    t = model.topology
    if model.nq == 0:
        return jnp.zeros(0, model.dtype)
    key, inside = jax.random.split(key)
    groups = {}
    joints = _independent_joints(model)
    for g, members in enumerate(_independent_members(t)):
        if members:
            keys = jax.random.split(jax.random.fold_in(key, g), len(members))
            draw = lambda joint, k: joint.random(k, model.dtype)
            groups[g] = jax.vmap(draw, out_axes=1)(joints[g], keys)
    free = _merge(t, groups)
    lower, upper = model.limits.lower, model.limits.upper
    bounded = jnp.isfinite(lower) & jnp.isfinite(upper)
    lower, upper = (jnp.where(bounded, x, 0) for x in (lower, upper))
    fraction = jax.random.uniform(inside, (model.nq,), model.dtype)
    return jnp.where(bounded, lower + fraction * (upper - lower), free)


def integrate(model: Model, q: Config, dv: Velocity) -> Config:
    """The configuration reached from q at the constant velocity dv in unit time, `q (+) dv`.

    Vectors add; rotations and free bodies follow the exponential map of their group, `T exp(dv)`, with dv in child
    axes (Blanco 2010, "A tutorial on SE(3) transformation parameterizations", section 7).

    Arguments:

    * `model`: the robot
    * `q`: configuration, `(nq,)`
    * `dv`: tangent vector, `(nv,)`, rad or m; for a time step dt pass `v * dt`

    Returns the new configuration, `(nq,)`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    model = jd.robots.double_pendulum()
    q = jd.integrate(model, jnp.array([0.1, 0.2]), 0.01 * jnp.array([1.0, -1.0]))
    ```
    """
    q, dv = check_state(model, q=q, dv=dv)
    if model.nq == 0:
        return q
    return _integrate(model.topology, _independent_joints(model), q, dv)


def difference(model: Model, q0: Config, q1: Config) -> Velocity:
    """The constant velocity that leads from q0 to q1 in unit time, `q1 (-) q0`: the inverse of `integrate`.

    Rotations and continuous joints take the shortest way, by at most pi.

    Arguments:

    * `model`: the robot
    * `q0`, `q1`: configurations, `(nq,)`

    Returns the tangent vector, `(nv,)`, rad or m, with `integrate(model, q0, difference(model, q0, q1))` equal to q1.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    model = jd.robots.double_pendulum()
    dv = jd.difference(model, jnp.array([0.1, 0.2]), jnp.array([0.3, 0.1]))
    ```
    """
    q0, q1 = check_state(model, q0=q0, q1=q1)
    if model.nq == 0:
        return jnp.zeros(0, q0.dtype)
    return _difference(model.topology, _independent_joints(model), q0, q1)


def configuration_velocity(model: Model, q: Config, v: Velocity) -> Config:
    """Rate of the coordinates, `qdot = d/dt (q (+) t v)` at `t = 0`, `(nq,)`.

    It equals v for vectors; for quaternions `qdot = q (0, w) / 2`.
    """
    q, v = check_state(model, q=q, v=v)
    return jax.jvp(lambda dv: integrate(model, q, dv), (jnp.zeros_like(v),), (v,))[1]
