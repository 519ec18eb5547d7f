"""A dynamic environment: models with mass, without, and with an outer spring; impact; force control."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import Event, ModelError
from jaxdyn.constraints import Holonomic, constrained_dynamics, impulse
from jaxdyn.contact import (
    Contact,
    ContactMotion,
    Environment,
    EnvironmentForceControl,
    EnvironmentMotion,
    Gap,
    KelvinVoigt,
    MasslessEnvironment,
    Plane,
    Point,
    environment_dynamics,
    environment_impact,
    with_environment,
)
from jaxdyn.simulation import switching_events

from ._drops import FLOOR, GRAVITY, TOUCH_SPEED, tool, turning

ENVIRONMENT = Environment(0.5, 4000.0, 30.0)
ARM = jd.robots.double_pendulum()
WALL = Gap("tip", Point(), ("world", (0.6, 0.0, 0.0)), Plane([-1.0, 0.0, 0.0]))
#: the tip on the wall
Q, V = jnp.array([-0.9, 1.084369656580]), jnp.array([-1.5, 0.4])
OPTIONS = {"rtol": 1e-12, "atol": 1e-14}


def _closed(gap):
    """The closed contact as a constraint."""
    return Holonomic("contact", lambda x: gap.measure(x).gap[None])


# Closed forms


@pytest.mark.slow
def test_impact_of_a_double_pendulum():
    v, p = environment_impact(ARM, WALL, ENVIRONMENT, Q, V)
    np.testing.assert_allclose(v, [-1.438548468018, 0.973878609321], rtol=1e-10)
    np.testing.assert_allclose(p, 0.675505351869, rtol=1e-10)
    heavy = environment_impact(ARM, WALL, Environment(1e9, 0.0), Q, V)
    np.testing.assert_allclose(heavy.v, [-1.313282164480, 2.143705459056], rtol=1e-8)  # of a rigid wall
    np.testing.assert_allclose(heavy.impulse, 2.052493943047, rtol=1e-8)
    np.testing.assert_array_equal(environment_impact(ARM, WALL, Environment(0.0, 1.0), Q, V).v, V)
    moving = environment_impact(ARM, WALL, ENVIRONMENT, Q, V, surface_velocity=-2.013772157722)
    np.testing.assert_allclose(moving.v, V, atol=1e-11)


@pytest.mark.slow
def test_accelerations_of_a_double_pendulum():
    """At s = -0.01, by the equations with the force eliminated."""
    wall = Gap("tip", Point(), ("world", (0.59, 0.0, 0.0)), Plane([-1.0, 0.0, 0.0]))
    v = jnp.array([-1.438548468018, 0.973878609321])
    a, force = environment_dynamics(ARM, wall, ENVIRONMENT, Q, v, jnp.array([3.0, -2.0]))
    np.testing.assert_allclose(a, [17.988712341312, 21.692456715882], rtol=1e-10)
    np.testing.assert_allclose(force, 54.644288206886, rtol=1e-10)


@pytest.mark.exhaustive
def test_environment_as_a_link():
    """Impact and accelerations by constraints, with the surface as a link, are those of the closed form."""
    surface = ("world", (0.6, 0.0, 0.0), (0.5**0.5, 0.0, -(0.5**0.5), 0.0))  # z axis along -x
    robot, gap, contact = with_environment(ARM, "tip", surface, ENVIRONMENT)
    assert contact is None and robot.nv == 3
    closed = _closed(gap)
    q, before = jnp.append(Q, 0.0), jnp.append(V, 0.0)
    after, multipliers = impulse(robot, closed, q, before)
    v, p = environment_impact(ARM, WALL, ENVIRONMENT, Q, V)
    np.testing.assert_allclose(after[:2], v, rtol=1e-10)
    np.testing.assert_allclose(multipliers[0], p, rtol=1e-10)
    tau = jnp.array([3.0, -2.0, 0.0])
    solution = constrained_dynamics(robot, closed, q, after, tau + jd.passive_forces(robot, q, after))
    a, force = environment_dynamics(ARM, WALL, ENVIRONMENT, Q, v, tau[:2])
    np.testing.assert_allclose(solution.a[:2], a, rtol=1e-9)
    np.testing.assert_allclose(solution.multipliers[0], force, rtol=1e-9)


def test_environment_is_fixed_to_the_world():
    with pytest.raises(ModelError, match="the surface of 'environment' is on 'upper'; expected a frame on 'world'"):
        with_environment(ARM, "tip", "upper", ENVIRONMENT)


# A drop on the three models


class _Force:
    """The contact force of a tool that moves with the environment."""

    motion = EnvironmentMotion(FLOOR, ENVIRONMENT)

    def __call__(self, model, t, q, v):
        return self.motion.contact_force(model, t, q, v, jnp.zeros(1))


@pytest.mark.slow
def test_impact_of_a_drop():
    v, p = environment_impact(tool(), FLOOR, ENVIRONMENT, jnp.zeros(1), jnp.array([-TOUCH_SPEED]))
    np.testing.assert_allclose([v[0], p], [-1.1205712828732, 0.5602856414366], rtol=1e-13)
    force = environment_dynamics(tool(), FLOOR, ENVIRONMENT, jnp.zeros(1), v, jnp.zeros(1)).force
    np.testing.assert_allclose(force, 30.817710788956, rtol=1e-12)


@pytest.mark.exhaustive
def test_drop_on_a_mass():
    """Model (c): the motion in contact up to F = 0."""
    start = environment_impact(tool(), FLOOR, ENVIRONMENT, jnp.zeros(1), jnp.array([-TOUCH_SPEED])).v
    ts = jnp.array([0.0, 0.03, 0.0327468, 0.1])
    events = (Event(_Force(), terminal=True, direction=-1), Event(turning, direction=1))
    system = jd.System(tool(), motion=EnvironmentMotion(FLOOR, ENVIRONMENT))
    path = jd.simulate(system, jnp.zeros(1), start, ts, events=events, **OPTIONS)
    assert path.status == jd.SimulationStatus.EVENT
    np.testing.assert_allclose([path.q[1, 0], path.v[1, 0]], [-0.024732840016, -0.372990606286], rtol=1e-10)
    np.testing.assert_allclose(path.events.time[0], 0.0403608, atol=1e-7)
    np.testing.assert_allclose(path.events.q[0, 0], -0.02665237138, rtol=1e-9)
    np.testing.assert_allclose(path.events.time[1], 0.085747399217, rtol=1e-11)
    np.testing.assert_allclose(path.q[-1, 0], -0.00367382074, rtol=1e-8)
    np.testing.assert_allclose(path.v[-1, 0], 0.653342765385, rtol=1e-11)
    peak = environment_dynamics(tool(), FLOOR, ENVIRONMENT, path.q[2], path.v[2], jnp.zeros(1)).force
    np.testing.assert_allclose(peak, 92.46479579, rtol=1e-10)


@pytest.mark.exhaustive
def test_motion_with_the_surface_as_a_link():
    """Model (c) by a rigid contact of the tool and the link of the surface: fall, impact and motion in contact."""
    robot, gap, _ = with_environment(tool(), "tool", "world", ENVIRONMENT)
    system = jd.System(robot, motion=ContactMotion(Contact("surface", gap)))
    touch = (0.2 / GRAVITY) ** 0.5
    path = jd.simulate(system, jnp.array([0.1, 0.0]), jnp.zeros(2), jnp.array([0.0, touch + 0.03]), **OPTIONS)
    np.testing.assert_allclose(path.phases.time[1], touch, rtol=1e-12)
    np.testing.assert_allclose(path.phases.impulse[1], 0.5602856414366, rtol=1e-12)
    np.testing.assert_allclose(path.phases.v[1], -1.1205712828732, rtol=1e-12)
    np.testing.assert_allclose(path.q[-1], -0.024732840016, rtol=1e-10)
    np.testing.assert_allclose(path.v[-1], -0.372990606286, rtol=1e-10)


@pytest.mark.exhaustive
def test_drop_on_an_outer_spring():
    """Model (d): another degree of freedom, and no impact."""
    robot, _, contact = with_environment(tool(), "tool", "world", ENVIRONMENT, outer=KelvinVoigt(1e5))
    system = jd.System(robot, (contact,))
    start = jnp.array([-TOUCH_SPEED, 0.0])
    path = jd.simulate(system, jnp.zeros(2), start, jnp.array([0.0, 0.03]), events=switching_events(system), **OPTIONS)
    np.testing.assert_allclose(path.q[-1], [-0.024518994, -0.025466773], rtol=2e-8)


@pytest.mark.slow
def test_drop_on_a_massless_surface():
    """Model (b): the force at touch-down, separation before the surface is back, its creeping, the second contact."""
    part = MasslessEnvironment(FLOOR, 4000.0, 30.0)
    system = jd.System(tool(), (part,))
    ts = jnp.linspace(0.0, 0.5, 51)
    path = jd.simulate(
        system, jnp.array([0.1]), jnp.zeros(1), ts, events=(*switching_events(system), Event(turning)), **OPTIONS
    )
    time, q, v = path.events.time, path.events.q[:, 0], path.events.v[:, 0]
    touch = (0.2 / GRAVITY) ** 0.5
    np.testing.assert_allclose(time[0], touch, rtol=1e-12)
    closed = part.forces(tool(), time[0], path.events.q[0], path.events.v[0], path.parts[0]._replace(closed=1.0))
    np.testing.assert_allclose(closed.normal_force, 42.0214231, rtol=1e-8)
    np.testing.assert_array_equal(path.events.index[:4], [0, 2, 1, 2])  # touch, deepest, separation, apex
    np.testing.assert_allclose(q[1], -0.0285886732, rtol=1e-8)
    np.testing.assert_allclose([time[2] - touch, q[2], v[2]], [0.0734186158, -0.0060232215, 0.8030961982], rtol=1e-8)
    free = np.asarray((ts > time[2]) & (ts < time[2] + 0.1))
    assert free.sum() > 5
    w = q[2] * np.exp(-(ts - time[2]) * 4000 / 30)
    np.testing.assert_allclose(path.parts[0].position[free], w[free], atol=1e-12)
    # the second contact, where the robot meets the surface
    assert path.events.index[4] == 0 and time[4] > time[2] + 0.1
    np.testing.assert_allclose(q[4], q[2] * np.exp(-(time[4] - time[2]) * 4000 / 30), atol=1e-12)
    np.testing.assert_allclose(time[4] - time[3], jnp.sqrt(2 * (q[3] - q[4]) / GRAVITY), rtol=1e-10)


def test_massless_surface_needs_its_events():
    system = jd.System(tool(), (MasslessEnvironment(FLOOR, 4000.0, 30.0),))
    with pytest.raises(ModelError, match="MasslessEnvironment changes its discrete state"):
        jd.simulate(system, jnp.ones(1), jnp.zeros(1), jnp.array([0.0, 0.1]))


# Force control


def _desired(t):
    return 20.0 + 5.0 * jnp.sin(10.0 * t)


@pytest.mark.slow
def test_force_error_dies_out_with_the_chosen_poles():
    """A perfect model: the force is exact from the start, and an initial error of the penetration follows the poles."""
    p1, p2 = 20.0, 30.0
    law = EnvironmentForceControl(
        ARM, WALL, ENVIRONMENT, _desired, kp=p1 * p2, kd=p1 + p2, posture=Q, posture_kp=25.0, posture_kd=10.0
    )
    motion = EnvironmentMotion(WALL, ENVIRONMENT)
    system = jd.System(ARM, (law,), motion=motion)
    ts = jnp.linspace(0.0, 0.4, 9)
    exact = system.initial(Q, jnp.zeros(2)).parts[0]
    offset = 0.002  # of the desired penetration

    @jax.jit
    def forces(start):
        path = jd.simulate(system, Q, jnp.zeros(2), ts, parts=(start,), **OPTIONS)
        effort = jax.vmap(lambda t, q, v, s: law.act(ARM, t, q, v, s).effort)(ts, path.q, path.v, path.parts[0])
        return jax.vmap(lambda t, q, v, u: motion.contact_force(ARM, t, q, v, u))(ts, path.q, path.v, effort)

    np.testing.assert_allclose(forces(exact), _desired(ts), rtol=1e-8)
    error = forces(exact._replace(position=exact.position - offset)) - _desired(ts)
    # e = offset (p2 exp(-p1 t) - p1 exp(-p2 t)) / (p2 - p1), and the environment as a differential operator on it
    parts = [(p2, p1), (-p1, p2)]
    m, k, b = (float(x) for x in (ENVIRONMENT.mass, ENVIRONMENT.stiffness, ENVIRONMENT.damping))
    decay = sum(c * (m * p**2 - b * p + k) * np.exp(-p * ts) for c, p in parts) / (p2 - p1)
    np.testing.assert_allclose(error, -offset * decay, atol=1e-7)
    assert abs(error[0]) > 5 and abs(error[-1]) < 0.01


@pytest.mark.slow
def test_a_tool_falls_on_a_sprung_mass_leaves_it_and_comes_back():
    """In one simulation with rigid contact: impact, separation where the force vanishes, second impact."""
    b = jd.ModelBuilder()
    robot = b.add_link("tool", "world", jd.joints.Prismatic([0, 0, 1]), jd.spatial.point_mass(2.0)).build()
    model, gap = with_environment(robot, "tool", "world", ENVIRONMENT)[:2]
    system = jd.System(model, motion=ContactMotion(Contact("tool", gap)))
    run = jd.simulate(system, jnp.array([0.1, 0.0]), jnp.zeros(2), jnp.array([0.0, 0.4]))
    fall = np.sqrt(2 * 0.1 / 9.81)
    assert run.status == jd.SimulationStatus.FINISHED and run.phases.count == 4
    np.testing.assert_allclose(run.phases.time[1:3] - fall, [0.0, 0.085747399217], atol=1e-8)
    np.testing.assert_allclose(run.phases.impulse[1, 0], 0.5602856414366, atol=1e-9)
    np.testing.assert_allclose(run.phases.q[2], -0.00367382074, atol=1e-8)
    np.testing.assert_allclose(run.phases.v[2, 0], 0.653342765385, atol=1e-7)
