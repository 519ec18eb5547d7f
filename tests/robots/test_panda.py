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


def test_wrist_of_the_stretched_arm(model):
    """Both halves of the arm in one line: the elbow's offset of 0.0825 m counts on either side."""
    elbow = -np.arctan2(0.0825, 0.316) - np.arctan2(0.0825, 0.384)
    wrist = frame_pose(model, jnp.zeros(7).at[3].set(elbow), "link6").translation
    reach = np.linalg.norm(np.asarray(wrist) - [0, 0, 0.333])
    np.testing.assert_allclose(reach, np.hypot(0.316, 0.0825) + np.hypot(0.384, 0.0825), rtol=1e-12)


def test_mass_matrix_is_positive_over_the_range_of_the_joints(model):
    rng = np.random.default_rng(0)
    lower, upper = np.asarray(model.limits.lower), np.asarray(model.limits.upper)
    assert (lower < upper).all()
    for _ in range(20):
        m = mass_matrix(model, jnp.asarray(rng.uniform(lower, upper)))
        assert np.linalg.eigvalsh(m).min() > 1e-3


def test_gravity_torques_of_the_ready_pose(model):
    """The elbow carries most, the first joint nothing, and all are far from their limits."""
    ready = jnp.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
    tau = np.asarray(rnea(model, ready, jnp.zeros(7), jnp.zeros(7)))
    np.testing.assert_allclose(tau[0], 0, atol=1e-12)
    assert np.abs(tau).argmax() == 3
    assert (np.abs(tau) < 0.3 * np.asarray(model.limits.effort)).all()
