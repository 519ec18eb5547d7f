"""Rates of the coordinates of joints for unit velocities."""

import jax.numpy as jnp
import numpy as np

from jaxdyn.recursion import joint_tangents
from tests.oracles import random_model


def test_tangents_of_joints_with_varying_subspace():
    """Coordinates of a universal joint are the integrals of its velocities; a revolute joint has no tangent."""
    m = next(m for m in (random_model(k, 2, kinds=("universal", "revolute")) for k in range(20)) if m.nv == 3)
    universal = next(m.joint(name) for name in m.joint_names if m.joint(name).v.stop - m.joint(name).v.start == 2)
    tangents = joint_tangents(m.topology, m.joints, jnp.full((m.nq, 1), 0.3), jnp.zeros((m.nv, 1)))
    assert len(tangents) == 2
    for k, tangent in enumerate(tangents):
        wanted = np.zeros((m.nq, 1))
        wanted[universal.q.start + k] = 1
        np.testing.assert_allclose(tangent, wanted, atol=1e-14)
