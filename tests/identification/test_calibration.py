"""Kinematic calibration: joint frames, axes and tools from measured poses."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.identification import FramePoses, Log, fit
from jaxdyn.model import to_builder

from .synthetic_logs import arm


def with_tool() -> jd.Model:
    """An arm of two links with a tool frame."""
    builder = to_builder(arm(2))
    builder.add_frame("tool", "link2", translation=(0.05, 0.0, 0.2))
    return builder.build()


ARM = with_tool()
Q = np.random.default_rng(2).uniform(-1.5, 1.5, (20, 2))


@jax.jit
def tool_poses(model):
    return jax.vmap(lambda q: jd.frame_pose(model, q, "tool"))(jnp.asarray(Q))


def pose_log(model):
    tool, zero = tool_poses(model), np.zeros((20, 2))
    frames = {"tool": (tool.rotation, tool.translation)}
    return Log(np.arange(20.0), Q, zero, zero, zero, "poses", frames=frames)


def assert_same_poses(found, log):
    after = pose_log(found.model)
    np.testing.assert_allclose(after.frames["tool"][1], log.frames["tool"][1], atol=1e-8)
    np.testing.assert_allclose(after.frames["tool"][0], log.frames["tool"][0], atol=1e-8)


@pytest.mark.slow
def test_joint_frame_from_tool_poses():
    rotation = jnp.array([np.cos(0.02), np.sin(0.02), 0.0, 0.0])
    translation = ARM.placements.translation.at[1].add(jnp.array([0.004, 0.0, 0.006]))
    leaves = lambda m: (m.placements.translation, m.placements.rotation)
    truth = eqx.tree_at(leaves, ARM, (translation, ARM.placements.rotation.at[1].set(rotation)))
    log = pose_log(truth)
    paths = ("joints[joint2].translation", "joints[joint2].rotation")
    found = fit(ARM, log, paths, FramePoses()).checked()
    assert_same_poses(found, log)
    assert found.value("joints[joint2].rotation[0]") == pytest.approx(0.04, abs=1e-7)
    assert found.value("joints[joint2].translation[0]") == pytest.approx(0.004, abs=1e-7)


@pytest.mark.slow
def test_axis_and_tool_are_identified_together():
    true_axis = np.array([0.03, 1.0, -0.02]) / np.sqrt(1 + 0.03**2 + 0.02**2)
    tool = ARM.frames.translation[0] + jnp.array([0.002, -0.001, 0.003])
    leaves = lambda m: (m.joints[0].axis, m.frames.translation)
    truth = eqx.tree_at(leaves, ARM, (ARM.joints[0].axis.at[1].set(jnp.asarray(true_axis)), tool[None]))
    log = pose_log(truth)
    found = fit(ARM, log, ("joints[joint2].axis", "frames[tool].translation"), FramePoses()).checked()
    assert_same_poses(found, log)
    axis = np.array([found.value(f"joints[joint2].axis[{k}]") for k in range(3)])
    np.testing.assert_allclose(axis / np.linalg.norm(axis), true_axis, atol=1e-7)
    np.testing.assert_allclose(found.model.frames.translation[0], tool, atol=1e-8)


@pytest.mark.slow
def test_parameters_without_influence_on_the_poses_are_rejected():
    with pytest.raises(jd.ModelError, match="no influence"):
        fit(ARM, pose_log(ARM), ("joints[joint2].translation", "links[*].mass"), FramePoses())


def test_missing_poses_are_rejected():
    zero = np.zeros((3, 2))
    log = Log(np.arange(3.0), zero, zero, zero, zero, "poses")
    with pytest.raises(jd.ShapeError, match="no poses were measured"):
        fit(ARM, log, "joints[joint2].translation", FramePoses())
