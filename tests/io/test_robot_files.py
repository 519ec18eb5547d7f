"""Real robots from files compared with Pinocchio and MuJoCo: all files of example-robot-data and of MuJoCo.

`docs/robot_files.md` has the deviations, written by `benchmarks/robot_files.py`, which compares in the same way.
"""

import itertools
from importlib import metadata
from pathlib import Path

import jax
import mujoco
import numpy as np
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


_ROBOTS = itertools.count(1)


@pytest.fixture
def programs():
    """Clears the compilation cache every few robots: variants share programs, but all programs take gigabytes."""
    yield
    if next(_ROBOTS) % 8 == 0:
        jax.clear_caches()


def test_number_of_files():
    assert len(URDF) > 60
    assert len(MJCF) > 20  # with those of mujoco-mjx


@pytest.mark.slow
@pytest.mark.parametrize(("name", "floating"), FEW_URDF)
def test_some_urdf(name, floating):
    agreement = urdf_agreement(URDF[name], floating)
    assert len(agreement.deviations) == 5
    _check(agreement)


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW_MJCF)
def test_some_mjcf(name):
    agreement = mjcf_agreement(MJCF[name])
    assert agreement.nv > 0 and len(agreement.deviations) == 6
    _check(agreement)


WORLD = {"world", "world_link"}  # a root that is part of the world, or moves


def _numbers(model, q: int, v: int):
    """All numbers of a model after its first coordinates, except those of a link that can be the world."""
    kept = [i for i, name in enumerate(model.link_names) if name not in WORLD]
    rows = jax.tree.map(lambda x: np.asarray(x)[kept], (model.links, model.placements))
    limits = model.limits
    ends = (limits.lower[q:], limits.upper[q:], limits.velocity[v:], limits.effort[v:])
    properties = {k: x[q if k == "rest" else v :] for k, x in vars(model.properties).items()}
    return rows, ends, properties, model.joints[bool(q) :], model.mimic, model.frames


def _structure(model):
    """Links with parents, and types and mimicry of joints except the root's, by name."""
    links, joints, t = (*model.link_names, "world"), model.joint_names, model.topology
    parents = {links[i]: links[parent] for i, parent in enumerate(t.parents)}
    parents = {k: "world" if x in WORLD else x for k, x in parents.items() if k not in WORLD}
    kinds = {name: type(model.joint(name).joint) for name in joints if name != "root_joint"}
    return parents, kinds, [(joints[a], joints[b]) for a, b in t.mimics]


@pytest.mark.slow
def test_every_urdf_has_the_same_structure_with_either_base():
    """All numbers agree except at the root, so comparisons with a floating base hold for a fixed one."""
    for name, path in URDF.items():
        if name != NO_ROBOT:
            fixed, free = jd.load_urdf(path), jd.load_urdf(path, floating_base=True)
            assert (free.nq, free.nv) == (fixed.nq + 7, fixed.nv + 6), name
            pairs = zip(*map(jax.tree.leaves, (_numbers(fixed, 0, 0), _numbers(free, 7, 6))), strict=True)
            assert all(np.array_equal(a, b) for a, b in pairs), name
            assert _structure(fixed) == _structure(free), name


def test_refused_files_are_refused_by_pinocchio_too():
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


@pytest.mark.slow(
    "allegro_hand_description/urdf/allegro_right_hand.urdf-True",
    "iris_description/robots/iris_simple.urdf-True",
    "panda_description/urdf/panda.urdf-True",
    "ur_description/urdf/ur5_robot.urdf-True",
)
@pytest.mark.parametrize("floating", [pytest.param(False, marks=pytest.mark.exhaustive), True])
@pytest.mark.parametrize("name", [name for name in URDF if name != NO_ROBOT])
def test_every_urdf(name, floating, programs):
    agreement = urdf_agreement(URDF[name], floating)
    assert bool(agreement.deviations) == (agreement.nv > 0)
    _check(agreement)


@pytest.mark.slow(
    "mjx/test_data/actuator/arm21.xml",
    "mjx/test_data/humanoid/humanoid.xml",
    "mjx/test_data/ray.xml",
    "mjx/test_data/tendon/fixed.xml",
)
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
