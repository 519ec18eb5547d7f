"""The Panda against the manufacturer's numbers, and against other transcriptions of the same sources."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from jaxdyn.dynamics import mass_matrix, rnea
from jaxdyn.kinematics import frame_pose, total_mass
from jaxdyn.robots import panda

from ._pin import PoseOracle

# Mass, centre of mass and `xx yy zz xy xz yz` of the links in MuJoCo Menagerie (franka_emika_panda/panda_nohand.xml),
# another transcription, from Franka's ROS package.
MENAGERIE = (
    (4.970684, (0.003875, 0.002081, -0.04762), (0.70337, 0.70661, 0.0091170, -0.000139, 0.0067720, 0.019169)),
    (0.646926, (-0.003141, -0.02872, 0.003495), (0.0079620, 2.8110e-2, 2.5995e-2, -3.925e-3, 1.0254e-2, 7.04e-4)),
    (3.228604, (2.7518e-2, 3.9252e-2, -6.6502e-2), (3.7242e-2, 3.6155e-2, 1.083e-2, -4.761e-3, -1.1396e-2, -1.2805e-2)),
    (3.587895, (-5.317e-2, 1.04419e-1, 2.7454e-2), (2.5853e-2, 1.9552e-2, 2.8323e-2, 7.796e-3, -1.332e-3, 8.641e-3)),
    (1.225946, (-1.1953e-2, 4.1065e-2, -3.8437e-2), (3.5549e-2, 2.9474e-2, 8.627e-3, -2.117e-3, -4.037e-3, 2.29e-4)),
    (1.666555, (6.0149e-2, -1.4117e-2, -1.0517e-2), (1.964e-3, 4.354e-3, 5.433e-3, 1.09e-4, -1.158e-3, 3.41e-4)),
    (7.35522e-01, (1.0517e-2, -4.252e-3, 6.1597e-2), (1.2516e-2, 1.0027e-2, 4.815e-3, -4.28e-4, -1.196e-3, -7.41e-4)),
)


@pytest.fixture(scope="module")
def model():
    return panda()


def test_numbers_of_coordinates_and_names(model):
    assert (model.nq, model.nv, model.num_links) == (7, 7, 7)
    assert model.joint_names == tuple(f"joint{k}" for k in range(1, 8))
    assert model.frame_names == ("flange", "hand_tcp")


def test_masses(model):
    np.testing.assert_allclose(total_mass(model), 16.062132, rtol=1e-12)
    np.testing.assert_allclose(total_mass(panda(hand=True)), 16.792132, rtol=1e-12)


def test_flange_at_zero_agrees_with_the_drawing(model):
    flange = frame_pose(model, jnp.zeros(7), "flange")
    np.testing.assert_allclose(flange.translation, [0.088, 0, 0.333 + 0.316 + 0.384 - 0.107], atol=1e-12)
    np.testing.assert_allclose(flange.rotation, np.diag([1.0, -1.0, -1.0]), atol=1e-12)


def test_hand_in_the_ready_pose(model):
    """The controller reports (0.30689, 0, 0.48688), the hand pointing down and aligned with the base."""
    ready = jnp.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
    tcp = frame_pose(model, ready, "hand_tcp")
    np.testing.assert_allclose(tcp.translation, [0.30689, 0, 0.48688], atol=1e-5)
    np.testing.assert_allclose(tcp.rotation, np.diag([1.0, -1.0, -1.0]), atol=1e-12)


def test_wrist_of_the_extended_arm(model):
    """Both halves of the arm are collinear; the elbow offset of 0.0825 m counts on either side."""
    elbow = -np.arctan2(0.0825, 0.316) - np.arctan2(0.0825, 0.384)
    wrist = frame_pose(model, jnp.zeros(7).at[3].set(elbow), "link6").translation
    reach = np.linalg.norm(np.asarray(wrist) - [0, 0, 0.333])
    np.testing.assert_allclose(reach, np.hypot(0.316, 0.0825) + np.hypot(0.384, 0.0825), rtol=1e-12)


@pytest.mark.slow
def test_mass_matrix_is_positive_definite_within_the_limits(model):
    rng = np.random.default_rng(0)
    lower, upper = np.asarray(model.limits.lower), np.asarray(model.limits.upper)
    assert (lower < upper).all()
    for _ in range(20):
        m = mass_matrix(model, jnp.asarray(rng.uniform(lower, upper)))
        assert np.linalg.eigvalsh(m).min() > 1e-3


@pytest.mark.slow
def test_gravity_torques_of_the_ready_pose(model):
    """Largest at joint 4, zero at the first joint, and all far below the limits."""
    ready = jnp.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
    tau = np.asarray(rnea(model, ready, jnp.zeros(7), jnp.zeros(7)))
    np.testing.assert_allclose(tau[0], 0, atol=1e-12)
    assert np.abs(tau).argmax() == 3
    assert (np.abs(tau) < 0.3 * np.asarray(model.limits.effort)).all()


def test_inertias_agree_with_the_menagerie(model):
    for k, (mass, com, (xx, yy, zz, xy, xz, yz)) in enumerate(MENAGERIE):
        assert float(model.links.mass[k]) == mass
        np.testing.assert_array_equal(model.links.com[k], com)
        np.testing.assert_array_equal(model.links.inertia[k], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


@pytest.fixture(scope="module")
def description():
    """Franka's own description with the hand; its inertias are other estimates."""
    folder = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots" / "panda_description"
    return pin.buildModelFromUrdf(str(folder / "urdf" / "panda.urdf"))


def test_frames_and_limits_agree_with_the_description(model, description):
    place, data = PoseOracle(model), description.createData()
    np.testing.assert_allclose(description.lowerPositionLimit[:7], model.limits.lower, atol=1e-4)
    np.testing.assert_allclose(description.upperPositionLimit[:7], model.limits.upper, atol=1e-4)
    np.testing.assert_array_equal(description.effortLimit[:7], model.limits.effort)
    for arm in np.random.default_rng(4).uniform(-2, 2, (5, 7)):
        pin.framesForwardKinematics(description, data, np.r_[arm, np.zeros(description.nq - 7)])
        for ours, theirs in (("flange", "panda_link8"), ("hand_tcp", "panda_hand_tcp"), ("link4", "panda_link4")):
            expected = data.oMf[description.getFrameId(theirs)].homogeneous
            np.testing.assert_allclose(place(arm, ours), expected, atol=1e-12)
