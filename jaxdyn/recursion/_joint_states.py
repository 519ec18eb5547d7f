"""Evaluation of all joints of the tree, one call per group, in components over lanes.

A group is the stack of joints of one type (`Topology.groups`); lanes are the samples of a batch, the last axis. The
functions gather the coordinates of a group from the state, evaluate the joint type once, and concatenate the results
in the order of the bodies or of the degrees of freedom (dofs).
"""

import functools
import operator

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import PyTree
from jaxdyn.recursion._topology import Topology


def add_second_axis(x):
    """Sums along the second axis by explicit additions, which XLA compiles within a block (`jaxdyn._numerics`)."""
    return functools.reduce(operator.add, (x[:, i] for i in range(x.shape[1])))


def joint_states(t: Topology, joints, q, v=None):
    """Pose, motion subspace and bias of every joint, in components over lanes.

    `q` is `(full_nq, lanes)`, `v` is `(full_nv, lanes)` or None. Returns `(R, p, S, bias)`: R and p over bodies (pose
    of the child frame in the joint frame), S over degrees of freedom and `bias = Sdot v` over bodies, both in child
    axes. p is None and the linear half of S zero if no joint translates; bias is None if no subspace varies, or without
    v.
    """
    poses: dict[int, tuple[PyTree, ...]] = {}
    for g, joint in enumerate(joints):
        nq, nv, _ = t.group_sizes[g]
        stacked = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -2), joint)  # structure first, then (members, lanes)
        qs = _group_rows(t, q, g, t.q_start, nq)
        vs = None if v is None else _group_rows(t, v, g, t.v_start, nv)
        n = qs.shape[1]
        r, p = stacked.transform(qs)
        s = stacked.subspace(qs)
        b = None if vs is None else stacked.bias(qs, vs)
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
    """`dq/dt` of all joints for a unit velocity in degree of freedom m of each joint, for every m.

    Joints without bias, whose subspace is constant, have zeros. The list is as long as the largest number of degrees of
    freedom of a joint with bias.
    """
    stacked = [jax.tree.map(lambda x: jnp.moveaxis(x, 0, -2), joint) for joint in joints]
    group_rows = lambda g, x, start, k: _group_rows(t, x, g, start, t.group_sizes[g][k])
    at = [(group_rows(g, q, t.q_start, 0), group_rows(g, v, t.v_start, 1)) for g in range(len(joints))]
    varies = [joint.bias(*x) is not None for joint, x in zip(stacked, at, strict=True)]
    out = []
    for m in range(max(size[1] for size, varying in zip(t.group_sizes, varies, strict=True) if varying)):
        rates = {}
        for g, (joint, (qs, vs)) in enumerate(zip(stacked, at, strict=True)):
            if varies[g] and m < vs.shape[0]:
                # a constant mask, because kernels cannot scatter
                one = np.equal(np.arange(vs.shape[0]), m).reshape(-1, 1, 1)
                unit = jnp.broadcast_to(jnp.asarray(one, vs.dtype), vs.shape)
                rates[g] = jax.jvp(lambda dv: joint.integrate(qs, dv), (jnp.zeros_like(vs),), (unit,))[1]  # noqa: B023
            else:
                rates[g] = jnp.zeros_like(qs)
        out.append(_over_coordinates(t, rates))
    return out


def _group_rows(t: Topology, x, group: int, start, size: int):
    """Coordinates of the joints of one group: `(size, members, lanes)`."""
    body = 0
    parts = []
    for g, _, n in t.runs:
        if g == group:
            at = start[body]
            parts.append(x[at : at + n * size].reshape(n, size, x.shape[-1]))
        body += n
    rows = parts[0] if len(parts) == 1 else jnp.concatenate(parts)
    return jnp.moveaxis(rows, 1, 0)


def _concatenate_runs(parts):
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    lanes = max(x.shape[-1] for x in parts)
    return jnp.concatenate([jnp.broadcast_to(x, (x.shape[0], lanes)) for x in parts])


def _over_bodies(t: Topology, poses, pick):
    def rows_of_run(g, first, n):
        x = pick(poses[g])
        x = jnp.broadcast_to(x, (poses[g][4], x.shape[-1]))
        return x[first : first + n]

    return _concatenate_runs(rows_of_run(*run) for run in t.runs)


def _over_dofs(t: Topology, poses, k: int):
    def rows_of_run(g, first, n):
        x = poses[g][2][k]  # (nv, members, lanes)
        x = jnp.broadcast_to(x, (x.shape[0], poses[g][4], x.shape[-1]))[:, first : first + n]
        return jnp.moveaxis(x, 0, 1).reshape(n * x.shape[0], x.shape[-1])

    return _concatenate_runs(rows_of_run(*run) for run in t.runs)


def _over_coordinates(t: Topology, rows):
    """Inverse of `_group_rows` for all joint types."""

    def rows_of_run(g, first, n):
        x = rows[g][:, first : first + n]
        return jnp.moveaxis(x, 0, 1).reshape(n * x.shape[0], x.shape[-1])

    return _concatenate_runs(rows_of_run(*run) for run in t.runs)


def to_bodies(t: Topology, x):
    """Sums `(full_nv, lanes)` over the degrees of freedom of each body: `(bodies, lanes)`."""
    if t.has_single_dof_joints:
        return x
    at, parts = 0, []
    for g, _, n in t.runs:
        k = t.group_sizes[g][1]
        parts.append(add_second_axis(x[at : at + n * k].reshape(n, k, x.shape[-1])))
        at += n * k
    return _concatenate_runs(parts)


def to_dofs(t: Topology, x):
    """Repeats each row of `(bodies, lanes)` for the degrees of freedom of that body: `(full_nv, lanes)`."""
    if t.has_single_dof_joints:
        return x
    at, parts = 0, []
    for g, _, n in t.runs:
        k = t.group_sizes[g][1]
        rows_of_run = x[at : at + n]
        parts.append(jnp.broadcast_to(rows_of_run[:, None], (n, k, x.shape[-1])).reshape(n * k, -1))
        at += n
    return _concatenate_runs(parts)


def place_at_last_dof(t: Topology, x):
    """Places each row of `(bodies, lanes)` at the last degree of freedom of that body, zero elsewhere."""
    if t.has_single_dof_joints:
        return x
    last = np.zeros(t.full_nv, bool)
    last[np.cumsum(t.body_nv) - 1] = True
    return jnp.where(last[:, None], to_dofs(t, x), 0)
