"""Constrained robots: optima equal those in minimal coordinates, and bounds on constraint forces are satisfied."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn._errors import ModelError
from jaxdyn.trajopt import (
    AbstractConstrainedDynamics,
    Bounds,
    Constrained,
    ConstrainedRobot,
    Guess,
    HermiteSimpson,
    MultipleShooting,
    Problem,
    Robot,
    SolveStatus,
    Trapezoidal,
    partial,
    solve,
)

G = 9.81
END = 1.2


class Bob(AbstractConstrainedDynamics):
    """A pendulum of unit mass and length in Cartesian coordinates, with a tangential force; the last control is the
    multiplier of `(p.p - 1)/2 = 0`, the negative tension."""

    gravity: Any
    state_names: tuple[str, ...] = eqx.field(static=True, default=("x", "y", "vx", "vy"))
    control_names: tuple[str, ...] = eqx.field(static=True, default=("push", "rod"))
    num_forces: int = eqx.field(static=True, default=1)
    num_invariants: int = eqx.field(static=True, default=2)

    def rate(self, t, x, u):
        p, along = x[:2], jnp.stack([-x[1], x[0]])
        return jnp.concatenate([x[2:], u[0] * along + u[1] * p - jnp.stack([0 * x[0], self.gravity])])

    def constrained(self, t, x, u):
        rate, p, v = self.rate(t, x, u), x[:2], x[2:]
        zero = jnp.zeros(2)
        correction = jnp.stack([jnp.concatenate([p, zero]), jnp.concatenate([zero, p])], axis=1)
        return Constrained(rate, (p @ rate[2:] + v @ v)[None], jnp.stack([(p @ p - 1) / 2, p @ v]), correction)


def _push(t, x, u):
    return u[0] ** 2


@jax.jit
@functools.partial(jax.value_and_grad, has_aux=True)
def _cartesian(gravity, most):
    """The least integral of the squared force from hanging to `END`, at rest, with bounded tension."""
    angles = jnp.linspace(0, END, 9)
    x = jnp.stack([jnp.sin(angles), -jnp.cos(angles), 0 * angles, 0 * angles], axis=1)
    guess = Guess(angles / END, x, jnp.tile(jnp.array([0.0, -G]), (9, 1)))
    start, end = jnp.array([0.0, -1.0, 0.0, 0.0]), partial([np.sin(END), 0.0], [0, 2])
    bounds = Bounds(lower_control=jnp.stack([-jnp.inf, -most]))
    problem = Problem(Bob(gravity), 1.0, start=start, end=end, running=_push, bounds=bounds, guess=guess)
    found = solve(problem, transcription=HermiteSimpson(), intervals=16, tolerance=1e-10)
    return found.cost, (found.x, found.u, found.status)


def _optimum_in_angle(g):
    """The same optimum in the angle, without bounds, by the maximum principle: `u = -p2 / 2`."""

    def rate(t, y):
        angle, w, p1, p2 = y
        return np.stack([w, -p2 / 2 - g * np.sin(angle), p2 * g * np.cos(angle), -p1])

    t = np.linspace(0, 1, 41)
    first = np.stack([END * t, END + 0 * t, 0 * t, 0 * t])
    ends = lambda a, b: np.array([a[0], a[1], b[0] - END, b[1]])
    found = scipy.integrate.solve_bvp(rate, ends, t, first, tol=1e-10, max_nodes=100_000)
    assert found.success
    s = np.linspace(0, 1, 1001)
    return scipy.integrate.simpson((found.sol(s)[3] / 2) ** 2, x=s)


@pytest.mark.exhaustive
def test_cartesian_pendulum_optimum_equals_optimum_in_angle():
    """Trajectory, tension, and derivatives of the optimum."""
    (cost, (_, u, status)), slope = _cartesian(G, jnp.inf)
    assert status == SolveStatus.SOLVED
    np.testing.assert_allclose(cost, _optimum_in_angle(G), rtol=2e-5)  # the error of the mesh, of fourth order
    np.testing.assert_allclose(slope, (_optimum_in_angle(G + 1e-3) - _optimum_in_angle(G - 1e-3)) / 2e-3, rtol=1e-4)
    largest = -float(u[:, 1].min())
    for most in (largest + 1, largest - 0.5, largest - 1.0):
        (limited, (x, u, status)), slope = _cartesian(G, most)
        assert status == SolveStatus.SOLVED
        assert np.abs(np.sum(x[:, :2] ** 2, axis=1) - 1).max() < 1e-9
        assert np.abs(np.sum(x[:, :2] * x[:, 2:], axis=1)).max() < 1e-9
        tension = np.sum(x[:, 2:] ** 2, axis=1) - G * np.asarray(x[:, 1])
        np.testing.assert_allclose(u[:, 1], -tension, atol=1e-8)
        assert tension.max() < most + 1e-7
        assert (limited > cost + 1e-3) == (most < largest)
        h = 1e-4
        difference = (_cartesian(G + h, most)[0][0] - _cartesian(G - h, most)[0][0]) / (2 * h)
        np.testing.assert_allclose(slope, difference, rtol=1e-5)
    assert tension.max() > most - 1e-4  # the last bound is active


# Two rods whose tip slides along a wall


def _wall(p):
    return p[0] - 0.6


def _on_wall(q1):
    """Angles of the arm with its tip on the wall, unit rods along -z: `-sin q1 - sin(q1 + q2) = 0.6`."""
    return np.array([q1, np.arcsin(-0.6 - np.sin(q1)) - q1])


def _efforts(t, x, u):
    return u[:2] @ u[:2]


@jax.jit
@functools.partial(jax.value_and_grad, has_aux=True)
def _slide(mass, least, most):
    """The least integral of squared efforts of a slide from rest to rest, with bounds on the contact force."""
    model = jd.robots.double_pendulum(masses=(1.0, mass))
    robot = ConstrainedRobot(model, jc.OnSurface("wall", jc.End("tip", jnp.zeros(3)), _wall))
    assert robot.control_names == ("upper_joint", "lower_joint", "wall.0")
    a, b = (jnp.concatenate([_on_wall(q1), jnp.zeros(2)]) for q1 in (-0.9, 0.3))
    none = jnp.full(2, jnp.inf)
    bounds = Bounds(lower_control=jnp.append(-none, least), upper_control=jnp.append(none, most))
    problem = Problem(robot, 0.6, start=a, end=partial(b[::2], [0, 2]), running=_efforts, bounds=bounds)
    guess = Guess(jnp.array([0.0, 1.0]), jnp.stack([a, b]), jnp.zeros((2, 3)))
    found = solve(problem.with_guess(guess), transcription=Trapezoidal(), intervals=8, tolerance=1e-10)
    return found.cost, (found.x, found.u, found.status)


def _accelerations_and_force(q, v, tau, m):
    """Accelerations and contact force from the equations of motion of the double pendulum and the wall constraint."""
    (q1, q2), (v1, v2), both = q, v, q[0] + q[1]
    c, h = np.cos(q2), m * np.sin(q2)
    mass = np.array([[1 + 2 * m + 2 * m * c, m + m * c], [m + m * c, m]])
    spin = np.array([-h * v2 * (2 * v1 + v2), h * v1**2])
    weight = G * np.array([(1 + m) * np.sin(q1) + m * np.sin(both), m * np.sin(both)])
    row = np.array([[-np.cos(q1) - np.cos(both), -np.cos(both)]])
    drift = np.sin(q1) * v1**2 + np.sin(both) * (v1 + v2) ** 2
    matrix = np.block([[mass, -row.T], [row, np.zeros((1, 1))]])
    return np.linalg.solve(matrix, np.append(tau - spin - weight, -drift))


@pytest.mark.slow
def test_robot_on_wall_satisfies_equations_of_motion():
    @jax.jit
    def constrained(mass, x, u):
        model = jd.robots.double_pendulum(masses=(1.0, mass))
        robot = ConstrainedRobot(model, jc.OnSurface("wall", jc.End("tip", jnp.zeros(3)), _wall))
        return robot.constrained(0.0, x, u)

    q, tau = _on_wall(-0.9), np.array([3.0, -2.0])
    v = np.array([-np.cos(q.sum()), np.cos(q[0]) + np.cos(q.sum())])  # along the wall
    *a, force = _accelerations_and_force(q, v, tau, 1.3)
    found = constrained(1.3, jnp.concatenate([q, v]), jnp.append(tau, force))
    np.testing.assert_allclose(found.rate, np.r_[v, a], atol=1e-10)
    np.testing.assert_allclose(found.forces, 0, atol=1e-10)
    np.testing.assert_allclose(found.invariants, 0, atol=1e-10)


@pytest.mark.exhaustive
def test_contact_force_bounds_along_a_wall():
    m = 1.3
    costs, least, most = [], -np.inf, np.inf
    for _ in range(3):
        (cost, (x, u, status)), _ = _slide(m, least, most)
        assert status == SolveStatus.SOLVED
        x, u = np.asarray(x), np.asarray(u)
        force = u[:, 2]
        np.testing.assert_allclose(-np.sin(x[:, 0]) - np.sin(x[:, 0] + x[:, 1]), 0.6, atol=1e-9)
        expected = [_accelerations_and_force(y[:2], y[2:], w[:2], m)[2] for y, w in zip(x, u, strict=True)]
        np.testing.assert_allclose(force, expected, atol=1e-7)
        assert least - 1e-7 < force.min() and force.max() < most + 1e-7
        costs.append(float(cost))
        if least < 0:
            assert force.min() < -1  # the wall would have to pull; from now on it can only push
            least = 0.0
        else:
            most = 0.98 * force.max()  # and then with a bounded force
    assert costs[0] < costs[1] < costs[2]
    assert force.min() < 1e-6
    assert force.max() > most / 0.98 - 1e-3


@pytest.mark.exhaustive
def test_derivatives_of_constrained_optimum():
    m, h = 1.3, 1e-4
    for least in (-np.inf, 0.0):
        (_, (_, _, status)), slope = _slide(m, least, np.inf)
        assert status == SolveStatus.SOLVED
        difference = (_slide(m + h, least, np.inf)[0][0] - _slide(m - h, least, np.inf)[0][0]) / (2 * h)
        np.testing.assert_allclose(slope, difference, rtol=1e-5)


# A closed chain


@pytest.mark.exhaustive
def test_bearing_force_bounds_of_a_four_bar():
    """Built inside of a compiled function, which needs the number of independent rows of the closure."""

    @jax.jit
    def turn(mass, most):
        model = jd.robots.four_bar(masses=(1.0, mass, 1.5))
        closure = jc.described_constraints(model)
        robot = ConstrainedRobot(model, closure, actuated=("crank_joint",), rank=2)
        high = jnp.stack([jnp.inf, most, most])
        bounds = Bounds(lower_control=-high, upper_control=high)
        end = partial(jnp.array([1.0, 0.0]), [0, 3])
        problem = Problem(robot, 0.6, start=jnp.zeros(6), end=end, running=_push, bounds=bounds)
        found = solve(problem, transcription=Trapezoidal(), intervals=8, tolerance=1e-10)
        return found.cost, found.x, found.u, jax.vmap(robot.multipliers)(found.u), found.status

    model = jd.robots.four_bar(masses=(1.0, 2.0, 1.5))
    closure = jc.described_constraints(model)
    exact = jax.jit(jax.vmap(lambda q, v, tau: jc.constrained_dynamics(model, closure, q, v, tau).multipliers))
    costs, limit = [], np.inf
    for _ in range(2):
        cost, x, u, force, status = turn(2.0, limit)
        assert status == SolveStatus.SOLVED
        tau = jnp.zeros((9, 3)).at[:, 0].set(u[:, 0])
        np.testing.assert_allclose(force, exact(x[:, :3], x[:, 3:], tau), atol=1e-7)
        largest = float(np.abs(u[:, 1:]).max())
        assert largest < limit + 1e-7
        costs.append(float(cost))
        limit, before = 0.95 * largest, limit
    assert largest > before - 1e-4
    assert costs[0] < costs[1]


@pytest.mark.slow
def test_rank_of_redundant_constraints():
    model = jd.robots.four_bar()
    closure = jc.described_constraints(model)
    robot = ConstrainedRobot(model, closure)
    assert robot.num_forces == 2  # of the three rows of a point, in a plane
    assert robot.num_invariants == 4
    with pytest.raises(ModelError, match="rank=3 is given, but 2 of 3 constraint rows"):
        ConstrainedRobot(model, closure, rank=3)
    traced = lambda mass: ConstrainedRobot(jd.robots.four_bar(masses=(1.0, mass, 1.5)), closure).basis
    with pytest.raises(ModelError, match="pass rank="):
        jax.eval_shape(traced, 1.0)


@pytest.mark.slow
def test_implicit_equations_of_a_robot_with_closures():
    """The residual vanishes at the accelerations and its Jacobian is regular."""
    m = jd.robots.four_bar()
    robot = Robot(m)
    assert not robot.is_affine

    @jax.jit
    def compare(x, u):
        y = robot.unknowns(0.0, x, u)
        rate, residual = robot.implicit(0.0, x, u, y)
        slope = jax.jacfwd(lambda y: robot.implicit(0.0, x, u, y)[1])(y)
        return rate - robot.rate(0.0, x, u), residual, slope

    x = jnp.concatenate([jd.neutral(m), jnp.zeros(m.nv)])
    difference, residual, slope = compare(x, jnp.ones(robot.nu))
    np.testing.assert_allclose(difference, 0, atol=1e-12)
    np.testing.assert_allclose(residual, 0, atol=1e-9)
    assert abs(jnp.linalg.det(slope)) > 1e-6


def test_shooting_rejects_constrained_dynamics():
    with pytest.raises(ModelError, match="Bob"):
        solve(Problem(Bob(jnp.asarray(G)), 1.0), transcription=MultipleShooting(), intervals=4)
