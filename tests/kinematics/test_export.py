"""Every public function of the kinematics lowers for accelerators."""

import jax
import pytest

from tests.kinematics._functions import FUNCTIONS
from tests.kinematics.test_gradients import _model
from tests.oracles import random_state

PLATFORMS = ("cuda", "tpu")


@pytest.mark.slow(
    "center_of_mass", "difference", "frame_pose", "integrate", "inverse_kinematics", "jacobian", "neutral", "pose_error"
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_lowers(name):
    m = _model()
    args = (m, *random_state(m, 0)[:3])
    assert jax.export.export(jax.jit(FUNCTIONS[name]), platforms=PLATFORMS)(*args).platforms == PLATFORMS
