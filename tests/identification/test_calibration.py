"""Joint frames, offsets and tools from measured poses."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.identification import FramePoses, Log, fit

from ._made import arm

ARM = arm()


def poses(model, noise=0.0):
    rng = np.random.default_rng(2)
    q = rng.uniform(-1.5, 1.5, (40, 3))
    found = jax.vmap(lambda x: jd.frame_pose(model, x, "link3"))(jnp.asarray(q))
    p = np.asarray(found.translation) + rng.normal(0, noise, (40, 3))
    zero = np.zeros((40, 3))
    return Log(np.arange(40.0), q, zero, zero, zero, "poses", frames={"link3": (found.rotation, jnp.asarray(p))})


@pytest.mark.slow
@pytest.mark.wide
def test_a_joint_frame_is_found_from_poses_of_the_last_link():
    turned = jnp.array([np.cos(0.02), np.sin(0.02), 0.0, 0.0])
    moved = ARM.placements.translation.at[1].add(jnp.array([0.004, -0.003, 0.006]))
    truth = eqx.tree_at(
        lambda m: (m.placements.translation, m.placements.rotation),
        ARM,
        (moved, ARM.placements.rotation.at[1].set(turned)),
    )
    log = poses(truth)
    paths = ("joints[joint2].translation", "joints[joint2].rotation")
    found = fit(ARM, log, paths, FramePoses()).checked()
    after = poses(found.model)
    np.testing.assert_allclose(after.frames["link3"][1], log.frames["link3"][1], atol=1e-8)
    np.testing.assert_allclose(after.frames["link3"][0], log.frames["link3"][0], atol=1e-8)
    assert found.value("joints[joint2].rotation[0]") == pytest.approx(0.04, abs=1e-7)
    with pytest.raises(jd.ModelError, match="no influence"):
        fit(ARM, log, (*paths, "links[*].mass"), FramePoses())


def test_poses_must_be_there():
    log = eqx.tree_at(lambda x: x.frames, poses(ARM), None)
    with pytest.raises(jd.ShapeError, match="no poses were measured"):
        fit(ARM, log, "joints[joint2].translation", FramePoses())
