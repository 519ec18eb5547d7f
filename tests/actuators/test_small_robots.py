"""Robots with rotors, shafts, elastic supports and objects: their mass matrices and inverse dynamics in closed form."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.actuators import (
    Stage,
    add_elastic_object,
    add_elastic_transmission,
    add_rotor,
    add_shaft,
    elastic_inverse_dynamics,
    on_elastic_support,
)
from jaxdyn.joints import Prismatic
from jaxdyn.spatial import Inertia

from ._elastic import flywheel

mass_matrix = jax.jit(jd.mass_matrix)


def test_rotor_couples_an_elbow():
    """The mass matrix grows by `J [[1, n], [n, n^2]]`."""
    arm, q, gear, inertia = jd.robots.double_pendulum(), jnp.array([0.3, 0.8]), 50.0, 2e-4
    grown = mass_matrix(add_rotor(arm, arm.joint_names[1], gear=gear, inertia=inertia), q) - mass_matrix(arm, q)
    np.testing.assert_allclose(grown, inertia * np.array([[1, gear], [gear, gear**2]]), rtol=1e-9, atol=1e-15)


def test_shaft_and_elastic_object_have_separate_coordinates():
    robot = add_shaft(flywheel(0.8), "shaft", inertia=0.02)
    body, axes = Inertia(4.0, jnp.zeros(3), 0.1 * jnp.eye(3)), [Prismatic([0, 0, 1])]
    robot = add_elastic_object(robot, "plate", body, axes, stiffness=2e4, damping=30.0)
    np.testing.assert_allclose(mass_matrix(robot, jnp.zeros(3)), np.diag([0.8, 0.02, 4.0]), atol=1e-15)
    k = robot.joint("plate_joint").v.start
    assert robot.properties.stiffness[k] == 2e4 and robot.properties.damping[k] == 30.0


def test_support_carries_the_weight_in_its_equilibrium():
    wheel, base = flywheel(), Inertia(20.0, jnp.zeros(3), jnp.eye(3))
    robot, support = on_elastic_support(wheel, jnp.full(6, 1e4), base=base, equilibrium=jnp.zeros(1))
    effort = jd.gravity_forces(robot, jd.neutral(robot))
    np.testing.assert_allclose(effort[:6], [0, 0, 0, 0, 0, 21 * 9.81], atol=1e-12)
    np.testing.assert_allclose(support.preload(robot), effort[:6], atol=1e-9)


def test_inverse_dynamics_of_an_elastic_joint():
    """`theta = N (q + tau / c)` and `u = J theta'' + tau / N` with `tau = I q''`."""
    inertia, ratio, stiffness, rotor = 0.8, 80.0, 5000.0, 2.5e-4
    robot, springs = add_elastic_transmission(flywheel(inertia), "joint", Stage(ratio, stiffness, input_inertia=rotor))
    joint, shaft = (robot.joint(name).v.start for name in ("joint", springs.shafts[0]))
    motion = np.zeros((5, 2))
    motion[:, joint] = 0.3, 0.5, -1.0, 2.0, 3.0
    found = jax.jit(elastic_inverse_dynamics)(springs.mount(robot), springs, *map(jnp.asarray, motion))
    torque, acceleration = inertia * -1.0, inertia * 3.0
    np.testing.assert_allclose(found.q[shaft], ratio * (0.3 + torque / stiffness), rtol=1e-12)
    np.testing.assert_allclose(
        found.effort[shaft], rotor * ratio * (-1.0 + acceleration / stiffness) + torque / ratio, rtol=1e-11
    )
