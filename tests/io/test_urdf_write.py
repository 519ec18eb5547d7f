"""Pinocchio, MuJoCo and jaxdyn read the written model."""

import dataclasses
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import ModelBuilder, ModelError, Shape
from jaxdyn.io.urdf._write import rpy_from_quaternion
from jaxdyn.joints import Custom, Cylindrical, Fixed, Free, Helical, Planar, Prismatic, Revolute, Spherical, Universal
from jaxdyn.spatial import box, quaternion_to_matrix, rpy_to_matrix
from tests.io._pinocchio import ROBOTS, pin_urdf, quantities, some_state
from tests.io._texts import arm
from tests.oracles import MujocoOracle, random_model, random_rotation, relative_error, to_pinocchio

LOST = ("armature", "stiffness", "friction_velocity", "planar_and_free")
SIMPLE = ("revolute", "continuous", "prismatic", "universal", "cylindrical", "spherical_zyx")
EARTH = jnp.array([0, 0, -9.81])


def robot(seed: int, joints: int, kinds, **kind) -> jd.Model:
    """A random robot with standard gravity and without armature, which URDF cannot express."""
    model = random_model(seed, joints, kinds=kinds, **kind)
    where = lambda m: (m.gravity, m.properties.armature)
    return eqx.tree_at(where, model, (EARTH, 0 * model.properties.armature))


def same(got, want):
    return max(relative_error(a, b) for a, b in zip(got, want, strict=True)) < 1e-9


# --- through the other engines -----------------------------------------------------------------------


QUICK = ("universal", "prismatic", "revolute")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "kinds", "joints", "floating"),
    [
        (0, QUICK, 3, False),
        pytest.param(1, (*SIMPLE, "planar", "helical"), 9, True, marks=pytest.mark.exhaustive),
        pytest.param(2, (*SIMPLE, "planar", "helical"), 9, False, marks=pytest.mark.exhaustive),
        pytest.param(3, SIMPLE, 12, True, marks=pytest.mark.exhaustive),
    ],
)
def test_random_robots_in_pinocchio(seed, kinds, joints, floating):
    """Dynamics of the original agree with Pinocchio's model of the file, coordinate by coordinate."""
    model = robot(seed, joints, kinds, fixed_fraction=0.2, floating=floating)
    text = jd.write_urdf(model, without=LOST)
    back = jd.parse_urdf(text)
    assert back.nv == model.nv
    q, v = some_state(model, seed)
    want = quantities(model, q, v)
    assert same(pin_urdf(back, text).quantities(q, v), want)
    if joints > 3:
        assert same(quantities(back, q, v), want)


def mujoco_quantities(model: jd.Model, text: str, q, v):
    """Mass matrix, bias and gravity forces by MuJoCo, for joints that keep their names and order."""
    m = mujoco.MjModel.from_xml_string(text)
    assert m.nv == model.nv
    oracle = MujocoOracle(model, m, mujoco.MjData(m))
    bias = oracle.set(q, v).qfrc_bias.copy()
    # MuJoCo's bias is at zero acceleration of its own coordinates, where the base turns about its axes
    mass = oracle.mass_matrix(q)
    p = oracle.tangent(q)
    still = oracle.set(q, 0 * v).qfrc_bias.copy()
    shift = oracle.a_back(q, v, np.zeros(m.nv))
    return mass, p.T @ bias - mass @ shift, p.T @ still


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "kinds", "joints", "floating"),
    [
        (0, QUICK, 3, False),
        pytest.param(3, SIMPLE, 9, False, marks=pytest.mark.exhaustive),
        pytest.param(4, SIMPLE, 9, True, marks=pytest.mark.exhaustive),
    ],
)
def test_random_robots_in_mujoco(seed, kinds, joints, floating):
    model = robot(seed, joints, kinds, fixed_fraction=0.2, floating=floating)
    text = jd.write_urdf(model, without=LOST)
    back = jd.parse_urdf(text)
    q, v = some_state(model, seed)
    assert same(mujoco_quantities(back, text, q, v), quantities(model, q, v))


@pytest.mark.slow("ur_description/urdf/ur5_robot.urdf")
@pytest.mark.parametrize(
    "name",
    [
        "ur_description/urdf/ur5_robot.urdf",
        "panda_description/urdf/panda.urdf",
        "talos_data/robots/talos_full_v2.urdf",
        "pr2_description/urdf/pr2.urdf",
    ],
)
def test_round_trips_of_real_files(name):
    """Reading, editing, writing and reading gives the same robot, also in Pinocchio."""
    model = jd.load_urdf(ROBOTS / name)
    mass = 1.25 * model.links.mass
    com = model.links.com + 0.01 * (mass > 0)[:, None]
    model = eqx.tree_at(lambda m: (m.links.mass, m.links.com), model, (mass, com))
    text = jd.write_urdf(model)
    back = jd.parse_urdf(text)
    assert back.topology == model.topology
    assert back.shapes and len(back.shapes) == len(model.shapes) and len(back.actuators) == len(model.actuators)
    leaves = zip(jax.tree.leaves(back), jax.tree.leaves(model), strict=True)
    for got, want in leaves:
        if got.shape[-1:] != (4,):  # quaternions go through angles, and have either sign
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15)
    q, v = some_state(model)
    want = quantities(model, q, v)
    assert same(quantities(back, q, v), want)
    assert same(pin_urdf(back, text).quantities(q, v), want)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ur_description/urdf/ur5_robot.urdf", "solo_description/robots/solo12.urdf"])
def test_real_files_in_mujoco(name):
    floating = "solo" in name
    model = jd.load_urdf(ROBOTS / name, floating_base=floating)
    text = jd.write_urdf(model, without=("shapes",))
    q, v = some_state(model)
    assert same(mujoco_quantities(jd.parse_urdf(text), text, q, v), quantities(model, q, v))


# --- structure -----------------------------------------------------------------------------------------


def small(joint, **placed) -> ModelBuilder:
    body = box((0.1, 0.2, 0.3), mass=2.0)
    b = ModelBuilder()
    b.add_link("a", "world", Revolute((0, 0, 1)), body, lower=-1.0, damping=0.5)
    return b.add_link("b", "a", joint, body, **placed)


def test_base_is_written_or_omitted():
    b = ModelBuilder(name="drone")
    b.add_link("hull", "world", Free(), box((0.1, 0.2, 0.3), mass=2.0), joint_name="root_joint")
    model = b.add_link("arm", "hull", Prismatic((0, 0, 1)), box((0.1, 0.2, 0.3), mass=2.0)).build()
    whole, bare = jd.write_urdf(model), jd.write_urdf(model, omit_base=True)
    assert 'type="floating"' in whole and "world" in whole
    assert "floating" not in bare and "world" not in bare
    first, second = jd.parse_urdf(whole), jd.parse_urdf(bare, floating_base=True)
    assert first.topology == second.topology == model.topology and first.name == "drone"
    assert jd.parse_urdf(bare).nv == 1
    moved = eqx.tree_at(lambda m: m.placements.translation, model, model.placements.translation + 1.0)
    with pytest.raises(ModelError, match="omit_base expects a model with one root"):
        jd.write_urdf(moved, omit_base=True)


def test_round_trip_of_limits_friction_and_mimics():
    text = arm(
        "base",
        '<transmission name="t"><joint name="elbow"/><actuator name="m"><mechanicalReduction>-50.25'
        "</mechanicalReduction></actuator></transmission>",
    )
    model = jd.parse_urdf(text)
    model = eqx.tree_at(lambda m: m.properties.damping, model, jnp.array([0.1, 1 / 3]))
    back = jd.parse_urdf(jd.write_urdf(model))
    for a, b in zip(jax.tree.leaves(model), jax.tree.leaves(back), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15)
    assert [(x.name, x.joint, float(x.gear[0])) for x in back.actuators] == [("m", "elbow", -50.25)]
    one_sided = small(Prismatic((1, 0, 0))).build()
    limits = jd.parse_urdf(jd.write_urdf(one_sided)).limits
    np.testing.assert_array_equal(limits.lower, [-1, -np.inf])
    assert np.isinf(limits.upper).all() and np.isinf(limits.effort).all()


def test_frames_shapes_and_names():
    b = small(Revolute((0, 1, 0)))
    b.add_frame("tool <&\"'>", "b", translation=(0.1, 0.2, 0.3), rpy=(0.1, 0.2, 0.3))
    b.add_shape(Shape("ball", "world", "sphere", (0.2,), (1.0, 2.0, 3.0), color=(1.0, 0.5, 0.0, 1.0)))
    b.add_shape(Shape("skin", "b", "mesh", (1.0, 2.0, 1.0), mesh="package://x/y.stl", collision=True))
    model = b.build()
    back = jd.parse_urdf(jd.write_urdf(model))
    assert back.link_names[-1] == "tool <&\"'>"
    q = jnp.array([0.3, 0.4])
    got, want = jd.frame_pose(back, q, "tool <&\"'>"), jd.frame_pose(model, q, "tool <&\"'>")
    np.testing.assert_allclose(got.rotation, want.rotation, atol=1e-14)
    np.testing.assert_allclose(got.translation, want.translation, atol=1e-14)
    assert back.shapes == model.shapes


def test_chains_have_the_coordinates_of_the_joint():
    model = small(Universal((1, 0, 0), (0, 1, 0)), damping=[0.1, 0.2], lower=[-1, -2], upper=[1, 2]).build()
    back = jd.parse_urdf(jd.write_urdf(model))
    assert back.joint_names == ("a_joint", "b_joint_1", "b_joint_2")
    np.testing.assert_array_equal(back.properties.damping, [0.5, 0.1, 0.2])
    np.testing.assert_array_equal(back.limits.upper, [np.inf, 1, 2])


@pytest.mark.exhaustive
def test_helical_joint_is_a_rotation_and_a_mimicking_slide():
    b = small(Helical((0, 0.6, 0.8), 0.25), damping=0.3)
    b.add_link("c", "b", Helical((1, 0, 0), -0.5), box((0.1, 0.2, 0.3), mass=2.0))
    b.add_mimic("c_joint", "b_joint", ratio=3.0, offset=0.2)
    model = b.build()
    text = jd.write_urdf(model)
    back = jd.parse_urdf(text)
    assert back.nv == model.nv == 2
    q, v = some_state(model)
    assert same(quantities(back, q, v), quantities(model, q, v))
    names = back.joint_names
    pairs = {names[a]: (names[b], float(r)) for (a, b), r in zip(back.topology.mimics, back.mimic.ratio, strict=True)}
    assert pairs == {"b_joint_2": ("b_joint_1", 0.25), "c_joint_1": ("b_joint_1", 3), "c_joint_2": ("b_joint_1", -1.5)}


@pytest.mark.slow
def test_angles_are_accurate_at_a_pitch_of_90_degrees():
    rng = np.random.default_rng(0)
    for k in range(200):
        rpy = rng.uniform(-3, 3, 3)
        if k % 2:
            rpy[1] = np.pi / 2 * (-1) ** (k // 2) + 10.0 ** -rng.uniform(3, 17)
        want = np.asarray(rpy_to_matrix(rpy))
        quaternion = np.asarray(jd.spatial.matrix_to_quaternion(want)) * 3.0
        got = rpy_to_matrix(rpy_from_quaternion(quaternion))
        np.testing.assert_allclose(got, quaternion_to_matrix(quaternion), atol=1e-15)
        assert np.abs(np.asarray(got) - want).max() < 1e-14 or k % 2  # the matrix itself is exact to its rounding
    generic = random_rotation(rng)
    quaternion = jd.spatial.matrix_to_quaternion(generic)
    np.testing.assert_allclose(rpy_to_matrix(rpy_from_quaternion(quaternion)), generic, atol=1e-14)


def test_original_agrees_with_pinocchio_too():
    """The oracle built from leaves agrees with the oracle built from the written file."""
    model = robot(5, 4, ("revolute", "prismatic"))
    q, v = some_state(model)
    direct = to_pinocchio(model).mass_matrix(q)
    text = jd.write_urdf(model, without=LOST)
    np.testing.assert_allclose(pin_urdf(jd.parse_urdf(text), text).quantities(q, v)[0], direct, atol=1e-12)


def test_file_and_text_are_equal(tmp_path):
    path = tmp_path / "arm.urdf"
    model = small(Cylindrical((0, 0, 1))).build()
    assert jd.write_urdf(model, path) == path.read_text(encoding="utf-8")
    assert [x.name for x in tmp_path.iterdir()] == ["arm.urdf"]
    assert jd.load_urdf(path).nv == 3


# --- refusals --------------------------------------------------------------------------------------------


def custom(params, q):
    return rpy_to_matrix(jnp.stack([q[0], 0 * q[0], 0 * q[0]])), jnp.zeros(3)


@pytest.mark.parametrize("joint", [Spherical(), Custom((), custom, 1)], ids=["Spherical", "Custom"])
def test_unsupported_joints_are_refused_by_name(joint):
    with pytest.raises(ModelError, match=rf"'b_joint' is a {type(joint).__name__} joint, which URDF cannot express"):
        jd.write_urdf(small(joint).build())


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("armature", lambda b: b.add_link("c", "b", Revolute((1, 0, 0)), armature=0.1)),
        ("stiffness", lambda b: b.add_link("c", "b", Revolute((1, 0, 0)), stiffness=0.1)),
        ("friction_velocity", lambda b: b.add_link("c", "b", Revolute((1, 0, 0)), friction=1.0, friction_velocity=0.1)),
        ("gravity", lambda b: dataclasses.replace(b, gravity=(0, 0, 0)).add_link("z", "world", Fixed())),
        ("planar_and_free", lambda b: b.add_link("c", "b", Planar(), damping=0.1)),
        ("closures", lambda b: b.add_closure("loop", "point", ("a", (0, 0, 0)), ("b", (0, 0, 0)))),
        ("actuators", lambda b: b.add_actuator("m", "b_joint", range=(-1, 1))),
        ("shapes", lambda b: b.add_shape(Shape("s", "b", "ellipsoid", (1.0, 1.0, 1.0)))),
    ],
)
def test_unsupported_features_are_refused_or_omitted(kind, change):
    model = change(small(Revolute((0, 1, 0)))).build()
    with pytest.raises(ModelError, match=re.escape(f"without=('{kind}',)")):
        jd.write_urdf(model)
    assert jd.parse_urdf(jd.write_urdf(model, without=(kind,))).num_links >= 1


def test_other_refusals():
    model = small(Revolute((0, 1, 0))).build()
    with pytest.raises(ModelError, match="batch of shape \\(3,\\)"):
        jd.write_urdf(jax.tree.map(lambda x: jnp.stack([x] * 3), model))
    with pytest.raises(ModelError, match="traced numbers cannot be written"):
        jax.jit(lambda m: (jd.write_urdf(m), 0)[1])(model)
    with pytest.raises(ModelError, match="without contains colour"):
        jd.write_urdf(model, without=("colour",))
    with pytest.raises(ModelError, match="links.mass has numbers that are not finite"):
        jd.write_urdf(eqx.tree_at(lambda m: m.links.mass, model, jnp.array([1.0, jnp.nan])))
    b = ModelBuilder().add_link("bad\x00name", "world", Revolute((1, 0, 0)))
    with pytest.raises(ModelError, match="characters that XML does not allow"):
        jd.write_urdf(b.build())
    with pytest.raises(ModelError, match="the frame 'world' has the name of a link"):
        jd.write_urdf(small(Revolute((0, 1, 0))).add_frame("world", "b").build())


def test_comments_name_the_differences_of_mujoco():
    plain = jd.write_urdf(small(Revolute((0, 1, 0))).build())
    assert "<!--" not in plain
    assert "<!-- MuJoCo ignores mimic" in jd.write_urdf(small(Helical((0, 0, 1), 0.1)).build())
    assert "<!-- MuJoCo expresses velocities of planar joints" in jd.write_urdf(small(Planar()).build())
