"""Flat inverse dynamics of elastic transmissions against the equations of motion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import Backlash, CubicSpring, Stage, add_elastic_transmission, elastic_inverse_dynamics

from ._elastic import flywheel


def motion_of_joints(robot, joints, order):
    """Sines of the joints over time, and their derivatives."""
    index = jnp.array([robot.joint(name).v.start for name in joints])
    rates = 1.0 + jnp.arange(len(joints))

    def derivatives(t):
        phase = rates * t
        waves = [jnp.sin(phase), jnp.cos(phase), -jnp.sin(phase), -jnp.cos(phase)]
        return [jnp.zeros(robot.nv).at[index].set(rates**k * waves[k % 4]) for k in range(order + 1)]

    return derivatives


def check(robot, parts, joints, order):
    """The state solves the equations of motion, and v and a are the derivatives of q and v."""
    mounted = robot
    for part in parts:
        mounted = part.mount(mounted)
    derivatives = motion_of_joints(robot, joints, order)
    inverse = jax.jit(lambda t: elastic_inverse_dynamics(mounted, parts, *derivatives(t)))
    t, h = 0.3, 1e-4
    motion, after, before = inverse(t), inverse(t + h), inverse(t - h)
    system = jd.System(robot, parts)
    action = system.action(t, system.initial(motion.q, motion.v))
    effort = motion.effort + action.effort
    np.testing.assert_allclose(jd.rnea(mounted, motion.q, motion.v, motion.a), effort, atol=1e-11)
    np.testing.assert_allclose((after.q - before.q) / (2 * h), motion.v, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose((after.v - before.v) / (2 * h), motion.a, rtol=1e-6, atol=1e-6)
    driven = [robot.joint(part.shafts[0]).v.start for part in parts]
    assert (np.delete(motion.effort, driven) == 0).all() and (motion.effort[jnp.array(driven)] != 0).all()


@pytest.mark.slow
def test_one_joint_matches_its_closed_form():
    """`theta = N (q + I a / c)`, `u = J theta'' + I a / N`."""
    robot, springs = add_elastic_transmission(flywheel(0.8), "joint", Stage(80.0, 5000.0, input_inertia=2.5e-4))
    d = np.array([0.3, 0.5, -1.0, 2.0, 3.0])
    rows = jnp.zeros((5, 2)).at[:, 0].set(d)
    motion = jax.jit(lambda m, p: elastic_inverse_dynamics(m, p, *rows))(springs.mount(robot), springs)
    theta = 80 * (d[:3] + 0.8 * d[2:] / 5000)
    np.testing.assert_allclose(jnp.stack(motion[:3])[:, 1], theta, rtol=1e-13)
    np.testing.assert_allclose(motion.effort, [0, 2.5e-4 * theta[2] + 0.8 * d[2] / 80], rtol=1e-12)


@pytest.mark.exhaustive
def test_two_stages_with_nonlinear_springs():
    """Sixth derivatives of the motion of one joint under gravity, with joint damping."""
    arm = jd.robots.pendulum(damping=0.2)
    name = arm.joint_names[0]
    stages = [Stage(10.0, 300.0, None, 1e-3, 1e-2), Stage(5.0, CubicSpring(3e3, 1e5), None, 2e-3)]
    robot, springs = add_elastic_transmission(arm, name, stages)
    check(robot, (springs,), (name,), 6)


@pytest.mark.slow
def test_two_joints():
    arm = jd.robots.double_pendulum(damping=(0.3, 0.2))
    a, b = arm.joint_names
    robot, first = add_elastic_transmission(arm, a, Stage(50.0, CubicSpring(3e3, 1e5), None, 1e-3))
    robot, second = add_elastic_transmission(robot, b, Stage(60.0, 800.0, None, 2e-4, 0.1))
    check(robot, (first, second), (a, b), 4)


def test_motions_that_do_not_determine_the_torque_are_refused():
    model, numbers = flywheel(), {"input_inertia": 1e-3}
    call = lambda stages, n: (lambda m, p: elastic_inverse_dynamics(p.mount(m), p, *jnp.zeros((n, m.nv))))(
        *add_elastic_transmission(model, "joint", stages)
    )
    with pytest.raises(jd.ModelError, match="has damping, backlash, hysteresis or a rotor as a body"):
        call(Stage(10.0, 1e3, 1.0, **numbers), 5)
    with pytest.raises(jd.ModelError, match="has damping, backlash"):
        call(Stage(10.0, 1e3, backlash=Backlash(1e-3, 1e-4), **numbers), 5)
    two = [Stage(10.0, 1e3, **numbers), Stage(2.0, 1e3, **numbers)]
    with pytest.raises(jd.ModelError, match="needs derivatives of the motion up to order 6, but they are given up to"):
        call(two, 5)
