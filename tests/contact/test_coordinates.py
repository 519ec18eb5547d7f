"""Functional coordinates: kinematics against differences, reactions against the multipliers of the constraint."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
import jaxdyn.constraints as jc
import jaxdyn.contact as ct
from jaxdyn import ArgumentError, ShapeError
from jaxdyn.spatial import Pose, rotation_vector_to_matrix, rpy_to_matrix


class Drift(eqx.Module):
    """An object that moves from a pose with constant velocities."""

    start: Pose
    linear: jax.Array
    angular: jax.Array

    def __call__(self, t):
        return self.start @ Pose(rotation_vector_to_matrix(t * self.angular), t * self.linear)


# Coordinates of a pose


def test_pose_coordinates_invert_the_pose():
    angles = np.random.default_rng(0).uniform(-1.5, 1.5, (5, 3))
    for rpy in angles:
        s = ct.pose_coordinates(Pose(rpy_to_matrix(rpy), (0.1, 0.2, 0.3)))
        assert np.abs(s - np.array([0.1, 0.2, 0.3, *rpy[::-1]])).max() < 1e-14


def test_peg_coordinates_are_depth_roll_and_deviations():
    s = ct.peg_coordinates(Pose(rpy_to_matrix((0.0, 0.0, 0.7)), (0.1, 0.2, 0.3)))
    assert np.abs(s - np.array([0.3, 0.7, 0.1, 0.2, 0.0, 0.0])).max() < 1e-15
    s = ct.peg_coordinates(Pose(rotation_vector_to_matrix(jnp.array([0.3, -0.4, 0.0])), jnp.zeros(3)))
    assert abs(s[1]) < 1e-15  # a tilt without roll
    assert np.abs(s[4:] - 2 * np.sin(0.25) * np.array([0.6, -0.8])).max() < 1e-15


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", [ct.pose_coordinates, ct.peg_coordinates])
def test_angles_are_finite_at_their_singularities(function, dtype):
    half_pi = np.pi / 2
    quarter = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])  # pitch of a right angle
    down = np.diag([1.0, -1, -1])  # upside down
    for r in (quarter, down, np.asarray(rpy_to_matrix((0.2, half_pi, 0.3)))):
        r = jnp.asarray(r, dtype)
        f = lambda r: function(Pose(r, jnp.zeros(3, r.dtype)))
        assert f(r).dtype == jnp.dtype(dtype)
        assert np.isfinite(f(r)).all() and np.isfinite(jax.jacfwd(f)(r)).all()


def test_unsuitable_coordinates_are_refused():
    with pytest.raises(ArgumentError, match="different indices"):
        ct.FunctionalCoordinates("tip", constrained=(1, 1))
    model, zero = jd.robots.double_pendulum(), jnp.zeros(2)
    with pytest.raises(ShapeError, match="constrained ones"):
        ct.FunctionalCoordinates("tip", constrained=(6,)).evaluate(model, zero, zero)
    with pytest.raises(ShapeError, match="one axis"):
        ct.FunctionalCoordinates("tip", function=lambda pose: pose.translation[0]).evaluate(model, zero, zero)


# Robots


WALL = (0.6, 0.0, 0.0)


def wall_coordinates(pose):
    """Distance from the wall, and height."""
    return jnp.stack([-pose.translation[0], pose.translation[2]])


@pytest.mark.slow
def test_double_pendulum_at_a_wall():
    """After a plastic impact it slides along the wall; numbers from an independent program."""
    model = jd.robots.double_pendulum()
    wall = ct.FunctionalCoordinates("tip", ("world", WALL), wall_coordinates, constrained=(0,))
    q, v, tau = jnp.array([-0.9, 1.084369656580]), jnp.array([-1.313282164480, 2.143705459056]), jnp.array([3.0, -2.0])

    @jax.jit
    def solve(q, v, tau):
        solution = jc.constrained_dynamics(model, wall.constraint(), q, v, tau)
        return ct.projected_dynamics(model, wall, q, v, tau), solution, wall.evaluate(model, q, v)

    d, solution, s = solve(q, v, tau)
    assert d.status == jc.ConstraintStatus.SOLVED
    assert abs(d.reaction[0] - 1.909505488271) < 1e-10
    assert np.abs(solution.a - np.array([13.346456934330, -23.031478331011])).max() < 1e-10
    assert abs(d.reaction[0] - solution.multiplier("contact")[0]) < 1e-12
    delassus = np.array([[0.981134275472, 0.101163480896], [0.101163480896, 0.457532105281]])
    assert np.abs(np.linalg.inv(d.inertia) - delassus).max() < 1e-11
    assert np.abs(s.second_rate(solution.a) - np.array([0.0, d.free_acceleration[0]])).max() < 1e-12
    assert np.abs(s.joint_acceleration(s.second_rate(solution.a)) - solution.a).max() < 1e-12
    assert np.abs(s.joint_velocity(s.rate) - v).max() < 1e-13
    assert np.abs(s.value[0]) < 1e-11 and np.abs(s.rate[0]) < 1e-11


@pytest.mark.slow
def test_dependent_coordinates_give_a_status():
    """Six coordinates of a robot with two joints."""
    model = jd.robots.double_pendulum()
    tool = ct.FunctionalCoordinates("tip", constrained=(2,))
    d = ct.projected_dynamics(model, tool, jnp.array([0.3, 0.5]), jnp.zeros(2), jnp.zeros(2))
    assert d.status == jc.ConstraintStatus.SINGULAR_CHART
    assert np.isfinite(d.reaction).all()


@pytest.mark.slow
def test_coordinates_on_a_moving_object_against_differences():
    """The object drifts and turns on a cart; the arm has a ball joint, so that nq differs from nv."""
    b = jd.ModelBuilder()
    body = jd.spatial.rod(0.5, mass=1.0).moved((0, 0, 0.25))
    b.add_link("cart", "world", jd.joints.Prismatic((1, 0, 0)), body)
    b.add_link("upper", "world", jd.joints.Spherical(), body, translation=(0, 0, 1.0))
    b.add_link("lower", "upper", jd.joints.Revolute((0, 1, 0)), body, translation=(0, 0, 0.5))
    model = b.build()
    start = Pose(rpy_to_matrix((0.3, -0.2, 0.1)), (0.3, 0.1, 0.2))
    motion = Drift(start, jnp.array([0.2, -0.3, 0.4]), jnp.array([0.5, 0.3, -0.7]))
    tool = ("lower", (0.1, 0.0, 0.5), (0.9, 0.1, 0.3, 0.2))
    coordinates = ct.FunctionalCoordinates(tool, ("cart", (0.0, 0.1, 0.3)), motion=motion)
    rng = np.random.default_rng(1)
    q, v, t, h = jd.random_configuration(model, jax.random.key(0)), jnp.asarray(rng.normal(size=model.nv)), 0.4, 2e-3

    @jax.jit
    @jax.vmap
    def evaluate(e):
        return coordinates.evaluate(model, jd.integrate(model, q, e * v), v, t=t + e)

    s = evaluate(h * jnp.arange(-3.0, 4.0))
    first = np.array([-1, 9, -45, 0, 45, -9, 1]) / (60 * h)
    second = np.array([2, -27, 270, -490, 270, -27, 2]) / (180 * h**2)
    assert s.value.shape == (7, 6) and s.jacobian.shape == (7, 6, 5)
    assert np.abs(first @ s.value - s.rate[3]).max() < 1e-10
    assert np.abs(second @ s.value - s.bias[3]).max() < 1e-7
    assert np.abs(first @ s.rate - s.bias[3]).max() < 1e-9
    assert np.abs(s.jacobian[3] @ v + s.drift[3] - s.rate[3]).max() < 1e-13
    assert np.abs(s.drift[3]).max() > 0.1


def peg_in_hole(robot, hole, q, v, tau, t):
    """Kinematics, projected equations and multipliers of a peg."""
    coordinates = peg(hole)
    solution = jc.constrained_dynamics(robot, coordinates.constraint(), q, v, tau, t=t)
    return (
        coordinates.evaluate(robot, q, v, t=t),
        ct.projected_dynamics(robot, coordinates, q, v, tau, t=t),
        solution.a,
        solution.multipliers,
    )


def peg(hole):
    tool = (jd.robots.puma560().link_names[-1], (0.0, 0.0, 0.1))
    return ct.FunctionalCoordinates(tool, "world", ct.peg_coordinates, motion=hole, constrained=(2, 3, 4, 5))


def tool_pose(robot, q):
    """Pose of the tool in the world."""
    links = jd.forward_kinematics(robot, q)
    return Pose(links.rotation[-1], links.translation[-1]) @ Pose(jnp.eye(3), (0.0, 0.0, 0.1))


def hole_around(pose: Pose, linear, angular, t):
    """A moving hole in which a tool at `pose` is at time t, with a depth and a roll."""
    inserted = Pose(rpy_to_matrix((0.0, 0.0, 0.6)), (0.0, 0.0, 0.05))
    moved = Drift(Pose.identity(), linear, angular)(t)
    return Drift(pose @ inserted.inverse() @ moved.inverse(), linear, angular)


@pytest.mark.slow
def test_reactions_on_a_peg_in_a_hole_are_the_multipliers():
    """Two positions and two tilts are constrained; the hole rests, then moves."""
    robot, t, rng = jd.robots.puma560(), 0.4, np.random.default_rng(2)
    q, tau = jnp.array([0.3, -0.8, 0.4, 0.5, 0.9, -0.2]), jnp.asarray(10 * rng.normal(size=6))
    solve = jax.jit(peg_in_hole)
    tool = tool_pose(robot, q)
    for scale in (0.0, 1.0):
        hole = hole_around(tool, scale * jnp.array([0.1, -0.2, 0.3]), scale * jnp.array([0.3, 0.2, -0.4]), t)
        s, *_ = solve(robot, hole, q, jnp.zeros(6), tau, t)
        assert np.abs(s.value - np.array([0.05, 0.6, 0, 0, 0, 0])).max() < 1e-14
        rate = np.array([0.3, -0.5, 0, 0, 0, 0])
        v = s.joint_velocity(rate)
        s, d, a, multipliers = solve(robot, hole, q, v, tau, t)
        assert np.abs(s.rate - rate).max() < 1e-12
        assert d.status == jc.ConstraintStatus.SOLVED and multipliers.shape == (4,)
        assert np.abs(d.reaction - multipliers).max() < 1e-9 * np.abs(multipliers).max()
        expected = np.append(d.free_acceleration, np.zeros(4))
        assert np.abs(s.second_rate(a) - expected).max() < 1e-9 * np.abs(expected).max()


@pytest.mark.exhaustive
def test_derivatives_of_reactions_with_respect_to_state_and_leaves():
    """Of both routes, against central differences."""
    robot, t, rng = jd.robots.puma560(), 0.4, np.random.default_rng(3)
    q, v, tau = jnp.array([0.3, -0.8, 0.4, 0.5, 0.9, -0.2]), jnp.full(6, 0.3), jnp.asarray(rng.normal(size=6))
    tool = tool_pose(robot, q)
    hole = hole_around(tool, jnp.array([0.1, -0.2, 0.3]), jnp.array([0.3, 0.2, -0.4]), t)
    start: tuple = (hole.linear, hole.angular, q, v, tau)
    changes = [jnp.asarray(rng.normal(size=x.shape)) for x in start]

    def reactions(e):
        linear, angular, q, v, tau = (x + e * dx for x, dx in zip(start, changes, strict=True))
        _, d, _, multipliers = peg_in_hole(robot, Drift(hole.start, linear, angular), q, v, tau, t + e)
        return jnp.stack([d.reaction, multipliers])

    both = jax.jit(lambda e: jax.jvp(reactions, (e,), (jnp.ones_like(e),)))
    h = 1e-4
    _, derivative = both(jnp.zeros(()))
    at = lambda e: np.asarray(both(jnp.asarray(e))[0])
    difference = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    assert np.abs(derivative - difference).max() < 1e-8 * np.abs(difference).max()
    assert np.abs(derivative[0] - derivative[1]).max() < 1e-8 * np.abs(difference).max()
