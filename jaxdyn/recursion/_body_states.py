"""Poses, motion subspaces, velocities and accelerations of all moving bodies, in world axes."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import kernel
from jaxdyn._types import Array, Float
from jaxdyn.recursion._bodies import Bodies, bodies, link_placements
from jaxdyn.recursion._mimic import full_configuration, full_velocity
from jaxdyn.recursion._steps import accelerate, compose_poses, stack6, stack_pose
from jaxdyn.recursion._sweep import sweep_down
from jaxdyn.recursion._topology import Topology
from jaxdyn.recursion._tree import TreeModel
from jaxdyn.recursion._tree_state import TreeState


class BodyStates(eqx.Module):
    """One row per moving body (`Topology.bodies`); six-vectors in world axes about the world's origin."""

    rotation: Float[Array, "bodies 3 3"]
    translation: Float[Array, "bodies 3"]
    #: motion subspace, one row per degree of freedom (mimic joints included)
    subspace: Float[Array, "full_nv 6"]
    velocity: Float[Array, "bodies 6"]
    #: spatial acceleration, without gravity
    acceleration: Float[Array, "bodies 6"]


@kernel
def _body_states(t: Topology, b: Bodies, q, v, a):
    tree = TreeState(t, b, q, v, a, travelling=False)

    def step(parent, x):
        pose, v, a = parent
        local, rate, acceleration = x
        r, p = compose_poses(pose, local)
        v, a = accelerate(r, p, v, a, rate, acceleration)
        return ((r, p), v, a), (r, p, v, a)

    root = (tree.root_pose(), tree.zero(), tree.zero())
    r, p, v, a = sweep_down(t.body_slots, step, root, (tree.local, tree.rate, tree.acceleration))
    return *stack_pose(r, p), stack6(tree.world_subspace(r, p)), stack6(v), stack6(a)


def body_states(
    model: TreeModel, q, v: Float[Array, " nv"] | None = None, a: Float[Array, " nv"] | None = None
) -> BodyStates:
    """Poses, motion subspaces, velocities and accelerations of the moving bodies; v and a default to zero."""
    t = model.topology
    if not t.bodies:
        empty = lambda *shape: jnp.zeros(shape, model.dtype)
        return BodyStates(empty(0, 3, 3), empty(0, 3), empty(0, 6), empty(0, 6), empty(0, 6))
    q = full_configuration(model, q)
    zero = jnp.zeros(t.full_nv, q.dtype)
    v = zero if v is None else full_velocity(model, v)
    a = zero if a is None else full_velocity(model, a)
    return BodyStates(*_body_states(t, bodies(model), q, v, a))


@kernel
def _body_poses(t: Topology, b: Bodies, q):
    return stack_pose(*TreeState(t, b, q, travelling=False).poses())


def body_poses(model: TreeModel, q):
    """Rotations `(nb, 3, 3)` and positions `(nb, 3)` of the moving bodies in the world."""
    return _body_poses(model.topology, bodies(model), full_configuration(model, q))


def link_offsets(model: TreeModel):
    """`link_placements` of a model, also of one without links."""
    if not model.topology.parents:
        return jnp.zeros((0, 3, 3), model.dtype), jnp.zeros((0, 3), model.dtype)
    return link_placements(model.topology, model.placements.rotation, model.placements.translation)
