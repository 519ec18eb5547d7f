"""Feedback of elastic joints: poles of the reference, rest at the reference, and the interface of transmissions."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import control as ct
from jaxdyn.actuators import CubicSpring, Stage, add_elastic_transmission
from jaxdyn.simulation import Feedback

from ..actuators._elastic import flywheel, state_matrix

LOAD, REFLECTED, STIFFNESS, KP, KD = 0.8, 1.62, 5000.0, 400.0, 40.0


def characteristic_polynomial(measurement, kt=0.0, ks=0.0):
    """Of joint and rotor without damping, in the units of the joint: `J thdd = u - tau`, `I qdd = tau`."""
    s = np.poly1d([1, 0])
    spring = STIFFNESS * ((1 + kt) + ks * s)  # torque on the rotor per deflection
    position = KP + KD * s
    rotor = REFLECTED * s**2 + spring + (position if measurement is ct.motor_side else 0)
    back = spring - (0 if measurement is ct.motor_side else position)
    return rotor * (LOAD * s**2 + STIFFNESS) - back * STIFFNESS


def poles(**gains):
    stage = Stage(80.0, STIFFNESS, input_inertia=2.5e-4, output_inertia=0.02)
    robot, springs = add_elastic_transmission(flywheel(LOAD), "joint", stage)
    law = ct.ElasticJointPD(robot, (springs,), jnp.zeros(2), KP, KD, **gains)
    return np.sort_complex(np.linalg.eigvals(state_matrix(jd.System(robot, (springs, Feedback(law))))))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measurement", "largest"), [(ct.motor_side, -4.106081671), (ct.joint_side, 8.309361231)], ids=["motor", "joint"]
)
def test_poles_by_the_side_of_the_encoder(measurement, largest):
    """The motor side is stable; the joint side is not, since its characteristic polynomial has no cubic term."""
    polynomial = characteristic_polynomial(measurement)
    found = poles(measurement=measurement)
    assert abs(found.real.max() - largest) < 1e-8
    np.testing.assert_allclose(found, np.sort_complex(polynomial.roots), rtol=1e-8)
    if measurement is ct.joint_side:
        assert polynomial.coeffs[1] == 0
        for kd in (1e-2, 1.0, 1e3):
            j, i, c = REFLECTED, LOAD, STIFFNESS
            assert np.roots([j * i, 0, c * (j + i), c * kd, c * KP]).real.max() > 0


@pytest.mark.slow
def test_torque_feedback_damps_the_joint_side():
    found = poles(measurement=ct.joint_side, torque_gain=0.5, torque_rate_gain=0.05)
    np.testing.assert_allclose(
        found, np.sort_complex(characteristic_polynomial(ct.joint_side, 0.5, 0.05).roots), rtol=1e-8
    )
    assert found.real.max() < -5


@pytest.mark.slow
def test_reference_is_followed_without_error_in_the_springs():
    """At the reference, with shafts at their static angles, u is the torque over the ratio, whatever the gains."""
    arm = jd.robots.double_pendulum(damping=(0.3, 0.2))
    a, b = arm.joint_names
    robot, first = add_elastic_transmission(arm, a, Stage(50.0, CubicSpring(900.0, 4e4), input_inertia=1e-3))
    stages = [Stage(5.0, 300.0, input_inertia=1e-3), Stage(4.0, 800.0, input_inertia=2e-3)]
    robot, second = add_elastic_transmission(robot, b, stages)
    joints = jnp.array([robot.joint(x).v.start for x in (a, b)])
    q_d = jnp.zeros(robot.nv).at[joints].set(jnp.array([0.7, -0.4]))
    gravity = jd.gravity_forces(arm, q_d[joints])
    q = q_d
    for part, torque in zip((first, second), gravity, strict=True):
        for name, angle in zip(
            part.shafts, part.shaft_angles(q_d[robot.joint(part.joint).q.start], torque), strict=True
        ):
            q = q.at[robot.joint(name).q.start].set(angle)

    @eqx.filter_jit
    def check(measurement):
        law = ct.ElasticJointPD(robot, (first, second), q_d, 300.0, 20.0, measurement, 2.0, 0.1)
        still = jnp.zeros(robot.nv)
        system = jd.System(robot, (first, second, Feedback(law)))
        return law(0.0, q, still), system.rate(0.0, system.initial(q, still)).v

    for measurement in (ct.motor_side, ct.joint_side):
        u, acceleration = check(measurement)
        shafts = [robot.joint(part.shafts[0]).v.start for part in (first, second)]
        np.testing.assert_allclose(u[jnp.array(shafts)], gravity / jnp.array([50.0, 20.0]), rtol=1e-10)
        assert jnp.abs(acceleration).max() < 1e-8


def test_law_without_transmissions_is_refused():
    with pytest.raises(jd.ModelError, match="no transmissions"):
        ct.ElasticJointPD(flywheel(), (), jnp.zeros(1), 1.0, 1.0)


@pytest.mark.slow
def test_rate_of_the_reference_reaches_the_motor_side():
    """`d theta_d / dt = N (v_d + taudot_d / c)`, from the time derivative of the reference."""
    robot, springs = add_elastic_transmission(flywheel(LOAD), "joint", Stage(80.0, STIFFNESS, input_inertia=2.5e-4))

    def reference(t):
        wave = lambda f: jnp.stack([f, jnp.zeros_like(t)])
        return wave(jnp.sin(3 * t)), wave(3 * jnp.cos(3 * t)), wave(-9 * jnp.sin(3 * t))

    law = ct.ElasticJointPD(robot, (springs,), reference, 0.0, 1.0)
    t = 0.3
    u = eqx.filter_jit(law)(jnp.asarray(t), jnp.zeros(2), jnp.zeros(2))[1]
    torque, jerk = LOAD * -9 * np.sin(0.9), -27 * np.cos(0.9)
    np.testing.assert_allclose(u, (torque + 3 * np.cos(0.9) + LOAD * jerk / STIFFNESS) / 80, rtol=1e-10)
