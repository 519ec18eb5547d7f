"""A point mass at a wall and on a dynamic environment, in closed form, and the figure of its contact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import contact as ct
from jaxdyn.joints import Prismatic
from jaxdyn.simulation.trajectory import PhaseRecord, SensitivityStatus, Trajectory, sensitivity_status
from jaxdyn.viz import plot_contacts

MASS, G = 2.0, 9.81
SURFACE = ct.Environment(0.5, 4000.0, 30.0)
FLOOR = ct.Gap("puck", ct.Point(), "world", ct.Plane())
SLOPE = np.array([3.0, 4.0]) / 5  # unit normal of a wall, in x and z


def _puck():
    b = jd.ModelBuilder()
    b.add_link("x", "world", Prismatic((1, 0, 0)))
    return b.add_link("puck", "x", Prismatic((0, 0, 1)), jd.spatial.point_mass(MASS)).build()


def _distance_and_position(pose):
    x, z = pose.translation[0], pose.translation[2]
    return jnp.stack([SLOPE[0] * x + SLOPE[1] * z, -SLOPE[1] * x + SLOPE[0] * z])


@jax.jit
def _evaluate(m, q, v, tau):
    wall = ct.FunctionalCoordinates("puck", "world", _distance_and_position, constrained=(0,))
    return (
        ct.environment_dynamics(m, FLOOR, SURFACE, q, v, tau),
        ct.environment_impact(m, FLOOR, SURFACE, q, v),
        ct.projected_dynamics(m, wall, q, v, tau),
    )


def test_forces_of_a_point_mass():
    """The environment adds its mass to that of the puck; the wall takes the component along its normal."""
    q, v, tau = jnp.array([0.3, -2e-3]), jnp.array([0.4, -0.7]), jnp.array([5.0, -3.0])
    motion, impact, wall = _evaluate(_puck(), q, v, tau)
    load = -(30.0 * -0.7 + 4000.0 * -2e-3)
    a = (-3.0 - MASS * G + load) / (MASS + 0.5)
    np.testing.assert_allclose(motion.a, [5.0 / MASS, a], rtol=1e-12)
    np.testing.assert_allclose(motion.force, load - 0.5 * a, rtol=1e-12)
    np.testing.assert_allclose(impact.v, [0.4, MASS * -0.7 / (MASS + 0.5)], rtol=1e-12)
    np.testing.assert_allclose(impact.impulse, MASS * (impact.v[1] + 0.7), rtol=1e-12)
    force = np.array([5.0, -3.0 - MASS * G])
    np.testing.assert_allclose(wall.reaction, [-SLOPE @ force], rtol=1e-12)
    np.testing.assert_allclose(wall.free_acceleration, [np.array([-SLOPE[1], SLOPE[0]]) @ force / MASS], rtol=1e-12)


def test_environment_is_a_link_with_its_numbers():
    robot, gap, contact = ct.with_environment(_puck(), "puck", "world", SURFACE, outer=ct.KelvinVoigt(1e5))
    k = robot.joint("environment_joint").v.start
    numbers = (robot.properties.armature[k], robot.properties.stiffness[k], robot.properties.damping[k])
    assert numbers == (0.5, 4000.0, 30.0) and k == robot.nv - 1
    assert gap.second.link == "environment" and contact.gap is gap


@pytest.fixture(scope="module")
def sliding():
    """Two rows of a puck that slides to the right on the floor, as `simulate` returns them."""
    floor = ct.Contact("floor", FLOOR, friction=0.5, plane=(0, 1, 0))
    motion = ct.ContactMotion(floor)
    modes = ct.ContactModes(jnp.ones(1), jnp.ones(1), jnp.array([[1.0, 0, 0]]), jnp.zeros(1))
    rows = lambda x: jnp.stack([jnp.asarray(x)] * 2)
    both = jax.tree.map(rows, modes)
    times, v = jnp.array([0.0, 0.1]), jnp.array([[1.0, 0.0], [1.0 - 0.5 * G * 0.1, 0.0]])
    q = jnp.array([[0.0, 0.0], [0.1 - 0.25 * G * 0.01, 0.0]])
    zeros = jnp.zeros((2, 2))
    phases = PhaseRecord(
        jnp.array([0.0, jnp.nan]),
        both,
        zeros,
        jnp.zeros((2, 3)),
        q,
        v,
        v,
        jnp.zeros(2),
        jnp.zeros(2),
        jnp.array(1),
        jnp.array(-1),
    )
    number = jnp.zeros((), jnp.int32)
    return Trajectory(
        times,
        q,
        v,
        None,
        jnp.ones(2, bool),
        number,
        number,
        jd.System(_puck(), motion=motion),
        phases=phases,
        modes=both,
    )


def test_forces_of_a_sliding_puck_and_their_figure(sliding, tmp_path):
    state = sliding.contacts
    np.testing.assert_allclose(state.normal_force[:, 0], MASS * G, rtol=1e-12)
    np.testing.assert_allclose(state.friction[:, 0], [[-0.5 * MASS * G, 0, 0]] * 2, rtol=1e-12, atol=1e-12)
    path = tmp_path / "contacts.png"
    _, normal, friction, phases = plot_contacts(sliding, path).axes
    assert path.stat().st_size > 10_000
    np.testing.assert_allclose(normal.lines[0].get_ydata(), MASS * G, rtol=1e-12)
    np.testing.assert_allclose(friction.lines[0].get_ydata(), 0.5 * MASS * G, rtol=1e-12)
    assert [text.get_text() for text in phases.get_yticklabels()] == ["floor"]
    assert [text.get_text() for text in phases.get_legend().get_texts()] == ["slides"]
    assert (sensitivity_status(sliding) == SensitivityStatus.REGULAR).all()
