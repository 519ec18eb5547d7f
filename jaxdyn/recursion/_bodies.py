"""The moving bodies of a model: poses of their joint frames and merged inertias.

Links behind fixed joints are merged into the body to which they are attached, inside the trace, so that every leaf
keeps its derivative. `Bodies` has one row per moving body, in the order of `Topology.bodies`; placements are relative
to the parent *body*.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._numerics import kernel
from jaxdyn._types import Array, Float
from jaxdyn.joints import AbstractJoint
from jaxdyn.recursion import components as c
from jaxdyn.recursion._joint_states import add_second_axis
from jaxdyn.recursion._topology import Topology
from jaxdyn.recursion._tree import TreeModel
from jaxdyn.spatial import quaternion_to_matrix


class Bodies(eqx.Module):
    """Parameters of the moving bodies, with lanes as the last axis within kernels."""

    #: axes of the joint frame in the parent body
    rotation: Float[Array, "bodies 3 3 ..."]
    #: m
    translation: Float[Array, "bodies 3 ..."]
    #: kg
    mass: Float[Array, "bodies ..."]
    #: in the child frame of the joint, m
    com: Float[Array, "bodies 3 ..."]
    #: about the centre of mass, xx xy xz yy yz zz, kg m^2
    inertia: Float[Array, "bodies 6 ..."]
    #: first moment of mass about `com`, kg m: zero, but its derivative is not if several links of a body are massless.
    #: None if every body is one link
    moment: Float[Array, "bodies 3 ..."] | None
    #: one stacked joint per group, as in `Model.joints`
    joints: tuple[AbstractJoint, ...]
    armature: Float[Array, "full_nv ..."]
    gravity: Float[Array, "3 ..."]


@kernel
def link_placements(topology: Topology, rotation, translation):
    """Poses `(R, p)` in bodies, `(links, 3, 3)` and `(links, 3)`, from the placements in parent links.

    For a link behind a moving joint, the pose of its joint frame in the parent body; for a link behind a fixed joint,
    its own pose in the body that it belongs to. The world is the body of links that do not move.
    """
    own = quaternion_to_matrix(jnp.moveaxis(rotation, 1, 0))  # (3, 3, links, lanes)
    r = [[own[i, j] for j in range(3)] for i in range(3)]
    p = [translation[:, i] for i in range(3)]
    for rows, parents in _fixed_levels(topology):
        take = lambda x, k: jnp.take(x, np.array(k), axis=0)
        outer_r = tuple(tuple(take(x, parents) for x in row) for row in r)
        outer_p = tuple(take(x, parents) for x in p)
        inner_r = tuple(tuple(take(x, rows) for x in row) for row in r)
        inner_p = tuple(take(x, rows) for x in p)
        new_r = c.matmul(outer_r, inner_r)
        new_p = c.add(outer_p, c.rotate(outer_r, inner_p))
        order = _replacement_order(len(topology.parents), rows)
        put = lambda x, y: jnp.take(jnp.concatenate([x, y]), order, axis=0)  # noqa: B023
        r = [[put(r[i][j], new_r[i][j]) for j in range(3)] for i in range(3)]
        p = [put(p[i], new_p[i]) for i in range(3)]
    stacked = jnp.stack([jnp.stack(row, axis=1) for row in r], axis=1)
    return stacked, jnp.stack(p, axis=1)


def _replacement_order(n: int, rows) -> np.ndarray:
    order = np.arange(n)
    order[list(rows)] = n + np.arange(len(rows))
    return order


def _fixed_levels(topology: Topology):
    """Links whose parent link is behind a fixed joint, so that poses must be composed, level by level."""
    level: dict[int, int] = {}
    for i, parent in enumerate(topology.parents):
        if parent >= 0 and topology.groups[parent] < 0:
            level[i] = level.get(parent, 0) + 1
    for k in range(1, max(level.values(), default=0) + 1):
        rows = [i for i, lev in level.items() if lev == k]
        yield rows, [topology.parents[i] for i in rows]


def _links_of_bodies(topology: Topology) -> np.ndarray:
    """`(nb, K)` links that belong to each body, the moving link first, padded with `num_links`."""
    n = len(topology.parents)
    lists = [[link] for link in topology.bodies]
    for i, body in enumerate(topology.body_of_link):
        if topology.groups[i] < 0 and body >= 0:
            lists[body].append(i)
    width = max((len(x) for x in lists), default=1)
    return np.array([x + [n] * (width - len(x)) for x in lists], int).reshape(len(lists), width)


@kernel
def _merge_inertias(topology: Topology, links, rotation, translation):
    """Mass, centre of mass, inertia (six components) and first moment of each body, fixed links included."""
    i = links.inertia  # its symmetric part, in six components
    six = (i[:, 0, 0], (i[:, 0, 1] + i[:, 1, 0]) / 2, (i[:, 0, 2] + i[:, 2, 0]) / 2,
           i[:, 1, 1], (i[:, 1, 2] + i[:, 2, 1]) / 2, i[:, 2, 2])  # fmt: skip
    members = _links_of_bodies(topology)
    own = members[:, 0]
    if members.shape[1] == 1:  # every body is one link: nothing to merge
        if len(own) == len(topology.parents):
            return links.mass, links.com, jnp.stack(six, axis=1), None
        pick = lambda x: jnp.take(x, own, axis=0)
        return pick(links.mass), pick(links.com), jnp.stack([pick(x) for x in six], axis=1), None
    fixed = np.array([g < 0 for g in topology.groups])[:, None]
    # poses of the links in their bodies: the identity for the link behind the moving joint
    r = tuple(tuple(jnp.where(fixed, rotation[:, a, b], float(a == b)) for b in range(3)) for a in range(3))
    p = tuple(jnp.where(fixed, translation[:, a], 0) for a in range(3))
    com = c.add(c.rotate(r, c.vector(links.com)), p)
    six = c.sym_conjugate(r, six)
    # the padding of `members` refers to a massless link after the last one
    pad = lambda x: jnp.concatenate([x, jnp.zeros_like(x[:1])])
    gather = lambda x: jnp.take(pad(x), members, axis=0)  # (nb, K, lanes)
    mass = gather(links.mass)
    total = add_second_axis(mass)
    com = tuple(gather(x) for x in com)
    # `com` of a massless body is the centre of its first link, since 0/0 has no derivative: `moment` has it
    safe = jnp.where(total == 0, 1, total)
    mean = tuple(jnp.where(total == 0, x[:, 0], add_second_axis(mass * x) / safe) for x in com)
    d = tuple(x - m[:, None] for x, m in zip(com, mean, strict=True))
    six = tuple(gather(x) for x in six)
    shifted = tuple(add_second_axis(s + mass * t) for s, t in zip(six, parallel_axis(d), strict=True))
    moment = tuple(jnp.where(total == 0, add_second_axis(mass * x), 0) for x in d)
    return total, jnp.stack(mean, axis=1), jnp.stack(shifted, axis=1), jnp.stack(moment, axis=1)


def parallel_axis(d):
    """`|d|^2 1 - d d^T`, the rotational inertia of a unit mass at d, in six components."""
    x, y, z = d
    return (y * y + z * z, -x * y, -x * z, x * x + z * z, -y * z, x * x + y * y)


def bodies(model: TreeModel) -> Bodies:
    """The moving bodies of a model."""
    t = model.topology
    rotation, translation = link_placements(t, model.placements.rotation, model.placements.translation)
    mass, com, inertia, moment = _merge_inertias(t, model.links, rotation, translation)
    if len(t.bodies) != len(t.parents):
        rows = np.array(t.bodies, int)
        rotation, translation = rotation[rows], translation[rows]
    armature = jnp.zeros(t.full_nv, model.dtype) if t.mimics else model.properties.armature
    return Bodies(rotation, translation, mass, com, inertia, moment, model.joints, armature, model.gravity)


def dof_carries_link(model: TreeModel) -> np.ndarray:
    """`[k, l]` is True if full degree of freedom k moves link l."""
    t = model.topology
    carries = np.zeros((len(t.bodies) + 1, len(t.bodies)), bool)
    carries[:-1] = t.body_ancestors.T
    index = np.where(np.array(t.body_of_link, int) < 0, len(t.bodies), np.array(t.body_of_link, int))
    return carries[index][:, t.dof_body].T
