"""Real robots from files against the engines at home in the formats: all that example-robot-data and MuJoCo ship.

`docs/robot_files.md` has the deviations, written by `benchmarks/robot_files.py`, which compares in the same way.
"""

from importlib import metadata
from pathlib import Path

import jax
import mujoco
import pytest

import jaxdyn as jd
from benchmarks._agreement import (
    mjcf_agreement,
    mjcf_files,
    mujoco_without_log,
    pinocchio_reads,
    urdf_agreement,
    urdf_files,
)

TOLERANCE = 1e-9
URDF, MJCF = urdf_files(), mjcf_files()
NO_ROBOT = "ur_description/urdf/ur3.urdf"  # a robot without links
FEW_URDF = (("ur_description/urdf/ur5_robot.urdf", False),)
FEW_MJCF = ("testdata/model.xml",)
REFUSED = {"mjx/test_data/tendon/armature.xml": "tendon 'tendon0' has armature"}


def _compiles(path) -> bool:
    with mujoco_without_log():
        try:
            mujoco.MjModel.from_xml_path(str(path))
        except ValueError:
            return False
    return True


def _check(agreement):
    assert agreement.worst < TOLERANCE, agreement.deviations


@pytest.fixture
def programs():
    """Forgets what was compiled: no two robots share a program, and together they take gigabytes."""
    yield
    jax.clear_caches()


def test_there_are_many():
    assert len(URDF) > 60
    assert len(MJCF) > 20  # with those of mujoco-mjx


@pytest.mark.parametrize(("name", "floating"), FEW_URDF)
def test_some_urdf(name, floating):
    agreement = urdf_agreement(URDF[name], floating)
    assert len(agreement.deviations) == 5
    _check(agreement)


@pytest.mark.parametrize("name", FEW_MJCF)
def test_some_mjcf(name):
    agreement = mjcf_agreement(MJCF[name])
    assert agreement.nv > 0 and len(agreement.deviations) == 6
    _check(agreement)


@pytest.mark.slow
def test_every_urdf_loads_with_either_base():
    for name, path in URDF.items():
        if name != NO_ROBOT:
            fixed, free = jd.load_urdf(path), jd.load_urdf(path, floating_base=True)
            assert (free.nq, free.nv) == (fixed.nq + 7, fixed.nv + 6), name


def test_what_is_not_read_is_not_read_by_pinocchio_either():
    with pytest.raises(jd.ModelError, match="has no links"):
        jd.load_urdf(URDF[NO_ROBOT])
    assert not pinocchio_reads(URDF[NO_ROBOT])


@pytest.mark.parametrize("name", REFUSED)
def test_refused_mjcf(name):
    with pytest.raises(jd.ModelError, match=REFUSED[name]):
        jd.load_mjcf(MJCF[name])


@pytest.mark.slow
def test_every_mjcf_loads_or_is_refused_for_a_reason():
    for name, path in MJCF.items():
        if name in REFUSED:
            continue
        if _compiles(path):
            model = jd.load_mjcf(path)
            with mujoco_without_log():
                m = mujoco.MjModel.from_xml_path(str(path))
            assert (model.nq, model.nv) == (m.nq, m.nv), name
        else:
            with pytest.raises(jd.ModelError, match="MuJoCo's compiler refuses it"):
                jd.load_mjcf(path)


@pytest.mark.slow
@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("name", [name for name in URDF if name != NO_ROBOT])
def test_every_urdf(name, floating, programs):
    agreement = urdf_agreement(URDF[name], floating)
    assert bool(agreement.deviations) == (agreement.nv > 0)
    _check(agreement)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, path in MJCF.items() if name not in REFUSED and _compiles(path)])
def test_every_mjcf(name, programs):
    agreement = mjcf_agreement(MJCF[name])
    assert bool(agreement.deviations) == (agreement.nv > 0)
    _check(agreement)


def _not_listed(files, *packages: str) -> list[str]:
    page = (Path(__file__).parents[2] / "docs" / "robot_files.md").read_text()
    versions = [f"{p} {metadata.version(p)}" for p in packages]
    if not all(version in page for version in versions):
        pytest.skip(f"the page was written with other files than those of {', '.join(versions)}")
    return [name for name in files if f"`{name}`" not in page]


def test_the_page_lists_every_urdf():
    assert _not_listed(URDF, "example-robot-data") == []


def test_the_page_lists_every_mjcf():
    assert _not_listed(MJCF, "mujoco") == []
