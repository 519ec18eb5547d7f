"""From the leaves of a model to the numbers that the recursions run on.

Links behind fixed joints are merged into the body that carries them, inside the trace, so that every leaf
keeps its derivative. `Bodies` has one entry a moving body; its placements are relative to the parent
*body*.
"""

import functools
import operator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._numerics import kernel
from jaxdyn.model._model import Model
from jaxdyn.model._topology import Topology
from jaxdyn.spatial import _components as c
from jaxdyn.spatial import quaternion_to_matrix


class Bodies(eqx.Module):
    """Numbers of the moving bodies; `nb` of them."""

    rotation: Any  # (nb, 3, 3) axes of the joint frame in the parent body
    translation: Any  # (nb, 3)
    mass: Any  # (nb,)
    com: Any  # (nb, 3) in the child frame of the joint
    inertia: Any  # (nb, 6) about the centre of mass: xx xy xz yy yz zz
    joints: Any
    armature: Any  # (full_nv,)
    gravity: Any


@kernel
def link_placements(topology: Topology, rotation, translation):
    """Pose of each link's joint frame in its body or, behind fixed joints, of the link itself.

    Returns `(R, p)` for all links: for a link that moves, the pose of its joint frame in the parent body;
    for a link behind a fixed joint, its pose in the body that it is part of (or in the world).
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
        order = _placing(len(topology.parents), rows)
        put = lambda x, y: jnp.take(jnp.concatenate([x, y]), order, axis=0)  # noqa: B023
        r = [[put(r[i][j], new_r[i][j]) for j in range(3)] for i in range(3)]
        p = [put(p[i], new_p[i]) for i in range(3)]
    stacked = jnp.stack([jnp.stack(row, axis=1) for row in r], axis=1)
    return stacked, jnp.stack(p, axis=1)


def _placing(n: int, rows) -> np.ndarray:
    order = np.arange(n)
    order[list(rows)] = n + np.arange(len(rows))
    return order


def _fixed_levels(topology: Topology):
    """Links whose parent link is behind a fixed joint (so that poses must be chained), level by level."""
    level: dict[int, int] = {}
    for i, parent in enumerate(topology.parents):
        if parent >= 0 and topology.groups[parent] < 0:
            level[i] = level.get(parent, 0) + 1
    for k in range(1, max(level.values(), default=0) + 1):
        rows = [i for i, lev in level.items() if lev == k]
        yield rows, [topology.parents[i] for i in rows]


def _members(topology: Topology) -> np.ndarray:
    """`(nb, K)` links that make up each body, the moving link first, padded with `num_links`."""
    n = len(topology.parents)
    lists = [[link] for link in topology.bodies]
    for i, body in enumerate(topology.body_of_link):
        if topology.groups[i] < 0 and body >= 0:
            lists[body].append(i)
    width = max((len(x) for x in lists), default=1)
    return np.array([x + [n] * (width - len(x)) for x in lists], int).reshape(len(lists), width)


@kernel
def _merged_inertia(topology: Topology, links, rotation, translation):
    """Mass, centre of mass and inertia (six components) of each body, its fixed parts included."""
    i = links.inertia
    six = (i[:, 0, 0], (i[:, 0, 1] + i[:, 1, 0]) / 2, (i[:, 0, 2] + i[:, 2, 0]) / 2,
           i[:, 1, 1], (i[:, 1, 2] + i[:, 2, 1]) / 2, i[:, 2, 2])  # fmt: skip
    members = _members(topology)
    own = members[:, 0]
    if members.shape[1] == 1:
        if len(own) == len(topology.parents):
            return links.mass, links.com, jnp.stack(six, axis=1)
        pick = lambda x: jnp.take(x, own, axis=0)
        return pick(links.mass), pick(links.com), jnp.stack([pick(x) for x in six], axis=1)
    fixed = np.array([g < 0 for g in topology.groups])[:, None]
    r = tuple(tuple(jnp.where(fixed, rotation[:, a, b], float(a == b)) for b in range(3)) for a in range(3))
    p = tuple(jnp.where(fixed, translation[:, a], 0) for a in range(3))
    com = c.add(c.rotate(r, c.vector(links.com)), p)
    six = c.sym_conjugate(r, six)
    pad = lambda x: jnp.concatenate([x, jnp.zeros_like(x[:1])])
    gather = lambda x: jnp.take(pad(x), members, axis=0)  # (nb, K, lanes)
    mass = gather(links.mass)
    total = added(mass)
    com = tuple(gather(x) for x in com)
    safe = jnp.where(total == 0, 1, total)
    mean = tuple(jnp.where(total == 0, x[:, 0], added(mass * x) / safe) for x in com)
    d = tuple(x - m[:, None] for x, m in zip(com, mean, strict=True))
    six = tuple(gather(x) for x in six)
    shifted = tuple(added(s + mass * t) for s, t in zip(six, parallel_axis(d), strict=True))
    return total, jnp.stack(mean, axis=1), jnp.stack(shifted, axis=1)


def added(x):
    """Sum along the second axis, term by term."""
    return functools.reduce(operator.add, (x[:, i] for i in range(x.shape[1])))


def parallel_axis(d):
    """`|d|^2 1 - d d^T`, the inertia of a unit mass at d, in six components."""
    x, y, z = d
    return (y * y + z * z, -x * y, -x * z, x * x + z * z, -y * z, x * x + y * y)


def bodies(model: Model) -> Bodies:
    """The moving bodies of a model."""
    t = model.topology
    rotation, translation = link_placements(t, model.placements.rotation, model.placements.translation)
    mass, com, inertia = _merged_inertia(t, model.links, rotation, translation)
    if len(t.bodies) != len(t.parents):
        rows = np.array(t.bodies, int)
        rotation, translation = rotation[rows], translation[rows]
    armature = jnp.zeros(t.full_nv, model.dtype) if t.mimics else model.properties.armature
    return Bodies(rotation, translation, mass, com, inertia, model.joints, armature, model.gravity)


# --- joints, evaluated for all bodies at once, in components --------------------------------------


def joint_states(t: Topology, joints, q, v=None):
    """Pose, motion subspace and bias of every joint, in components over lanes.

    `q` is `(full_nq, lanes)`. Returns `(R, p, S, bias)`: R and p over bodies, S over degrees of freedom
    (child axes), bias over bodies. What no joint of the model has is None: p, the linear half of S, and
    bias.
    """
    poses: dict[int, Any] = {}
    for g, joint in enumerate(joints):
        nq, nv, _ = t.group_sizes[g]
        moved = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -2), joint)  # structure first, then (n, lanes)
        qs = _group_rows(t, q, g, t.q_start, nq)
        vs = None if v is None else _group_rows(t, v, g, t.v_start, nv)
        n = qs.shape[1]
        r, p = moved.transform(qs)
        s = moved.subspace(qs)
        b = None if vs is None else moved.bias(qs, vs)
        poses[g] = (r, p, s, b, n)
    lin = any(size[2] for size in t.group_sizes)
    biased = v is not None and any(x[3] is not None for x in poses.values())
    r = tuple(tuple(_over_bodies(t, poses, lambda x, i=i, j=j: x[0][i, j]) for j in range(3)) for i in range(3))
    p = tuple(_over_bodies(t, poses, lambda x, i=i: x[1][i]) for i in range(3)) if lin else None
    s = [_over_dofs(t, poses, k) for k in (range(6) if lin else range(3))]
    zero = 0 * s[0]
    sub = (tuple(s[:3]), tuple(s[3:]) if lin else (zero, zero, zero))
    bias = None
    if biased:
        get = lambda x, k: jnp.zeros_like(x[1][0]) if x[3] is None else x[3][k]
        six = [_over_bodies(t, poses, lambda x, k=k: get(x, k)) for k in range(6)]
        bias = (tuple(six[:3]), tuple(six[3:]))
    return r, p, sub, bias


def joint_tangents(t: Topology, joints, q, v):
    """For each local coordinate number m of a velocity: `dq/dt` of all joints as that velocity is one.

    For joints without bias, whose subspace is constant, zeros stand in. Returns a list as long as the most
    velocities of a joint with bias.
    """
    moved = [jax.tree.map(lambda x: jnp.moveaxis(x, 0, -2), joint) for joint in joints]
    rows = lambda g, x, start, k: _group_rows(t, x, g, start, t.group_sizes[g][k])
    at = [(rows(g, q, t.q_start, 0), rows(g, v, t.v_start, 1)) for g in range(len(joints))]
    varies = [joint.bias(*x) is not None for joint, x in zip(moved, at, strict=True)]
    out = []
    for m in range(max(size[1] for size, varying in zip(t.group_sizes, varies, strict=True) if varying)):
        rates = {}
        for g, (joint, (qs, vs)) in enumerate(zip(moved, at, strict=True)):
            if varies[g] and m < vs.shape[0]:
                one = np.equal(np.arange(vs.shape[0]), m).reshape(-1, 1, 1)  # a constant: kernels cannot scatter
                ahead = jnp.broadcast_to(jnp.asarray(one, vs.dtype), vs.shape)
                rates[g] = jax.jvp(lambda dv: joint.integrate(qs, dv), (jnp.zeros_like(vs),), (ahead,))[1]  # noqa: B023
            else:
                rates[g] = jnp.zeros_like(qs)
        out.append(_over_coordinates(t, rates))
    return out


def _group_rows(t: Topology, x, group: int, start, size: int):
    """Coordinates of one joint type: `(size, members, lanes)`."""
    body = 0
    parts = []
    for g, _, n in t.runs:
        if g == group:
            at = start[body]
            parts.append(x[at : at + n * size].reshape(n, size, x.shape[-1]))
        body += n
    rows = parts[0] if len(parts) == 1 else jnp.concatenate(parts)
    return jnp.moveaxis(rows, 1, 0)


def _joined(parts):
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    lanes = max(x.shape[-1] for x in parts)
    return jnp.concatenate([jnp.broadcast_to(x, (x.shape[0], lanes)) for x in parts])


def _over_bodies(t: Topology, poses, pick):
    def part(g, first, n):
        x = pick(poses[g])
        x = jnp.broadcast_to(x, (poses[g][4], x.shape[-1]))
        return x[first : first + n]

    return _joined(part(*run) for run in t.runs)


def _over_dofs(t: Topology, poses, k: int):
    def part(g, first, n):
        x = poses[g][2][k]  # (nv, members, lanes)
        x = jnp.broadcast_to(x, (x.shape[0], poses[g][4], x.shape[-1]))[:, first : first + n]
        return jnp.moveaxis(x, 0, 1).reshape(n * x.shape[0], x.shape[-1])

    return _joined(part(*run) for run in t.runs)


def _over_coordinates(t: Topology, rows):
    """Inverse of `_group_rows` for all joint types."""

    def part(g, first, n):
        x = rows[g][:, first : first + n]
        return jnp.moveaxis(x, 0, 1).reshape(n * x.shape[0], x.shape[-1])

    return _joined(part(*run) for run in t.runs)


def to_bodies(t: Topology, x):
    """Sums an array over degrees of freedom into one over bodies."""
    if t.simple:
        return x
    at, parts = 0, []
    for g, _, n in t.runs:
        k = t.group_sizes[g][1]
        parts.append(added(x[at : at + n * k].reshape(n, k, x.shape[-1])))
        at += n * k
    return _joined(parts)


def to_dofs(t: Topology, x):
    """Repeats an array over bodies for each of their degrees of freedom."""
    if t.simple:
        return x
    at, parts = 0, []
    for g, _, n in t.runs:
        k = t.group_sizes[g][1]
        part = x[at : at + n]
        parts.append(jnp.broadcast_to(part[:, None], (n, k, x.shape[-1])).reshape(n * k, -1))
        at += n
    return _joined(parts)


def at_last_dof(t: Topology, x):
    """An array over bodies as one over degrees of freedom: at the last one of each body, zero elsewhere."""
    if t.simple:
        return x
    last = np.zeros(t.full_nv, bool)
    last[np.cumsum(t.body_nv) - 1] = True
    return jnp.where(last[:, None], to_dofs(t, x), 0)
