"""MuJoCo's soft equality constraints approach the rigid ones of jaxdyn with increasing stiffness."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxdyn as jd
import jaxdyn.constraints as jc

SCENE = """
<mujoco>
  <compiler angle="radian" eulerseq="XYZ"/>
  <option gravity="0.3 -0.2 -9.81"/>
  <worldbody>
    <body name="a" pos="0 0 1">
      <joint name="a" axis="0 1 0"/>
      <inertial pos="0.1 0 -0.3" mass="2" diaginertia="0.05 0.06 0.02"/>
      <body name="b" pos="0 0 -0.6">
        <joint name="b" type="ball"/>
        <inertial pos="0 0.1 -0.2" mass="1.5" diaginertia="0.03 0.04 0.01"/>
      </body>
    </body>
    <body name="c" pos="0.5 0 1">
      <joint name="c" axis="0 1 0"/>
      <inertial pos="0 0 -0.3" mass="1" diaginertia="0.05 0.06 0.02"/>
      <body name="d" pos="0 0 -0.5">
        <joint name="d" axis="1 0 0"/>
        <inertial pos="0 0 -0.2" mass="0.7" diaginertia="0.02 0.03 0.01"/>
      </body>
    </body>
    <body name="e" pos="0 1 1">
      <freejoint/>
      <inertial pos="0 0.1 0" mass="1.2" diaginertia="0.02 0.03 0.015"/>
    </body>
  </worldbody>
  <equality>%s</equality>
</mujoco>
"""
EQUALITIES = {
    "connect": '<connect name="loop" body1="b" body2="c" anchor="0.5 0 0.1" %s/>',
    "weld": '<weld name="loop" body1="d" body2="e" %s/>',
    "joint": '<joint name="loop" joint1="c" joint2="a" polycoef="0 -1.5 0.4 0 0" %s/>',
    "all": '<connect name="pin" body1="a" body2="e" anchor="0.2 0.1 -0.3" %s/>'
    '<joint name="gear" joint1="c" joint2="a" polycoef="0 0.5 0 0 0" %s/>',
}
solve = jax.jit(jc.constrained_dynamics)


def mujoco_accelerations(text: str, impedance: float):
    """MuJoCo's accelerations from rest in the reference configuration, for constraints of this impedance."""
    hard = f'solref="0.02 1" solimp="{impedance} {impedance} 0.001 0.5 1"'
    model = mujoco.MjModel.from_xml_string(SCENE % text.replace("%s", hard))
    model.opt.tolerance, model.opt.iterations = 1e-15, 200
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return data.qacc


@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.slow] * (k != "all")) for k in EQUALITIES])
@pytest.mark.slow("all")
def test_accelerations_of_stiff_equalities(kind):
    text = EQUALITIES[kind]
    model = jd.parse_mjcf(SCENE % text.replace("%s", ""))
    constraints = jc.described_constraints(model)
    q, still = jd.neutral(model).at[-3:].set(jnp.array([0.0, 1.0, 1.0])), jnp.zeros(model.nv)  # e is last
    got = solve(model, constraints, q, still, still)
    assert int(got.status) == jc.ConstraintStatus.SOLVED
    order = mujoco_order(model)
    miss = [np.abs(mujoco_accelerations(text, d) - np.asarray(got.a)[order]).max() for d in (0.99, 0.999, 0.9999)]
    scale = np.abs(got.a).max()
    # the fraction 1 - d of the unconstrained acceleration remains, and MuJoCo limits d to 0.9999
    assert miss[2] < 2e-3 * scale
    assert miss[1] < 0.2 * miss[0]
    assert miss[2] < 0.2 * miss[1]
    free = jd.forward_dynamics(model, q, still, still)
    assert np.abs(free - got.a).max() > 0.05 * scale  # the constraint matters


def mujoco_order(model) -> np.ndarray:
    """Indices of the velocities in MuJoCo's order; those of a free joint are linear first."""
    rows = []
    for name in ("a", "b", "c", "d"):
        rows += list(range(model.nv))[model.joint(name).v]
    (free,) = (n for n in model.joint_names if n not in ("a", "b", "c", "d"))
    six = list(range(model.nv))[model.joint(free).v]
    return np.array(rows + six[3:] + six[:3])
