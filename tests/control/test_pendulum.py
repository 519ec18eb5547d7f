"""Regulators of a pendulum in one program, against scipy and against each other; the side of an encoder."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import jaxdyn as jd
from jaxdyn import control as ct
from jaxdyn.actuators import DcMotor, Stage, add_elastic_transmission
from jaxdyn.simulation import State, system_lqr

from ..actuators._elastic import flywheel

G, DAMPING = 9.81, 0.3
PENDULUM = jd.robots.pendulum(damping=DAMPING)  # 1 kg at 1 m
COST, INPUT_COST = jnp.diag(jnp.array([10.0, 1.0])), jnp.array([[0.5]])
TIMES = jnp.linspace(0.0, 20.0, 41)


@jax.jit
def _evaluate(m, q, times):
    effort = jd.gravity_forces(m, q)
    plan = ct.nominal_plan(m, ct.PathReference(lambda t: q + 0 * t), times)
    law = ct.tracking_lqr(m, plan, COST, INPUT_COST)
    a, b = ct.linearise(m, q, jnp.zeros(1), effort)
    rows = lambda x: jnp.broadcast_to(x, (len(times), *x.shape))
    along = ct.riccati_along(times, rows(a), rows(b), COST, INPUT_COST, COST)
    regulator = ct.lqr(m, q, effort, COST, INPUT_COST)
    return (a, b), regulator, plan, along, law(0.0, q + 0.1, jnp.array([-0.2]))


@pytest.mark.parametrize("q", [0.0, np.pi])
def test_regulators(q):
    """Hanging and upright. Over a long horizon the gain at the start is that of the infinite horizon."""
    (a, b), regulator, plan, (cost, gain), tau = _evaluate(PENDULUM, jnp.array([q]), TIMES)
    np.testing.assert_allclose(a, [[0, 1], [-G * np.cos(q), -DAMPING]], atol=1e-12)
    np.testing.assert_allclose(b, [[0], [1]], atol=1e-12)
    wanted = scipy.linalg.solve_continuous_are(np.asarray(a), np.asarray(b), np.asarray(COST), np.asarray(INPUT_COST))
    assert regulator.riccati.status == ct.RiccatiStatus.SOLVED
    np.testing.assert_allclose(regulator.riccati.cost, wanted, rtol=1e-9)
    np.testing.assert_allclose(cost[0], wanted, rtol=1e-9)
    np.testing.assert_allclose(gain[0], regulator.law.gain, rtol=1e-9)
    np.testing.assert_allclose(plan.effort, np.full((41, 1), G * np.sin(q)), atol=1e-12)
    np.testing.assert_allclose(tau, G * np.sin(q) - regulator.law.gain @ np.array([0.1, -0.2]), rtol=1e-8, atol=1e-12)


def test_regulator_of_a_driven_pendulum():
    """A motor without inductance adds its inertia and the damping of its back-EMF."""
    constant, resistance, gear, rotor = 0.06, 1.2, 30.0, 2e-4
    motor = DcMotor(PENDULUM.joint_names[0], constant=constant, resistance=resistance, gear=gear, rotor_inertia=rotor)
    state = State(jnp.array([jnp.pi]), jnp.zeros(1))
    found = system_lqr(jd.System(PENDULUM, (motor,)), state, jnp.zeros(1), COST, INPUT_COST)
    inertia, gain = 1 + gear**2 * rotor, gear * constant / resistance
    a = np.array([[0, 1], [G / inertia, -(DAMPING + gain * gear * constant) / inertia]])
    b = np.array([[0], [gain / inertia]])
    wanted = scipy.linalg.solve_continuous_are(a, b, np.asarray(COST), np.asarray(INPUT_COST))
    np.testing.assert_allclose(found.riccati.cost, wanted, rtol=1e-8)


def test_encoder_behind_the_transmission():
    robot, springs = add_elastic_transmission(flywheel(), "joint", Stage(80.0, 5000.0, input_inertia=1e-4))
    q, v = jnp.array([40.0, 0.6]), jnp.array([8.0, 0.2])
    shaft, joint = (robot.joint(name).q.start for name in (springs.shafts[0], "joint"))
    for side, (k, ratio) in ((ct.motor_side, (shaft, 80.0)), (ct.joint_side, (joint, 1.0))):
        np.testing.assert_allclose(side(robot, springs, q, v), (q[k] / ratio, v[k] / ratio), rtol=1e-15)
