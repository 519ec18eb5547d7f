"""URDF elements and the models that they give."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jaxdyn as jd
from jaxdyn.joints import Continuous, Fixed, Free, Planar, Prismatic, Revolute
from jaxdyn.spatial import quaternion_to_matrix, rpy_to_matrix
from tests.io._pinocchio import ROBOTS, pin_urdf, quantities, some_state
from tests.io._texts import UNIT, arm, inertial, joint, link, robot
from tests.oracles import relative_error

PAIR_OF_LINKS = link("a") + link("b")


def notes(model, where="") -> str:
    return "\n".join(str(n) for n in model.report if n.where.startswith(where))


@pytest.mark.slow
def test_inertia_in_rotated_axes():
    """diag(1, 2, 2.5) in axes rotated by 90 degrees about z is diag(2, 1, 2.5) in link axes."""
    body = inertial(moments=(1, 2, 2.5), origin='<origin rpy="0 0 1.5707963267948966"/>')
    model = jd.parse_urdf(robot(f'<link name="a">{body}</link>'), floating_base=True)
    np.testing.assert_allclose(model.link("a").inertia, np.diag([2.0, 1.0, 2.5]), atol=1e-15)
    acceleration = jd.forward_dynamics(model, jd.neutral(model), jnp.zeros(6), jnp.array([2.0, 0, 0, 0, 0, 9.81]))
    np.testing.assert_allclose(acceleration, [1, 0, 0, 0, 0, 0], atol=1e-12)


def test_generic_inertial_frame():
    rpy, com = (0.3, -0.4, 0.5), (0.1, 0.2, 0.3)
    six = 'ixx="0.5" ixy="0.01" ixz="0.02" iyy="0.6" iyz="0.03" izz="0.7"'
    text = robot(
        f'<link name="a"><inertial><origin xyz="0.1 0.2 0.3" rpy="0.3 -0.4 0.5"/><mass value="2"/>'
        f"<inertia {six}/></inertial></link>"
    )
    body = jd.parse_urdf(text).link("a")
    given = np.array([[0.5, 0.01, 0.02], [0.01, 0.6, 0.03], [0.02, 0.03, 0.7]])
    axes = np.asarray(rpy_to_matrix(np.array(rpy)))
    np.testing.assert_allclose(body.inertia, axes @ given @ axes.T, atol=1e-15)
    np.testing.assert_allclose(body.com, com)
    assert body.mass == 2


ALL_TYPES = robot(
    link("base"),
    *(link(x) for x in "abcdefg"),
    joint("jr", "revolute", "base", "a", '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><axis xyz="0 0.6 0.8"/>'
          '<limit lower="-1" upper="2" velocity="3" effort="4"/><dynamics damping="0.5" friction="0.6"/>'),
    joint("jc", "continuous", "a", "b", '<axis xyz="0 0 -1"/>'),
    joint("jp", "prismatic", "b", "c", '<axis xyz="1 0 0"/><limit lower="-0.1" upper="0.2" velocity="1" effort="9"/>'),
    joint("jf", "fixed", "c", "d", '<origin xyz="0 0 1"/>'),
    joint("jo", "floating", "base", "e"),
    joint("jl", "planar", "base", "f", '<axis xyz="0 0 1"/>'),
    joint("jz", "revolute", "base", "g", '<limit lower="-1" upper="1" velocity="1" effort="1"/>'
          '<mimic joint="jr" multiplier="-2" offset="0.5"/>'),
)  # fmt: skip


def test_all_joint_types():
    model = jd.parse_urdf(ALL_TYPES)
    kinds = {name: type(model.joint(name).joint) for name in model.joint_names}
    assert kinds == {
        "root_joint": Fixed, "jr": Revolute, "jc": Continuous, "jp": Prismatic, "jf": Fixed, "jo": Free,
        "jl": Planar, "jz": Revolute,
    }  # fmt: skip
    assert model.link_names == ("base", "a", "b", "c", "d", "e", "f", "g")
    assert (model.nq, model.nv) == (3 + 7 + 3, 3 + 6 + 3)
    jr = model.joint("jr")
    np.testing.assert_allclose(jr.joint.axis, [0, 0.6, 0.8])
    np.testing.assert_allclose(model.placements.translation[1], [1, 2, 3])
    np.testing.assert_allclose(
        quaternion_to_matrix(model.placements.rotation[1]), rpy_to_matrix(np.array([0.1, 0.2, 0.3])), atol=1e-15
    )
    limits, p = model.limits, model.properties
    got = [x[jr.q.start] for x in (limits.lower, limits.upper)]
    got += [x[jr.v.start] for x in (limits.velocity, limits.effort, p.damping, p.friction)]
    assert [float(x) for x in got] == [-1, 2, 3, 4, 0.5, 0.6]
    free = model.joint("jo")
    assert np.isinf(limits.upper[free.q]).all() and not p.damping[free.v].any()
    assert model.topology.mimics == ((7, 1),)
    assert (model.mimic.ratio[0], model.mimic.offset[0]) == (-2, 0.5)
    assert "lower, upper" in notes(model, "joint jz")


@pytest.mark.slow
@pytest.mark.parametrize("floating", [False, True])
def test_all_joint_types_agree_with_pinocchio(floating):
    model = jd.parse_urdf(ALL_TYPES, floating_base=floating)
    oracle = pin_urdf(model, ALL_TYPES, floating=floating)
    q, v = some_state(model)
    for got, want in zip(quantities(model, q, v), oracle.quantities(q, v), strict=True):
        assert relative_error(got, want) < 1e-10


@pytest.mark.slow
def test_planar_joint_moves_normal_to_its_axis():
    """Equivalent to a planar joint about z between rotated link frames."""
    normal = np.array([2.0, -1.0, 0.5])
    text = robot(link("a"), link("b"), joint("j", "planar", "a", "b", '<axis xyz="2 -1 0.5"/><origin xyz="0 0 1"/>'))
    model = jd.parse_urdf(text)
    q = jnp.array([0.3, -0.7, 1.1])
    pose = jd.frame_pose(model, q, "b")
    unit = normal / np.linalg.norm(normal)
    assert abs((pose.translation - jnp.array([0, 0, 1])) @ unit) < 1e-14
    np.testing.assert_allclose(pose.rotation @ unit, unit, atol=1e-14)
    assert abs(jnp.linalg.norm(pose.translation - jnp.array([0, 0, 1])) - jnp.hypot(0.3, 0.7)) < 1e-14
    assert abs(jnp.trace(pose.rotation) - (1 + 2 * jnp.cos(1.1))) < 1e-13
    at_zero = jd.frame_pose(model, jnp.zeros(3), "b")
    np.testing.assert_allclose(at_zero.rotation, np.eye(3), atol=1e-15)
    assert (model.nv, "b_plane" in model.link_names) == (3, True)
    assert "normal is not z" in notes(model, "joint j")


def test_planar_joint_about_minus_z_has_the_opposite_angle():
    text = robot(link("a"), link("b"), joint("j", "planar", "a", "b", '<axis xyz="0 0 -1"/>'))
    pose = jd.frame_pose(jd.parse_urdf(text), jnp.array([0.0, 0, 0.3]), "b")
    np.testing.assert_allclose(pose.rotation, rpy_to_matrix(np.array([0, 0, -0.3])), atol=1e-15)


def test_missing_axis_defaults_to_x():
    text = robot(link("a"), link("b"), joint("j", "continuous", "a", "b"))
    model = jd.parse_urdf(text)
    np.testing.assert_array_equal(model.joint("j").joint.axis, [1, 0, 0])
    assert "no axis" in notes(model, "joint j")


def test_axis_is_normalised():
    model = jd.parse_urdf(robot(link("a"), link("b"), joint("j", "continuous", "a", "b", '<axis xyz="0 3 4"/>')))
    np.testing.assert_allclose(model.joint("j").joint.axis, [0, 0.6, 0.8], atol=1e-16)
    assert "length 5" in notes(model, "joint j")


def test_chain_of_mimics_ends_at_the_source():
    extra = '<limit lower="-9" upper="9" effort="1" velocity="1"/>'
    model = jd.parse_urdf(
        robot(
            *(link(x) for x in "abcd"),
            joint("j1", "revolute", "a", "b", f'{extra}<mimic joint="j2" multiplier="2" offset="1"/>'),
            joint("j2", "revolute", "b", "c", f'{extra}<mimic joint="j3" multiplier="3" offset="-2"/>'),
            joint("j3", "revolute", "c", "d", extra),
        )
    )
    assert model.topology.mimics == ((1, 3), (2, 3))
    np.testing.assert_array_equal(model.mimic.ratio, [6, 3])
    np.testing.assert_array_equal(model.mimic.offset, [2 * -2 + 1, -2])
    assert model.nv == 1 and "mimics another" in notes(model, "joint j1")


@pytest.mark.parametrize(
    ("source", "why"), [("nobody", "not a joint of the file"), ("fix", "is fixed and has no single coordinate")]
)
def test_mimics_without_a_moving_source_are_ignored(source, why):
    extra = f'<limit lower="-9" upper="9" effort="1" velocity="1"/><mimic joint="{source}"/>'
    text = robot(
        link("a"), link("b"), link("c"), joint("fix", "fixed", "a", "b"), joint("j", "revolute", "b", "c", extra)
    )
    model = jd.parse_urdf(text)
    assert model.nv == 1 and model.limits.upper[0] == 9
    assert why in notes(model, "joint j")


# --- masses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, mass, note",
    [
        pytest.param("", 0, "no <inertial>", id="none", marks=pytest.mark.slow),
        pytest.param('<inertial><mass value="3"/></inertial>', 3, "the mass is kept", id="no inertia",
                     marks=pytest.mark.slow),
        pytest.param(f"<inertial>{UNIT}</inertial>", 0, "the link is massless", id="no mass", marks=pytest.mark.slow),
        pytest.param('<inertial><origin xyz="1 2 3"/><mass value="3"/><inertia ixx="1" iyy="1" izz="1"/></inertial>',
                     3, "no ixy, ixz, iyz: the mass is kept", id="no products"),
    ],
)  # fmt: skip
def test_incomplete_inertial_as_in_pinocchio(given, mass, note):
    text = robot(link("a"), f'<link name="b">{given}</link>', link("c"), joint("j", "continuous", "a", "b"),
                 joint("k", "continuous", "b", "c", '<axis xyz="0 1 0"/><origin xyz="0 0 1"/>'))  # fmt: skip
    model = jd.parse_urdf(text)
    assert model.link("b").mass == mass and not np.any(model.link("b").inertia) and note in notes(model)
    q, v = some_state(model)
    for got, want in zip(quantities(model, q, v), pin_urdf(model, text).quantities(q, v), strict=True):
        assert relative_error(got, want) < 1e-10


def test_unphysical_inertia_is_kept_and_noted():
    body = inertial(moments=(1, 1, 5))
    model = jd.parse_urdf(robot(f'<link name="a">{body}</link>'))
    np.testing.assert_array_equal(model.link("a").inertia, np.diag([1.0, 1, 5]))
    assert "triangle inequality" in notes(model, "link a")


def test_joints_that_move_no_mass_are_noted():
    text = robot(link("a"), '<link name="b"/>', '<link name="c"/>', joint("j", "continuous", "a", "b"),
                 joint("f", "fixed", "b", "c"))  # fmt: skip
    assert "singular" in notes(jd.parse_urdf(text), "joint j")


# --- roots -------------------------------------------------------------------------------------------


def test_root_called_world_is_the_world():
    model = jd.parse_urdf(arm("world", world=True))
    assert model.link_names == ("upper", "lower")
    assert model.link("upper").parent == "world"
    assert model.joint_names == ("shoulder", "elbow")


def test_world_with_mass_does_not_move():
    model = jd.parse_urdf(robot(link("world"), link("a"), joint("j", "continuous", "world", "a")))
    assert model.link_names == ("a",) and "mass is ignored" in notes(model, "link world")


def test_floating_world_is_renamed():
    model = jd.parse_urdf(arm("world", world=True), floating_base=True)
    assert model.link_names == ("world_link", "upper", "lower")
    assert (model.nv, "called world_link" in notes(model, "link world")) == (8, True)


def test_world_below_the_root_is_renamed():
    text = robot(link("a"), link("world"), link("b"), joint("j", "continuous", "a", "world"),
                 joint("k", "continuous", "world", "b"))  # fmt: skip
    model = jd.parse_urdf(text)
    assert model.link_names == ("a", "world_link", "b") and model.link("b").parent == "world_link"


def test_several_roots_are_fixed_to_the_world():
    text = robot(link("a"), link("b"), link("c"), joint("j", "continuous", "b", "c"))
    model = jd.parse_urdf(text)
    assert model.link_names == ("a", "b", "c") and model.topology.parents == (-1, -1, 1)
    assert model.joint_names == ("a_root_joint", "b_root_joint", "j")
    assert "several roots" in notes(model, "link a")


def test_root_joint_is_renamed_if_its_name_is_in_use():
    model = jd.parse_urdf(robot(link("a"), link("b"), joint("root_joint", "continuous", "a", "b")))
    assert model.joint_names == ("root_joint_", "root_joint")


# --- limits, actuators, shapes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "lower", "upper", "note"),
    [
        ("", -np.inf, np.inf, "no <limit>"),
        ('<limit effort="1" velocity="1"/>', -np.inf, np.inf, "neither lower nor upper"),
        ('<limit upper="2" effort="1" velocity="1"/>', 0, 2, "no lower: zero"),
        ('<limit lower="3" upper="2" effort="1" velocity="1"/>', -np.inf, np.inf, "above"),
        ('<limit lower="-1e308" upper="2" effort="1" velocity="1"/>', -np.inf, 2, ""),
    ],
)
def test_limits(limit, lower, upper, note):
    model = jd.parse_urdf(robot(link("a"), link("b"), joint("j", "revolute", "a", "b", limit + '<axis xyz="0 0 1"/>')))
    assert (float(model.limits.lower[0]), float(model.limits.upper[0])) == (lower, upper)
    assert note in notes(model, "joint j") if note else not notes(model)


def test_transmissions_become_actuators():
    drives = """
    <transmission name="t1"><type>simple</type><joint name="shoulder"><hardwareInterface>x</hardwareInterface></joint>
      <actuator name="m1"><mechanicalReduction>50</mechanicalReduction></actuator></transmission>
    <transmission name="t2" type="old"><actuator name="m1"/><joint name="elbow"/>
      <mechanicalReduction>-7.5</mechanicalReduction></transmission>
    <transmission name="t3"><joint name="shoulder"/><joint name="elbow"/><actuator name="m3"/></transmission>
    <transmission name="t4"><joint name="root"/><actuator name="m4"/></transmission>
    <ros2_control name="c"><transmission name="t5"><joint name="elbow"><mechanical_reduction>3</mechanical_reduction>
      </joint><actuator name="m5"/></transmission></ros2_control>
    """
    model = jd.parse_urdf(arm("base", drives))
    found = {x.name: (x.joint, float(x.gear[0])) for x in model.actuators}
    assert found == {"m1": ("shoulder", 50), "m1_": ("elbow", -7.5), "m5": ("elbow", 3)}
    assert "2 joints and 1 actuators" in notes(model, "transmission t3")
    assert "not a joint with one independent coordinate" in notes(model, "transmission t4")


def test_shapes():
    solids = """
    <link name="a">
      <visual name="v"><origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/><geometry><box size="1 2 3"/></geometry>
        <material name="red"/></visual>
      <visual><geometry><mesh filename="package://p/m.stl" scale="1 1 -1"/></geometry>
        <material name="own"><color rgba="0 0 1 0.5"/></material></visual>
      <collision><geometry><cylinder radius="0.1" length="2"/></geometry></collision>
      <collision><geometry><sphere radius="0.3"/></geometry></collision>
      <collision><geometry><teapot/></geometry></collision>
    </link><material name="red"><color rgba="1 0 0 1"/></material>
    """
    model = jd.parse_urdf(robot(solids))
    box, mesh, cylinder, sphere = model.shapes
    assert (box.name, box.kind, box.size, box.color, box.translation) == (
        "v",
        "box",
        (1, 2, 3),
        (1, 0, 0, 1),
        (1, 2, 3),
    )
    np.testing.assert_allclose(box.quaternion, [np.sqrt(0.5), 0, 0, np.sqrt(0.5)])
    assert (mesh.mesh, mesh.size, mesh.color) == ("package://p/m.stl", (1, 1, -1), (0, 0, 1, 0.5))
    assert (cylinder.kind, cylinder.size, cylinder.collision) == ("cylinder", (0.1, 2), True)
    assert (sphere.kind, sphere.size, box.collision) == ("sphere", (0.3,), False)
    assert "<teapot>" in notes(model, "link a")


def test_ignored_content_is_noted():
    extra = '<gazebo/><gazebo/><link name="x"><sensor/></link>'
    joints = joint("j", "continuous", "a", "x", '<axis xyz="1 0 0"/><safety_controller/><dynamics damping="1" K="2"/>')
    text = notes(jd.parse_urdf(robot(link("a"), extra, joints)))
    for line in ("robot: 2 <gazebo>", "links: <sensor>", "joints: <safety_controller>", "joints: K of <dynamics>"):
        assert line in text
    assert jd.parse_urdf(arm("base")).report == ()


def test_ignored_content_is_noted_at_every_depth():
    """Unknown attributes and elements, and repetitions of elements that occur once; the first one counts."""
    body = (
        inertial(origin='<origin xyz="0 0 1" frame="f"/>')
        .replace("<mass", '<mass unit="kg"')
        .replace("</inertial>", '<mass value="7"/></inertial>')
    )
    text = robot(
        f'<link name="a" type="t">{body}{inertial(mass=9)}<visual><geometry><sphere radius="1" unit="m"/></geometry>'
        '<material name="m"><texture filename="t.png"/></material></visual></link>',
        link("b"),
        joint("j", "continuous", "a", "b", '<axis xyz="1 0 0" frame="f"/><axis xyz="0 1 0"/><mimic joint="j2" x="1"/>'),
        '<transmission name="t" kind="x"><type>y</type><joint name="j"><hardwareInterface>z</hardwareInterface></joint>'
        "<actuator name='m'/></transmission>",
    )
    model = jd.parse_urdf(text)
    assert model.link("a").mass == 1 and tuple(model.joint("j").joint.axis) == (1, 0, 0)
    text = notes(model)
    for line in (
        *("links: frame of <origin> ignored in a", "unit of <mass>", "another <mass> of <inertial>", "links: type"),
        *("another <inertial>", "<texture>", "unit of <sphere>", "joints: frame of <axis>", "another <axis>"),
        *("x of <mimic>", "transmissions: <type>", "<hardwareInterface>", "transmissions: kind"),
    ):
        assert line in text, line


@pytest.mark.parametrize("version", ["", ' version="1.0"', ' version="1.1"', ' version="1.2"'])
def test_quaternions_of_origins_agree_with_pinocchio(version):
    """They exist from version 1.1 of the format on; urdfdom ignores them before."""
    origin = '<origin xyz="1 2 3" quat_xyzw="1 1 0 1"/>'
    parts = PAIR_OF_LINKS, joint("j", "continuous", "a", "b", f'{origin}<axis xyz="1 0 0"/>')
    text = robot(*parts).replace('name="r"', f'name="r"{version}', 1)
    model, oracle = jd.parse_urdf(text), pin.buildModelFromXML(text)
    got = quaternion_to_matrix(model.placements.rotation[model.link_index("b")])
    np.testing.assert_allclose(got, oracle.jointPlacements[1].rotation, atol=1e-15)
    assert ("quat_xyzw has the length 1.73" if version > ' version="1.0"' else "quat_xyzw of 1 <origin>") in notes(
        model
    )


def test_a_second_free_base_is_noted():
    text = robot('<link name="base"/>', link("a"), joint("j", "floating", "base", "a"))
    assert "the mass matrix is singular" in notes(jd.parse_urdf(text, floating_base=True), "joint j")
    assert "singular" not in notes(jd.parse_urdf(text))


def test_precision_and_encoding():
    text = arm("base").encode("utf-16")
    model = jd.parse_urdf(text, dtype=jnp.float32)
    assert {x.dtype for x in jax.tree.leaves(model)} == {jnp.dtype("float32")}
    latin = '<?xml version="1.0" encoding="latin-1"?>' + robot('<link name="é"/>')
    assert jd.parse_urdf(latin.encode("latin-1")).link_names == ("é",)
    assert jd.parse_urdf("\n  " + arm("base")).num_links == 3


LOADING = """
import sys, time, jax, jaxdyn

def seconds():
    start = time.process_time()
    jax.block_until_ready(jaxdyn.load_urdf(sys.argv[1]))
    return time.process_time() - start

print(seconds(), min(seconds() for _ in range(10)), jaxdyn.load_urdf(sys.argv[1]).nv)
"""


@pytest.mark.slow
def test_forty_joints_load_in_fifty_milliseconds(capsys):
    """Processor time without imports and without the type checker of the tests.

    The first load of a process begins with what JAX does once, and is bounded by ten times as much.
    """
    path = ROBOTS / "centauro_description" / "urdf" / "centauro.urdf"
    run = subprocess.run([sys.executable, "-c", LOADING, str(path)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    first, best, joints = (float(x) for x in run.stdout.split())
    with capsys.disabled():
        print(f"\n56 links, 39 moving joints: first in {1e3 * first:.1f} ms, then in {1e3 * best:.1f} ms")
    assert joints == 39 and best < 0.05 and first < 0.5
