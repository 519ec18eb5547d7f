"""Joint frames, offsets and tools from measured poses."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.identification import FramePoses, Log, fit
from jaxdyn.model._edits import to_builder

from ._made import arm


def with_tool() -> jd.Model:
    """The arm of two links, with a tool."""
    builder = to_builder(arm(2))
    builder.add_frame("tool", "link2", translation=(0.05, 0.0, 0.2))
    return builder.build()


ARM = with_tool()
Q = np.random.default_rng(2).uniform(-1.5, 1.5, (20, 2))


@jax.jit
def measured(model):
    return jax.vmap(lambda q: jd.frame_pose(model, q, "tool"))(jnp.asarray(Q))


def poses(model):
    found, zero = measured(model), np.zeros((20, 2))
    frames = {"tool": (found.rotation, found.translation)}
    return Log(np.arange(20.0), Q, zero, zero, zero, "poses", frames=frames)


def agree(found, log):
    after = poses(found.model)
    np.testing.assert_allclose(after.frames["tool"][1], log.frames["tool"][1], atol=1e-8)
    np.testing.assert_allclose(after.frames["tool"][0], log.frames["tool"][0], atol=1e-8)


@pytest.mark.slow
def test_a_joint_frame_is_found_from_poses_of_the_tool():
    turned = jnp.array([np.cos(0.02), np.sin(0.02), 0.0, 0.0])
    moved = ARM.placements.translation.at[1].add(jnp.array([0.004, 0.0, 0.006]))
    leaves = lambda m: (m.placements.translation, m.placements.rotation)
    truth = eqx.tree_at(leaves, ARM, (moved, ARM.placements.rotation.at[1].set(turned)))
    log = poses(truth)
    paths = ("joints[joint2].translation", "joints[joint2].rotation")
    found = fit(ARM, log, paths, FramePoses()).checked()
    agree(found, log)
    assert found.value("joints[joint2].rotation[0]") == pytest.approx(0.04, abs=1e-7)
    assert found.value("joints[joint2].translation[0]") == pytest.approx(0.004, abs=1e-7)


@pytest.mark.slow
def test_an_axis_and_a_tool_are_found_together():
    tilted = np.array([0.03, 1.0, -0.02]) / np.sqrt(1 + 0.03**2 + 0.02**2)
    tool = ARM.frames.translation[0] + jnp.array([0.002, -0.001, 0.003])
    leaves = lambda m: (m.joints[0].axis, m.frames.translation)
    truth = eqx.tree_at(leaves, ARM, (ARM.joints[0].axis.at[1].set(jnp.asarray(tilted)), tool[None]))
    log = poses(truth)
    found = fit(ARM, log, ("joints[joint2].axis", "frames[tool].translation"), FramePoses()).checked()
    agree(found, log)
    axis = np.array([found.value(f"joints[joint2].axis[{k}]") for k in range(3)])
    np.testing.assert_allclose(axis / np.linalg.norm(axis), tilted, atol=1e-7)
    np.testing.assert_allclose(found.model.frames.translation[0], tool, atol=1e-8)


@pytest.mark.slow
def test_what_does_not_move_the_tool_is_refused():
    with pytest.raises(jd.ModelError, match="no influence"):
        fit(ARM, poses(ARM), ("joints[joint2].translation", "links[*].mass"), FramePoses())


def test_poses_must_be_there():
    zero = np.zeros((3, 2))
    log = Log(np.arange(3.0), zero, zero, zero, zero, "poses")
    with pytest.raises(jd.ShapeError, match="no poses were measured"):
        fit(ARM, log, "joints[joint2].translation", FramePoses())
