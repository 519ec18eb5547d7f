"""Poses, motion subspaces, velocities and accelerations of all moving bodies, in world axes."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import kernel
from jaxdyn._types import Array, Float
from jaxdyn.model import Model, Topology
from jaxdyn.model import _recursion as rc
from jaxdyn.model._bodies import Bodies, bodies, joint_states, to_dofs
from jaxdyn.model._mimic import full_configuration, full_velocity
from jaxdyn.model._sweep import sweep_down


class BodyStates(eqx.Module):
    """One row a moving body (`topology.bodies`), or a coordinate; six-vectors about the world's origin."""

    rotation: Float[Array, "bodies 3 3"]
    translation: Float[Array, "bodies 3"]
    #: motion subspace, one row a coordinate of any joint (mimicking ones included)
    subspace: Float[Array, "full_nv 6"]
    velocity: Float[Array, "bodies 6"]
    #: spatial acceleration, gravity not included
    acceleration: Float[Array, "bodies 6"]


@kernel
def _states(t: Topology, b: Bodies, q, v, a):
    lanes = rc.lanes_of(q, v, a, b.translation, b.rotation)
    dtype = jnp.result_type(q, v, a, b.translation)
    jr, jp, s, bias = joint_states(t, b.joints, q, v)
    local = rc.relative_poses(t, b, jr, jp, travelling=False)
    rate, acceleration = rc.joint_rates(t, s, bias, v, a)

    def step(parent, x):
        pose, v, a = parent
        local, rate, acceleration = x
        r, p = rc.chain(pose, local)
        v, a = rc.accelerate(r, p, v, a, rate, acceleration)
        return ((r, p), v, a), (r, p, v, a)

    root = (rc.root_state(lanes, dtype), rc.zero6(lanes, dtype), rc.zero6(lanes, dtype))
    r, p, vel, acc = sweep_down(t.body_slots, step, root, (local, rate, acceleration))
    wide = lambda x: to_dofs(t, x)
    rd, pd = tuple(tuple(wide(x) for x in row) for row in r), tuple(wide(x) for x in p)
    rotation = jnp.stack([jnp.stack(row, axis=1) for row in r], axis=1)
    return (
        rotation,
        jnp.stack(p, axis=1),
        rc.stack6(rc.to_world(rd, pd, s if rc.translates(t) else (s[0], None))),
        rc.stack6(vel),
        rc.stack6(acc),
    )


def body_states(model: Model, q, v: Any = None, a: Any = None) -> BodyStates:
    """Where the moving bodies are and how they move; v and a are zero if not given."""
    t = model.topology
    if not t.bodies:
        empty = lambda *shape: jnp.zeros(shape, model.dtype)
        return BodyStates(empty(0, 3, 3), empty(0, 3), empty(0, 6), empty(0, 6), empty(0, 6))
    q = full_configuration(model, q)
    zero = jnp.zeros(t.full_nv, q.dtype)
    v = zero if v is None else full_velocity(model, v)
    a = zero if a is None else full_velocity(model, a)
    return BodyStates(*_states(t, bodies(model), q, v, a))
