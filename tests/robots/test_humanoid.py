"""The humanoid: counts, measures, symmetry, and derivatives with respect to its dimensions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn._errors import ModelError
from jaxdyn.kinematics import center_of_mass, frame_pose, neutral, total_mass
from jaxdyn.robots import humanoid


@pytest.fixture(scope="module")
def model():
    return humanoid()


def test_numbers_of_coordinates_and_links(model):
    assert (model.nq, model.nv, model.num_links) == (39, 38, 33)
    for part, joints in {"hip": 6, "knee": 2, "ankle": 4, "waist": 3, "neck": 3, "shoulder": 6}.items():
        assert sum(part in name for name in model.joint_names) == joints
    assert sum("elbow" in name or "wrist" in name for name in model.joint_names) == 8


@pytest.mark.slow
def test_mass_and_height_are_those_of_the_arguments():
    for height, mass in ((1.741, 73.0), (1.60, 55.0)):
        model = humanoid(height, mass)
        q = neutral(model)
        np.testing.assert_allclose(total_mass(model), mass, rtol=1e-12)
        heights = [frame_pose(model, q, name).translation[2] for name in ("crown", "left_sole")]
        np.testing.assert_allclose(heights[0] - heights[1], height, rtol=1e-12)


@pytest.mark.slow
def test_height_of_the_centre_of_mass(model):
    """About 56 per cent of the stature (Winter, chapter 4), and in the plane of symmetry."""
    q = neutral(model)
    com = np.asarray(center_of_mass(model, q) - frame_pose(model, q, "left_sole").translation)
    assert 0.54 < com[2] / 1.741 < 0.59
    np.testing.assert_allclose(center_of_mass(model, q)[1], 0, atol=1e-14)


def test_equal_left_and_right_coordinates_are_mirror_images(model):
    q = np.array(neutral(model))
    rng = np.random.default_rng(0)
    for name in model.joint_names:
        if name.startswith("left"):
            q[model.joint(name).q] = q[model.joint(name.replace("left", "right")).q] = rng.uniform(-1, 1)
    q = jnp.asarray(q)
    np.testing.assert_allclose(center_of_mass(model, q)[1], 0, atol=1e-14)
    for end in ("sole", "fingertip"):
        left, right = (frame_pose(model, q, f"{side}_{end}").translation for side in ("left", "right"))
        np.testing.assert_allclose(left, right * jnp.array([1, -1, 1]), atol=1e-14)


@pytest.mark.parametrize(
    ("joint", "frame", "axis", "sign"),
    [
        ("hip_flexion", "sole", 0, 1),
        ("hip_abduction", "sole", 1, 1),
        ("knee_flexion", "sole", 0, -1),
        ("shoulder_flexion", "fingertip", 0, 1),
        ("shoulder_abduction", "fingertip", 1, 1),
        ("elbow_flexion", "fingertip", 0, 1),
        ("wrist_flexion", "fingertip", 1, -1),
    ],
)
def test_directions_of_positive_rotation(model, joint, frame, axis, sign):
    q = neutral(model)
    bent = q.at[model.joint(f"left_{joint}").q].set(0.5)
    move = frame_pose(model, bent, f"left_{frame}").translation - frame_pose(model, q, f"left_{frame}").translation
    assert sign * move[axis] > 0.05


def test_inertias_are_physical(model):
    for name in model.link_names:
        low, mid, high = np.linalg.eigvalsh(model.link(name).inertia)
        assert 0 < low and low + mid > high * (1 - 1e-12)


@pytest.mark.exhaustive
def test_derivative_with_respect_to_a_length():
    def drop(thigh):
        model = humanoid(lengths={"thigh": thigh})
        return frame_pose(model, neutral(model), "left_sole").translation[2], model.links.inertia

    height, inertia = jax.jacfwd(drop)(0.42)
    np.testing.assert_allclose(height, -1, rtol=1e-12)
    row = humanoid().link_index("left_thigh")
    assert inertia[row, 0, 0] > 0  # longer at the same mass
    assert not inertia[humanoid().link_index("head")].any()


def test_unknown_lengths_are_refused():
    with pytest.raises(ModelError, match=r"tail.*thigh"):
        humanoid(lengths={"tail": 0.3})
