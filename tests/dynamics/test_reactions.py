"""Joint reactions in gimbal lock."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.joints import Revolute, SphericalZYX
from jaxdyn.model import ModelBuilder
from tests.dynamics._cases import TOLERANCE, call
from tests.oracles import random_inertia, random_state, relative_error


@pytest.mark.slow
def test_gimbal_lock_does_not_affect_other_joints():
    """At `q1 = pi/2` the first and last axis of z-y-x angles coincide: the motor exerts moments about two axes."""
    rng = np.random.default_rng(0)
    builder = ModelBuilder()
    builder.add_link("arm", "world", Revolute((0.3, 0.2, 1.0)), random_inertia(rng))
    builder.add_link("ball", "arm", SphericalZYX(), random_inertia(rng), translation=(0.2, 0.3, 0.1))
    m = builder.add_link("hand", "ball", Revolute((1.0, 0, 0.5)), random_inertia(rng), translation=(0, 0, 0.3)).build()
    q, v, a, e = random_state(m, 0)
    ball = m.joint("ball_joint")
    q = q.at[ball.q].set(jnp.array([0.4, np.pi / 2, -0.3]))
    r = call("joint_reactions", m, q, v, a, e)
    tau = call("rnea", m, q, v, a, e)
    assert relative_error(r.effort, tau) < TOLERANCE
    for i, name in enumerate(m.joint_names):
        view = m.joint(name)
        s = np.asarray(view.joint.subspace(q[view.q]))
        projector = s @ np.linalg.pinv(s, rcond=1e-8)
        assert np.linalg.matrix_rank(s, tol=1e-8) == (2 if name == "ball_joint" else 1)
        assert relative_error(r.motor[i], projector @ np.asarray(r.wrench[i])) < TOLERANCE
        assert np.abs(s.T @ np.asarray(r.bearing[i])).max() < TOLERANCE * np.abs(np.asarray(r.wrench[i])).max()
