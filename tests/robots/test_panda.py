"""The 7-joint arm against the numbers of its maker."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.dynamics import mass_matrix, rnea
from jaxdyn.kinematics import frame_pose, total_mass
from jaxdyn.robots import panda


@pytest.fixture(scope="module")
def model():
    return panda()


def test_counts(model):
    assert (model.nq, model.nv, model.num_links) == (7, 7, 7)
    assert model.joint_names == tuple(f"joint{k}" for k in range(1, 8))
    assert model.frame_names == ("flange", "hand_tcp")


def test_masses(model):
    np.testing.assert_allclose(total_mass(model), 16.062132, rtol=1e-12)
    np.testing.assert_allclose(total_mass(panda(hand=True)), 16.792132, rtol=1e-12)


def test_flange_at_zero_is_where_the_drawing_has_it(model):
    flange = frame_pose(model, jnp.zeros(7), "flange")
    np.testing.assert_allclose(flange.translation, [0.088, 0, 0.333 + 0.316 + 0.384 - 0.107], atol=1e-12)
    np.testing.assert_allclose(flange.rotation, np.diag([1.0, -1.0, -1.0]), atol=1e-12)


def test_hand_in_the_ready_pose(model):
    """The controller reports (0.30689, 0, 0.48688), the hand pointing down and aligned with the base."""
    ready = jnp.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
    tcp = frame_pose(model, ready, "hand_tcp")
    np.testing.assert_allclose(tcp.translation, [0.30689, 0, 0.48688], atol=1e-5)
    np.testing.assert_allclose(tcp.rotation, np.diag([1.0, -1.0, -1.0]), atol=1e-12)


def test_reach_is_855_mm_from_the_shoulder(model):
    """Maker's figure, to the wrist centre: sqrt(0.316^2 + 0.0825^2) + sqrt(0.384^2 + 0.0825^2) + 0.088..."""
    stretched = -2 * np.arctan2(0.0825, 0.316) + np.arctan2(0.0825, 0.316) - np.arctan2(0.0825, 0.384)
    q = jnp.zeros(7).at[3].set(stretched)
    wrist = np.asarray(frame_pose(model, q, "link6").translation) - [0, 0, 0.333]
    longest = np.hypot(0.316, 0.0825) + np.hypot(0.384, 0.0825)
    np.testing.assert_allclose(np.linalg.norm(wrist), longest, rtol=1e-12)


def test_mass_matrix_is_positive_over_the_range_of_the_joints(model):
    rng = np.random.default_rng(0)
    lower, upper = np.asarray(model.limits.lower), np.asarray(model.limits.upper)
    assert (lower < upper).all()
    for _ in range(20):
        m = mass_matrix(model, jnp.asarray(rng.uniform(lower, upper)))
        assert np.linalg.eigvalsh(m).min() > 1e-3


def test_gravity_torque_of_the_second_joint_is_measured_magnitude(model):
    """In the ready pose joints 2 and 4 carry the arm, joint 1 nothing; no joint reaches its limit."""
    ready = jnp.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
    tau = np.asarray(rnea(model, ready, jnp.zeros(7), jnp.zeros(7)))
    np.testing.assert_allclose(tau[0], 0, atol=1e-12)
    assert (np.abs(tau) < np.asarray(model.limits.effort)).all()
    assert np.abs(tau[[1, 3]]).min() > 3 * np.abs(tau[[4, 5, 6]]).max()
