"""MJCF: actuators, equality constraints, and unsupported elements."""

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxdyn as jd
from tests.io.test_mjcf import body, compiled


def notes(model):
    return "\n".join(map(str, model.report))


# --- actuators -------------------------------------------------------------------------------------

DRIVEN = """
<mujoco>
  <compiler autolimits="true"/>
  <worldbody>
    <body name="a"><joint name="hinge" ref="20"/><geom size="0.1" pos="0.1 0 0"/>
      <body name="b"><joint name="slide" type="slide"/><geom size="0.1"/>
        <body name="c"><joint name="ball" type="ball"/><geom size="0.1" pos="0 0.1 0"/></body>
      </body>
    </body>
    <body name="d"><freejoint name="free"/><geom size="0.1"/></body>
  </worldbody>
  <tendon><fixed name="rope"><joint joint="hinge" coef="1"/></fixed></tendon>
  <actuator>
    <motor name="plain" joint="hinge" gear="3" ctrlrange="-2 5"/>
    <general name="gained" joint="slide" gear="-2" gainprm="4" ctrlrange="-2 2" forcerange="-4 6"/>
    <motor name="twist" joint="ball" gear="1 2 3"/>
    <motor name="turn" joint="free" gear="0 0 0 1 2 3"/>
    <position name="servo" joint="hinge" kp="50" kv="2" gear="3" ctrlrange="-1 1" forcerange="-9 9"/>
    <velocity name="speed" joint="slide" kv="5"/>
    <intvelocity name="slow" joint="slide" kp="5" actrange="-1 1"/>
    <muscle name="muscle" joint="hinge" lengthrange="0 1"/>
    <motor name="push" joint="free" gear="1 0 0 0 0 0"/>
    <motor name="above" jointinparent="ball" gear="1 0 0"/>
    <motor name="pull" tendon="rope"/>
  </actuator>
</mujoco>
"""


def test_efforts_of_actuators():
    """`gear * u` summed over actuators is MuJoCo's qfrc_actuator, with u as defined by `Actuator` and the report."""
    model, m = jd.parse_mjcf(DRIVEN), compiled(DRIVEN)
    kept = {a.name: a for a in model.actuators}
    m.actuator_gear[[m.actuator(n).id for n in ("push", "above", "pull")]] = 0  # those that are not kept
    data = mujoco.MjData(m)
    data.qpos[:2], data.qvel[:] = (0.3, 0.2), np.arange(m.nv) / 10
    data.ctrl[:] = 0.1 + 0.05 * np.arange(m.nu)
    mujoco.mj_forward(m, data)
    motors = ("plain", "gained", "twist", "turn")
    effort = np.zeros(model.nv)
    for name, drive in kept.items():
        u = (data.ctrl if name in motors else data.actuator_force)[m.actuator(name).id]
        effort[model.joint(drive.joint).v] += np.asarray(drive.gear) * u
    want = np.array(data.qfrc_actuator)
    free = model.joint("free").v
    want[free] = np.roll(want[free], 3)  # at rest in the world's axes: torque first
    np.testing.assert_allclose(effort, want, atol=1e-12)
    assert np.count_nonzero(effort) == 8  # hinge, slide, and three each of ball and free joint


def test_ranges_of_actuators():
    kept = {a.name: np.asarray(a.range) for a in jd.parse_mjcf(DRIVEN).actuators}
    assert set(kept) == {"plain", "gained", "twist", "turn", "servo", "speed", "slow", "muscle"}
    np.testing.assert_array_equal(kept["plain"], (-2, 5))
    np.testing.assert_array_equal(kept["gained"], (-1, 1.5))  # the range of the force over the gain
    np.testing.assert_array_equal(kept["servo"], (-9, 9))
    assert np.isinf(kept["speed"]).all()


@pytest.mark.parametrize(
    "line",
    [
        "'servo': u is the force before the gear; in MuJoCo u = 50 ctrl - 50 length - 2 velocity",
        "'speed': u is the force before the gear; in MuJoCo u = 5 ctrl - 5 velocity",
        "'slow': u is the force before the gear; in MuJoCo u = 5 act (integrator of ctrl) - 5 length",
        "'muscle': u is the force before the gear; in MuJoCo it follows the law muscle",
        "'push': acts on a free joint along world axes",
        "'above': acts along the axes of the parent",
        "'pull': acts through a tendon",
    ],
)
def test_actuators_in_the_report(line):
    assert line in notes(jd.parse_mjcf(DRIVEN))


# --- equality constraints --------------------------------------------------------------------------

TIED = """
<mujoco>
  <worldbody>
    <site name="s0" pos="0.3 0.1 0" euler="40 0 10"/>
    <body name="a" pos="0 0 1"><joint name="j" axis="0 1 0" ref="20"/><geom size="0.1" pos="0.3 0 0"/>
      <site name="s1" pos="0.1 0.2 0.3" euler="10 20 30"/></body>
    <body name="b" pos="1 0 0" euler="10 20 30"><joint name="k" type="ball"/><geom size="0.1" pos="0.3 0 0"/>
      <site name="s2" pos="0.1 0.2 0.3"/></body>
    <body name="c"><joint name="l" type="slide" ref="0.3"/><geom size="0.1"/></body>
  </worldbody>
  <equality>
    <weld body1="a" body2="b"/>
    <weld body1="a" body2="b" relpose="1 2 3 1 0.2 0.3 0.4" anchor="0.1 0.2 0.3"/>
    <weld name="sites" site1="s1" site2="s2"/>
    <weld name="ground" body1="b"/>
    <weld name="mark" site1="s0" site2="s1"/>
    <connect name="pin" body1="a" body2="b" anchor="0.3 0.2 0.1"/>
    <connect site1="s1" site2="s2"/>
    <connect name="hook" body1="a" anchor="0.1 0 0"/>
    <joint name="geared" joint1="j" joint2="l" polycoef="0.1 0.2 0.3 0.4 0.5"/>
    <joint name="held" joint1="l" polycoef="0.7 0 0 0 0"/>
    <weld name="off" body1="a" body2="c" active="false"/>
  </equality>
</mujoco>
"""


def _residual(model, data, closure):
    """MuJoCo's constraint residual, from the frames of the closure and MuJoCo's poses of the bodies."""
    origins, quaternions = [], []
    for k, link in enumerate(closure.links):
        at = data.body(link)
        turned = np.zeros(4)
        mujoco.mju_mulQuat(turned, at.xquat, np.asarray(closure.rotations[k]))
        origins.append(at.xpos + at.xmat.reshape(3, 3) @ np.asarray(closure.translations[k]))
        quaternions.append(turned)
    apart = origins[0] - origins[1]
    if closure.kind == "point":
        return apart
    between, back = np.zeros(4), quaternions[1] * (1, -1, -1, -1)
    mujoco.mju_mulQuat(between, back, quaternions[0])
    return np.r_[apart, between[1:]]


def test_closures_agree_with_mujocos_constraints():
    model, m = jd.parse_mjcf(TIED), compiled(TIED)
    data = mujoco.MjData(m)
    rng = np.random.default_rng(0)
    data.qpos[:] = rng.normal(size=m.nq)
    data.qpos[1:5] /= np.linalg.norm(data.qpos[1:5])
    mujoco.mj_forward(m, data)
    got = []
    for closure in model.closures:
        if isinstance(closure, jd.Closure):
            got.extend(_residual(model, data, closure))
        else:
            joint = data.qpos[model.joint(closure.joint).q][0]
            source = 0.0 if closure.source is None else data.qpos[model.joint(closure.source).q][0]
            got.append(joint - np.polynomial.polynomial.polyval(source, np.asarray(closure.coefficients)))
    want = data.efc_pos[data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY.value]
    assert len(got) == len(want) == 5 * 6 + 3 * 3 + 2
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_kinds_and_names_of_closures():
    model = jd.parse_mjcf(TIED)
    kinds = {c.name: c.kind for c in model.closures if isinstance(c, jd.Closure)}
    assert list(kinds.values()) == ["weld"] * 5 + ["point"] * 3
    assert "off" not in kinds and "'off': is disabled" in notes(model)
    assert next(c for c in model.closures if c.name == "ground").links == ("b", "world")


# --- the report, and refusals ----------------------------------------------------------------------

REPORTED = {
    "gravcomp": ("<joint/><body gravcomp='1'><joint/><geom size='0.1'/></body>", "", "", "gravcomp"),
    "fluid": ("<joint/>", "<option density='1.2' viscosity='2e-5'/>", "", "forces of the medium"),
    "fluid shape": ("<joint/><geom size='0.1' fluidshape='ellipsoid'/>", "", "", "fluid forces on its geoms"),
    "ball range": ("<joint name='j' type='ball' limited='true' range='0 30'/>", "", "", "angle of a ball joint"),
    "one-sided": ("<joint actuatorfrclimited='true' actuatorfrcrange='-1 2'/>", "", "", "larger of the two sides"),
    "ref": ("<joint name='j' ref='10'/>", "", "", "joint 'j': q equals qpos, which is ref"),
    "free": ("<freejoint name='f'/>", "", "", "q is [w x y z, position]"),
    "keyframe": ("<joint/>", "", "<keyframe><key name='home' qpos='1'/></keyframe>", "'home': keyframes"),
    "sensor": ("<joint name='j'/>", "", "<sensor><jointpos joint='j'/></sensor>", "sensors are ignored (1)"),
    "light": ("<joint/><light/>", "", "", "lights are ignored (1)"),
    "custom": (
        "<joint/>",
        "<custom><text name='t' data='x'/></custom>",
        "",
        "user-defined numbers, texts and tuples are ignored (1)",
    ),
    "userdata": ("<joint/>", "<size nuserdata='3'/>", "", "numbers for callbacks are ignored (3)"),
    "actuation": ("<joint/>", "<option><flag actuation='disable'/></option>", "", "disables actuation"),
    "tendon": (
        "<joint name='j'/>",
        "",
        "<tendon><fixed name='rope' stiffness='2'><joint joint='j' coef='1'/></fixed></tendon>",
        "tendon 'rope': is ignored, with its stiffness",
    ),
    "solver": ("<joint limited='true' range='-1 1'/>", "", "", "solref, solimp"),
    "contact": ("<joint/>", "", "", "soft contact"),
}


@pytest.mark.parametrize("case", REPORTED)
def test_ignored_content_is_reported(case):
    inside, options, extra, line = REPORTED[case]
    assert line in notes(jd.parse_mjcf(body(inside, options, extra)))


def test_mocap_bodies_are_fixed():
    text = "<mujoco><worldbody><body name='hand' mocap='true'><geom size='0.1'/></body></worldbody></mujoco>"
    model = jd.parse_mjcf(text)
    assert model.nv == 0 and "'hand': is a mocap body" in notes(model)


@pytest.mark.skipif(not hasattr(compiled("<mujoco/>"), "dof_dampingpoly"), reason="older MuJoCo has no polynomials")
def test_nonlinear_springs_and_dampers():
    model = jd.parse_mjcf(body("<joint name='j' damping='1 2 3' stiffness='4 5 6'/>"))
    assert model.properties.damping[0] == 1 and model.properties.stiffness[0] == 4
    assert "only its linear coefficient" in notes(model) and "nonlinear spring" in notes(model)


def test_reports_of_fully_supported_files_are_empty():
    still = "<mujoco><worldbody><body><joint/><geom size='0.1' contype='0'/></body></worldbody></mujoco>"
    assert jd.parse_mjcf(still).report == ()


REFUSED = {
    "tendon armature": (
        body(
            "<joint name='j'/>",
            "",
            "<tendon><fixed name='rope' armature='2'><joint joint='j' coef='1'/></fixed></tendon>",
        ),
        "tendon 'rope' has armature 2 kg",
    ),
    "flex": (
        "<mujoco><worldbody><flexcomp name='cloth' type='grid' count='3 3 1' spacing='.1 .1 .1' mass='1' dim='2'/>"
        "</worldbody></mujoco>",
        "flex 'cloth' is a deformable body",
    ),
    "gravity": ("<mujoco><option gravity='0 0 nan'/></mujoco>", "line 1, <option>: gravity has 'nan', .*finite"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_unsupported_inertia_is_refused(case):
    text, message = REFUSED[case]
    with pytest.raises(jd.ModelError, match=message):
        jd.parse_mjcf(text)


def test_coefficients_are_leaves():
    model = jd.parse_mjcf(TIED)
    coupling = next(c for c in model.closures if c.name == "geared")
    assert coupling.coefficients.shape == (5,) and coupling.coefficients.dtype == jnp.result_type(float)


NOT_FINITE = {
    "mass": body("<joint/><geom size='.1' mass='{}'/>"),
    "density": body("<joint/>", "<default><geom density='{}'/></default>"),
    "data": body("<joint/>", "<custom><numeric name='n' data='1 {}'/></custom>"),
    "qpos": body("<joint/>", "", "<keyframe><key qpos='{}'/></keyframe>"),
    "margin": body("<joint margin='{}'/>"),
    "timestep": body("<joint/>", "<option timestep='{}'/>"),
}


@pytest.mark.parametrize("key", NOT_FINITE)
def test_numbers_that_are_not_finite_are_refused_with_their_line(key):
    for word in ("nan", "NaN", "-nan", "inf", "-Infinity", "1e999", "1e308", "nan(0x1)", "9" * 400):
        with pytest.raises(jd.FileFormatError, match=f"line [0-9]+, .*: {key} has .*; give finite numbers"):
            jd.parse_mjcf(NOT_FINITE[key].format(word))


def test_names_that_read_like_numbers_are_names():
    inside = "<joint name='nan'/><site name='inf'/><geom name='1e999' size='.1'/>"
    extra = "<sensor><jointpos joint='nan'/></sensor>"
    options = "<custom><text name='t' data='nan inf'/></custom>"
    assert jd.parse_mjcf(body(inside, options, extra)).joint_names == ("nan",)


THREE_JOINTS = """
<mujoco><worldbody>
  <body><joint name='a' axis='0 1 0' ref='20'/><geom size='.1' mass='1'/>
    <body><joint name='b' type='slide' axis='1 0 0' ref='0.3'/><geom size='.1' mass='1'/>
      <body><joint name='c' axis='0 0 1'/><geom size='.1' mass='1'/></body></body></body>
</worldbody>
<tendon>
  <fixed name='one'><joint joint='a' coef='0.7'/></fixed>
  <fixed name='two'><joint joint='b' coef='-2'/></fixed>
  <fixed name='both'><joint joint='a' coef='0.5'/><joint joint='b' coef='3'/></fixed>
  <fixed name='others'><joint joint='a' coef='1'/><joint joint='c' coef='2'/></fixed>
</tendon>
<equality><tendon name='tie' {}/></equality></mujoco>
"""


@pytest.mark.parametrize(
    "given",
    [
        "tendon1='one' polycoef='0.1 0 0 0 0'",
        "tendon1='both' polycoef='0.2 5 0 0 0'",
        "tendon1='one' tendon2='two' polycoef='0.1 0.5 -0.2 0.3 0.4'",
        "tendon1='both' tendon2='one' polycoef='0.1 0.4 0 0 0'",
    ],
)
def test_equalities_of_tendons_are_couplings(given):
    """MuJoCo's residual of the equality vanishes where the coupling holds."""
    text = THREE_JOINTS.format(given)
    model, m = jd.parse_mjcf(text), compiled(text)
    (coupling,) = model.closures
    assert "read as a coupling" in notes(model) and "tendon 'others': is ignored" in notes(model)
    data = mujoco.MjData(m)
    for q in np.random.default_rng(0).uniform(-1, 1, (5, 3)):
        k = {"a": 0, "b": 1}
        source = 0.0 if coupling.source is None else q[k[coupling.source]]
        q[k[coupling.joint]] = np.polyval(np.asarray(coupling.coefficients)[::-1], source)
        data.qpos[:] = q
        mujoco.mj_forward(m, data)
        assert data.ne == 1 and abs(data.efc_pos[0]) < 1e-12
        data.qpos[k[coupling.joint]] += 0.1
        mujoco.mj_forward(m, data)
        assert abs(data.efc_pos[0]) > 1e-3


@pytest.mark.parametrize(
    "given", ["tendon1='both' tendon2='others'", "tendon1='both' tendon2='one' polycoef='0 1 1 0 0'"]
)
def test_equalities_of_tendons_that_couple_more_joints_are_refused(given):
    with pytest.raises(jd.FileFormatError, match="equality 'tie' constrains tendons .*; describe it by an equality of"):
        jd.parse_mjcf(THREE_JOINTS.format(given))
    model = jd.parse_mjcf(THREE_JOINTS.format(f"{given} active='false'"))
    assert model.closures == () and "equality 'tie': is disabled" in notes(model)
