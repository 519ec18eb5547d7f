"""MJCF compared with MuJoCo: coordinates, joints and their properties, frames and shapes."""

import sys

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxdyn as jd
from benchmarks._agreement import compare_mujoco
from jaxdyn.joints import Fixed, Free, Prismatic, Revolute, Spherical

TOLERANCE = 1e-9


def compiled(text):
    return mujoco.MjModel.from_xml_string(text)


def body(inside, options="", extra=""):
    """A model with one heavy ball that carries what is `inside`."""
    return (
        f"<mujoco>{options}<worldbody><body name='arm' pos='0.1 0.2 0.3' euler='10 20 30'>{inside}"
        f"<geom name='ball' size='0.1' pos='0.2 0 0.1'/></body></worldbody>{extra}</mujoco>"
    )


EVERYTHING = """
<mujoco model="everything">
  <compiler angle="radian" autolimits="true"/>
  <option gravity="0.3 -0.2 -9.5"/>
  <default>
    <joint damping="0.2"/>
    <default class="stiff"><joint stiffness="3" springref="0.4" armature="0.05"/></default>
  </default>
  <worldbody>
    <site name="mark" pos="1 2 3" euler="0.1 0.2 0.3"/>
    <body name="base" pos="5 6 7" euler="0.3 0.2 0.1">
      <freejoint name="root"/>
      <inertial pos="0.01 0.02 0.03" mass="2" fullinertia="0.02 0.03 0.04 0.001 -0.002 0.003"/>
      <frame pos="0.1 0 0" euler="0 0 0.7">
        <body name="leg" pos="0 0.2 0" quat="1 0.1 0.2 0.3">
          <joint name="hip_x" class="stiff" axis="1 0.2 0" pos="0.01 -0.02 0.03" ref="0.3" range="-1 2"/>
          <joint name="hip_slide" type="slide" axis="0 1 1" pos="0.3 0.2 0.1" ref="-0.2" frictionloss="0.7"/>
          <joint name="hip_z" axis="0 0 1" pos="-0.04 0.05 0.06" actuatorfrcrange="-4 4"/>
          <geom type="capsule" size="0.03 0.1" pos="0 0 -0.1"/>
          <site name="foot" pos="0 0 -0.2" euler="0.5 0 0"/>
          <body name="tip" pos="0 0 -0.2">
            <geom type="box" size="0.02 0.03 0.04"/>
            <body name="wobble" pos="0.1 0 0">
              <joint name="ball" type="ball" pos="0.02 0.03 0.04" stiffness="1.5"/>
              <geom type="ellipsoid" size="0.02 0.03 0.05" pos="0.01 0.02 0.1" euler="0.2 0.4 0"/>
            </body>
          </body>
        </body>
      </frame>
      <body name="rotor" pos="0 0 0.2">
        <joint name="spin" axis="0 0 -1" ref="1.2" springref="0.1" stiffness="0.3"/>
        <geom type="cylinder" size="0.05 0.02"/>
      </body>
    </body>
    <body name="still" pos="0 1 0"><geom type="sphere" size="0.1"/></body>
  </worldbody>
</mujoco>
"""

TIED = """
<mujoco>
  <worldbody>
    <body name="box" pos="1 2 3" euler="10 20 30">
      <joint name="root" type="free" armature="0.4" damping="0.3" stiffness="2" frictionloss="0.1"/>
      <geom type="box" size="0.1 0.2 0.3" pos="0.05 0 0.1" mass="1.5"/>
      <body name="flap" pos="0.1 0 0">
        <joint name="hinge" axis="0 1 0" damping="0.2"/><geom size="0.05" pos="0.1 0 0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="hinge" gear="4"/></actuator>
</mujoco>
"""
GEARED = hasattr(compiled("<mujoco/>"), "actuator_armature")  # from MuJoCo 4 on, actuators add to their joints
if GEARED:
    TIED = TIED.replace('gear="4"', 'gear="4" armature="0.01" damping="0.02"')


@pytest.fixture(scope="module")
def everything():
    return jd.parse_mjcf(EVERYTHING)


HINGED = body(
    "<joint axis='1 2 3' pos='.1 .2 .3' ref='20' armature='.1' damping='.2' stiffness='3' springref='40'/>"
    "<joint axis='0 1 1' pos='.3 .2 .1' ref='-30'/>"
    "<body euler='0 30 0'><joint pos='0 0 .1' ref='50'/><geom type='box' size='.1 .2 .3'/></body>",
    "<compiler angle='degree'/>",
)


@pytest.mark.parametrize(
    "text",
    [HINGED, *(pytest.param(x, marks=m) for x, m in ((EVERYTHING, pytest.mark.exhaustive), (TIED, pytest.mark.slow)))],
)
def test_agrees_with_mujoco(text):
    """Mass matrix with armature, bias, gravity, springs and dampers, and the poses of all bodies."""
    agreement = compare_mujoco(jd.parse_mjcf(text), compiled(text))
    assert len(agreement.deviations) == 6
    assert agreement.worst < TOLERANCE, agreement.deviations


def test_coordinates_are_those_of_mujoco(everything):
    m = compiled(EVERYTHING)
    assert (everything.nq, everything.nv) == (m.nq, m.nv)
    for j in range(m.njnt):
        view = everything.joint(m.joint(j).name)
        assert (view.q.start, view.v.start) == (m.jnt_qposadr[j], m.jnt_dofadr[j])


def test_joints_of_one_body_form_a_chain(everything):
    kinds = {"root": Free, "hip_x": Revolute, "hip_slide": Prismatic, "hip_z": Revolute, "ball": Spherical}
    for name, kind in kinds.items():
        assert isinstance(everything.joint(name).joint, kind)
    carriers = [everything.link(f"{name}_carrier") for name in ("hip_x", "hip_slide", "hip_z")]
    assert [c.parent for c in carriers] == ["base", "hip_x_carrier", "hip_slide_carrier"]
    assert all(c.mass == 0 for c in carriers)
    leg = everything.link("leg")
    assert leg.parent == "hip_z_carrier" and leg.mass > 0
    assert isinstance(everything.joint("leg_fixed").joint, Fixed)
    assert everything.link("rotor").parent == "base"  # its joint is at its origin: no carrier
    assert isinstance(everything.joint("tip_fixed").joint, Fixed)


def test_properties_and_limits(everything):
    hip, slide, last, spin = (everything.joint(n) for n in ("hip_x", "hip_slide", "hip_z", "spin"))
    p, limits = everything.properties, everything.limits
    assert p.armature[hip.v] == 0.05 and p.stiffness[hip.v] == 3 and p.rest[hip.q] == 0.4
    assert p.friction[slide.v] == 0.7 and p.damping[slide.v] == 0.2 and p.rest[spin.q] == 0.1
    assert (limits.lower[hip.q], limits.upper[hip.q]) == (-1, 2)
    assert jnp.isinf(limits.upper[last.q]) and limits.effort[last.v] == 4
    np.testing.assert_array_equal(everything.gravity, [0.3, -0.2, -9.5])
    assert everything.name == "everything"


def test_free_joint_with_properties_along_world_axes():
    """MuJoCo applies them along world axes; three slides and a ball have the same coordinates."""
    model = jd.parse_mjcf(TIED)
    names = ("root_x", "root_y", "root_z", "root")
    assert [type(model.joint(n).joint) for n in names] == [Prismatic] * 3 + [Spherical]
    m = compiled(TIED)
    np.testing.assert_array_equal(model.properties.rest[:7], m.qpos_spring[:7])
    np.testing.assert_array_equal(model.properties.armature, [0.4] * 6 + [0.16 * GEARED])
    assert any("three slides and a ball" in n.what for n in model.report)


def test_sites_are_frames(everything):
    """Poses agree with MuJoCo's site poses in the configuration of the file."""
    m = compiled(EVERYTHING)
    data = mujoco.MjData(m)
    mujoco.mj_kinematics(m, data)
    mujoco.mj_comPos(m, data)
    assert set(everything.frame_names) == {"mark", "foot"}
    place = everything.frames.rotation[everything.frame_index("foot")]
    np.testing.assert_allclose(place, m.site("foot").quat, atol=1e-15)
    ground = everything.link_names[everything.topology.frame_links[everything.frame_index("mark")]]
    assert ground == "worldbody" and everything.link(ground).mass == 0
    np.testing.assert_allclose(everything.frames.translation[0], data.site("mark").xpos, atol=1e-15)


def test_missing_and_duplicate_names():
    inside = "<joint/><site name='arm'/><body><joint/><geom size='0.1'/><site/></body>"
    model = jd.parse_mjcf(body(inside))
    assert model.link_names == ("arm", "body2")
    assert model.joint_names == ("joint0", "joint1")
    assert model.frame_names == ("arm_2", "site1")
    assert any("frame 'arm_2'" in str(n) for n in model.report)


def test_disabled_features():
    options = "<option><flag gravity='disable' spring='disable' frictionloss='disable' limit='disable'/></option>"
    joint = "<joint name='j' stiffness='2' damping='3' frictionloss='4' range='-1 1' limited='true'/>"
    model = jd.parse_mjcf(body(joint, options))
    p = model.properties
    assert (p.stiffness[0], p.damping[0], p.friction[0]) == (0, 3, 0)
    assert not model.gravity.any() and jnp.isinf(model.limits.upper[0])
    assert any("disables gravity, spring, frictionloss, limit" in n.what for n in model.report)


MESH = b"v 0 0 0\nv 1 0 0\nv 0 1.5 0\nv 0 0 1.2\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
SHAPES = """
<mujoco>
  <asset><mesh name="tet" file="parts/tet.obj" scale="2 2 2"/><material name="red" rgba="1 0 0 1"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="arm"><joint/>
      <geom name="box" type="box" size="1 2 3" pos="4 5 6" quat="0 1 0 0" contype="0" conaffinity="0"/>
      <geom name="ball" size="0.5" rgba="0 1 0 0.5"/>
      <geom name="can" type="cylinder" size="0.5 0.25" material="red"/>
      <geom name="pill" type="capsule" size="0.5 0.25"/>
      <geom name="egg" type="ellipsoid" size="1 2 3"/>
      <geom name="tet" type="mesh" mesh="tet" pos="1 2 3" quat="0.5 0.5 0.5 0.5"/>
    </body>
  </worldbody>
</mujoco>
"""


def test_geoms_are_shapes():
    model = jd.parse_mjcf(SHAPES, assets={"parts/tet.obj": MESH})
    shapes = {s.name: s for s in model.shapes}
    sizes = {name: (s.kind, s.size) for name, s in shapes.items()}
    assert sizes == {
        "floor": ("plane", ()),
        "box": ("box", (2, 4, 6)),
        "ball": ("sphere", (0.5,)),
        "can": ("cylinder", (0.5, 0.5)),
        "pill": ("capsule", (0.5, 0.5)),
        "egg": ("ellipsoid", (1, 2, 3)),
        "tet": ("mesh", (2, 2, 2)),
    }
    assert shapes["floor"].link == "world" and shapes["box"].link == "arm"
    assert not shapes["box"].collision and shapes["ball"].collision
    assert shapes["can"].color == (1, 0, 0, 1) and shapes["ball"].color == (0, 1, 0, 0.5)
    assert shapes["box"].translation == (4, 5, 6) and shapes["box"].quaternion == (0, 1, 0, 0)
    # the pose is that of the file's mesh, not that of the principal axes to which MuJoCo turns it
    np.testing.assert_allclose(shapes["tet"].translation, (1, 2, 3), atol=1e-7)
    np.testing.assert_allclose(np.abs(shapes["tet"].quaternion), 0.5, atol=1e-7)
    assert shapes["tet"].mesh.endswith("parts/tet.obj")


def test_precision():
    assert jd.parse_mjcf(TIED, dtype=jnp.float32).links.mass.dtype == jnp.float32


def test_mujoco_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(jd.JaxdynError, match=r'pip install "jaxdyn\[mjcf\]"'):
        jd.parse_mjcf(EVERYTHING)
