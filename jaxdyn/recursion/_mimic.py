"""Mimic joints: from the independent coordinates of the state to the full coordinates of all joints, and back.

With `q_full = ratio * q[source] + offset` and `v_full = G v`, efforts are reduced by `G^T` and the mass matrix by
`G^T M G`. Without mimic joints these functions return their argument.
"""

import jax.numpy as jnp
import numpy as np

from jaxdyn.recursion._tree import TreeModel


def _ratios(model: TreeModel):
    t = model.topology
    rows = np.array([t.v_start[a] for a, _ in t.mimic_bodies])
    return jnp.ones(t.full_nv, model.dtype).at[rows].set(model.mimic.ratio)


def full_configuration(model: TreeModel, q):
    """Full configuration, `(full_nq,)`, of all joints."""
    t = model.topology
    if not t.mimics:
        return q
    rows = np.array([t.q_start[a] for a, _ in t.mimic_bodies])
    full = q[t.q_source]
    return full.at[rows].set(model.mimic.ratio * full[rows] + model.mimic.offset)


def full_velocity(model: TreeModel, v):
    """`G v`: full velocity (or acceleration, or any tangent), `(full_nv,)`."""
    t = model.topology
    return _ratios(model) * v[t.v_source] if t.mimics else v


def reduce_effort(model: TreeModel, effort):
    """`G^T` applied to full efforts, along the first axis."""
    t = model.topology
    if not t.mimics:
        return effort
    ratios = _ratios(model).reshape(-1, *[1] * (effort.ndim - 1))
    return jnp.zeros((t.nv, *effort.shape[1:]), effort.dtype).at[t.v_source].add(ratios * effort)


def reduce_columns(model: TreeModel, matrix):
    """`matrix G`: reduces the columns of a matrix, which belong to full coordinates."""
    return reduce_effort(model, matrix.T).T if model.topology.mimics else matrix


def reduce_inertial_effort(model: TreeModel, effort, a):
    """`G^T effort`, plus the efforts of the rotors, `armature a`, if the model has mimic joints.

    A rotor belongs to an independent coordinate, not to each joint that mimics it. Without mimic joints the rotors are
    already in `effort`, by `Bodies.armature`.
    """
    reduced = reduce_effort(model, effort)
    return reduced + model.properties.armature * a if model.topology.mimics else reduced


def reduce_mass_matrix(model: TreeModel, matrix):
    """`G^T M G`, plus the armatures on the diagonal as in `reduce_inertial_effort`."""
    if not model.topology.mimics:
        return matrix
    return reduce_columns(model, reduce_effort(model, matrix)) + jnp.diag(model.properties.armature)
