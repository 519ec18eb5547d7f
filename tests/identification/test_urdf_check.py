"""The checked URDF equals the robot, and lists the properties that URDF cannot express."""

import equinox as eqx
import jax.numpy as jnp
import pytest

import jaxdyn as jd
from jaxdyn.actuators import drive, joint_friction
from jaxdyn.identification import write_checked_urdf
from jaxdyn.identification.report import _urdf_check

from .synthetic_logs import arm

ARM = arm(2)


@pytest.mark.slow
def test_inexpressible_properties_are_listed(tmp_path):
    plain = eqx.tree_at(
        lambda m: (m.properties.armature, m.properties.friction_velocity), ARM, (jnp.zeros(2), jnp.full(2, 0.01))
    )
    check = write_checked_urdf(plain, tmp_path / "plain.urdf")
    assert check.lost == () and str(check) == "read back and equal"
    assert max(check.differences.values()) < 1e-9 and "damping and friction" in check.differences
    assert (tmp_path / "plain.urdf").read_text() == check.text
    fields = lambda m: (m.gravity, m.properties.stiffness)
    tilted = eqx.tree_at(fields, ARM, (jnp.array([0.3, 0.0, -9.8]), jnp.array([0.0, 2.0])))
    system = jd.System(tilted, (drive(ARM, gain=2.0), joint_friction(ARM, coulomb=0.1)))
    lost = "; ".join(write_checked_urdf(system).lost)
    for word in ("rotor inertia", "springs", "Coulomb friction", "gravity of", "part Drive", "part JointFriction"):
        assert word in lost


@pytest.mark.slow
def test_urdf_that_differs_from_the_robot_is_not_written(tmp_path, monkeypatch):
    write = _urdf_check.write_urdf
    for field in ("damping", "friction"):
        other = eqx.tree_at(lambda m, field=field: getattr(m.properties, field), ARM, jnp.array([0.4, 0.37]))
        monkeypatch.setattr(
            _urdf_check, "write_urdf", lambda model, without, other=other: write(other, without=without)
        )
        with pytest.raises(jd.ModelError, match="differs from the robot by .* in its damping and friction"):
            write_checked_urdf(ARM, tmp_path / "arm.urdf")
    assert not (tmp_path / "arm.urdf").exists()
