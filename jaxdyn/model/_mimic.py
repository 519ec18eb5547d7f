"""Coordinates that follow others: between the state and the coordinates of all joints.

With `q_full = ratio * q[source] + offset` and `v_full = G v`, efforts go back by `G^T` and the mass matrix
by `G^T M G`. Without mimicking joints all of this is the identity and costs nothing.
"""

import jax.numpy as jnp
import numpy as np

from jaxdyn.model._model import Model


def _gains(model: Model):
    t = model.topology
    rows = np.array([t.v_start[a] for a, _ in t.mimic_bodies])
    return jnp.ones(t.full_nv, model.dtype).at[rows].set(model.mimic.ratio)


def full_configuration(model: Model, q):
    """Coordinates of all joints."""
    t = model.topology
    if not t.mimics:
        return q
    rows = np.array([t.q_start[a] for a, _ in t.mimic_bodies])
    full = q[t.q_source]
    return full.at[rows].set(model.mimic.ratio * full[rows] + model.mimic.offset)


def full_velocity(model: Model, v):
    """Velocities (or accelerations, or any tangent) of all joints."""
    t = model.topology
    return _gains(model) * v[t.v_source] if t.mimics else v


def own_effort(model: Model, effort):
    """`G^T` applied to efforts of all joints, along the first axis."""
    t = model.topology
    if not t.mimics:
        return effort
    gains = _gains(model).reshape(-1, *[1] * (effort.ndim - 1))
    return jnp.zeros((t.nv, *effort.shape[1:]), effort.dtype).at[t.v_source].add(gains * effort)


def own_columns(model: Model, matrix):
    """`G^T` along the last axis: of a matrix whose columns belong to all joints."""
    return own_effort(model, matrix.T).T if model.topology.mimics else matrix
