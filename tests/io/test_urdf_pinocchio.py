"""Real files: mass matrix, bias and gravity are Pinocchio's."""

import pytest

import jaxdyn as jd
from tests.io._pinocchio import ROBOTS, pin_urdf, quantities, some_state
from tests.oracles import relative_error

QUICK = [("solo_description/robots/solo12.urdf", True)]
FILES = [
    "a1_description/urdf/a1.urdf",
    "anymal_b_simple_description/robots/anymal-kinova.urdf",
    "asr_twodof_description/urdf/TwoDofs.urdf",
    "baxter_description/urdf/baxter.urdf",
    "double_pendulum_description/urdf/double_pendulum_continuous.urdf",
    "human_description/robots/human.urdf",
    "icub_description/robots/icub.urdf",
    "panda_description/urdf/panda.urdf",
    "pr2_description/urdf/pr2.urdf",
    "romeo_description/urdf/romeo.urdf",
    "solo_description/robots/solo12.urdf",
    "talos_data/robots/talos_full_v2.urdf",
    "tiago_description/robots/tiago_dual.urdf",
    "ur_description/urdf/ur5_robot.urdf",
]
SLOW = [pytest.param(x, floating, marks=pytest.mark.slow) for x in FILES for floating in (False, True)]


@pytest.mark.parametrize(("name", "floating"), [*QUICK, *(x for x in SLOW if x.values not in QUICK)])
def test_dynamics(name, floating):
    model = jd.load_urdf(ROBOTS / name, floating_base=floating)
    q, v = some_state(model)
    oracle = pin_urdf(model, ROBOTS / name, floating=floating)
    assert oracle.model.nv >= model.nv > 0
    for got, want in zip(quantities(model, q, v), oracle.quantities(q, v), strict=True):
        assert relative_error(got, want) < 1e-9
