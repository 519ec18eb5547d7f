"""Motion and contact force planned together: the same optimum as in coordinates without constraint, and limits held."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn._errors import ModelError
from jaxdyn.trajopt import (
    AbstractConstrainedDynamics,
    Bounds,
    Constrained,
    ConstrainedRobot,
    Guess,
    MultipleShooting,
    PathConstraint,
    Problem,
    Robot,
    SolveStatus,
    Trapezoidal,
    VectorField,
    partial,
    solve,
)

G = 9.81
END = 1.2


class Bob(AbstractConstrainedDynamics):
    """A pendulum of unit mass and length in Cartesian coordinates, pushed along its circle; the last control is the
    multiplier of `(p.p - 1)/2 = 0`, less the tension."""

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


def _angle(t, x, u, g):
    return jnp.stack([x[1], u[0] - g * jnp.sin(x[0])])


def _cartesian(bounds=None):
    angles = jnp.linspace(0, END, 9)
    x = jnp.stack([jnp.sin(angles), -jnp.cos(angles), 0 * angles, 0 * angles], axis=1)
    guess = Guess(angles / END, x, jnp.tile(jnp.array([0.0, -G]), (9, 1)))
    start = jnp.array([0.0, -1.0, 0.0, 0.0])
    end = partial([np.sin(END), 0.0], [0, 2])
    return Problem(Bob(jnp.asarray(G)), 1.0, start=start, end=end, running=_push, bounds=bounds, guess=guess)


def _tension(t, x, u):
    """What the rod bears, in the angle and its rate."""
    return x[1] ** 2 + G * jnp.cos(x[0])


def _polar(most):
    field = VectorField(_angle, ("angle", "rate"), ("push",), jnp.asarray(G))
    path = (PathConstraint("rod", _tension, upper=most),)
    return Problem(field, 1.0, start=jnp.zeros(2), end=jnp.array([END, 0.0]), running=_push, path=path)


@pytest.mark.slow
def test_a_pendulum_on_its_circle_is_that_in_its_angle():
    """The same optimum in Cartesian coordinates, with the force of the rod planned, and in the angle alone."""
    free = solve(_cartesian(), intervals=16).checked()
    bare = -float(free.u[:, 1].min())  # what the rod bears at most
    costs = []
    for most in (np.inf, bare - 0.5, bare - 1.0):
        bounds = Bounds(lower_control=np.array([-np.inf, -most]))
        found, angle = (solve(p, intervals=16).checked() for p in (_cartesian(bounds), _polar(most)))
        np.testing.assert_allclose(found.cost, angle.cost, rtol=1e-4)  # of fourth order in both coordinates
        assert np.abs(np.sum(found.x[:, :2] ** 2, axis=1) - 1).max() < 1e-9
        assert np.abs(np.sum(found.x[:, :2] * found.x[:, 2:], axis=1)).max() < 1e-9
        tension = np.sum(found.x[:, 2:] ** 2, axis=1) - G * np.asarray(found.x[:, 1])
        np.testing.assert_allclose(found.u[:, 1], -tension, atol=1e-8)
        assert tension.max() < most + 1e-6
        costs.append(float(found.cost))
    assert tension.max() > most - 1e-4  # the last limit binds
    assert costs[0] < costs[1] - 1e-3 < costs[2] - 2e-3


# Two rods whose tip slides along a wall


def _wall(p):
    return p[0] - 0.6


def _first_angle(q1):
    """Both angles of the arm with its tip on the wall, unit rods hanging along -z: `-sin q1 - sin(q1 + q2) = 0.6`."""
    return np.array([q1, np.arcsin(-0.6 - np.sin(q1)) - q1])


def _efforts(t, x, u):
    return u[:2] @ u[:2]


@jax.jit
@functools.partial(jax.value_and_grad, has_aux=True)
def _slid(mass, least, most):
    """The least integral of squared efforts of a slide from rest to rest, with the force of the wall in a range."""
    model = jd.robots.double_pendulum(masses=(1.0, mass))
    robot = ConstrainedRobot(model, jc.OnSurface("wall", jc.End("tip", jnp.zeros(3)), _wall))
    a, b = (jnp.concatenate([_first_angle(q1), jnp.zeros(2)]) for q1 in (-0.9, 0.3))
    none = jnp.full(2, jnp.inf)
    bounds = Bounds(lower_control=jnp.append(-none, least), upper_control=jnp.append(none, most))
    guess = Guess(jnp.array([0.0, 1.0]), jnp.stack([a, b]), jnp.zeros((2, 3)))
    problem = Problem(robot, 1.0, start=a, end=partial(b[jnp.array([0, 2])], [0, 2]), running=_efforts, bounds=bounds)
    found = solve(problem.with_guess(guess), transcription=Trapezoidal(), intervals=10, tolerance=1e-10)
    return found.cost, (found.x, found.u, found.status)


def _pressed(q, v, tau, m):
    """The force of the wall by hand: two equations of motion, of the double pendulum, and one of the wall."""
    (q1, q2), (v1, v2), both = q, v, q[0] + q[1]
    c, h = np.cos(q2), m * np.sin(q2)
    mass = np.array([[1 + 2 * m + 2 * m * c, m + m * c], [m + m * c, m]])
    spin = np.array([-h * v2 * (2 * v1 + v2), h * v1**2])
    weight = G * np.array([(1 + m) * np.sin(q1) + m * np.sin(both), m * np.sin(both)])
    row = np.array([[-np.cos(q1) - np.cos(both), -np.cos(both)]])
    drift = np.sin(q1) * v1**2 + np.sin(both) * (v1 + v2) ** 2
    matrix = np.block([[mass, -row.T], [row, np.zeros((1, 1))]])
    return np.linalg.solve(matrix, np.append(tau - spin - weight, -drift))[-1]


@pytest.mark.slow
def test_motion_and_force_along_a_wall_are_planned_together():
    m = 1.3
    (cost, (x, u, status)), slope = _slid(m, -np.inf, np.inf)
    assert status == SolveStatus.SOLVED
    free = np.asarray(u)[:, 2]
    for least, most in ((-np.inf, np.inf), (0.0, np.inf), (0.0, 0.9 * free.max())):
        (cost, (x, u, status)), slope = _slid(m, least, most)
        assert status == SolveStatus.SOLVED
        x, u = np.asarray(x), np.asarray(u)
        tip = -np.sin(x[:, 0]) - np.sin(x[:, 0] + x[:, 1])
        np.testing.assert_allclose(tip, 0.6, atol=1e-9)
        np.testing.assert_allclose(
            [_pressed(y[:2], y[2:], w[:2], m) for y, w in zip(x, u, strict=True)], u[:, 2], atol=1e-7
        )
        assert u[:, 2].min() > least - 1e-7 and u[:, 2].max() < most + 1e-7
        h = 1e-4
        difference = (_slid(m + h, least, most)[0][0] - _slid(m - h, least, most)[0][0]) / (2 * h)
        np.testing.assert_allclose(slope, difference, rtol=1e-5)
        print(least, most, cost, slope, difference, u[:, 2])
    assert free.min() < -1  # without the limit the wall would have to pull


# A closed chain


def _crank(t, x, u):
    return u[0] ** 2


@pytest.mark.slow
def test_a_linkage_turns_with_its_bearing_spared():
    """Made inside of a compiled function, where the independent rows of the closure are to be told by their number."""

    @jax.jit
    @functools.partial(jax.value_and_grad, has_aux=True)
    def turned(mass, most):
        model = jd.robots.four_bar(masses=(1.0, mass, 1.5))
        robot = ConstrainedRobot(model, jc.described_constraints(model), actuated=("crank_joint",), rank=2)
        bounds = Bounds(
            lower_control=jnp.array([-jnp.inf, -most, -most]), upper_control=jnp.array([jnp.inf, most, most])
        )
        problem = Problem(
            robot, 0.6, start=jnp.zeros(6), end=partial(jnp.array([1.0, 0.0]), [0, 3]), running=_crank, bounds=bounds
        )
        found = solve(problem, transcription=Trapezoidal(), intervals=10, tolerance=1e-10)
        return found.cost, (found.x, found.u, jax.vmap(robot.multipliers)(found.u), found.status)

    model = jd.robots.four_bar(masses=(1.0, 2.0, 1.5))
    closure = jc.described_constraints(model)
    exact = jax.jit(jax.vmap(lambda q, v, tau: jc.constrained_dynamics(model, closure, q, v, tau).multipliers))
    largest = np.inf
    for share in (1.0, 0.95):
        limit = share * largest
        (cost, (x, u, force, status)), slope = turned(2.0, limit)
        assert status == SolveStatus.SOLVED
        tau = np.zeros((11, 3))
        tau[:, 0] = u[:, 0]
        np.testing.assert_allclose(force, exact(x[:, :3], x[:, 3:], tau), atol=1e-7)
        print(share, cost, u[:, 1:], slope)
        largest = float(np.abs(u[:, 1:]).max())
        assert largest < limit + 1e-7
    assert largest > limit - 1e-4
    h = 1e-4
    difference = (turned(2.0 + h, limit)[0][0] - turned(2.0 - h, limit)[0][0]) / (2 * h)
    np.testing.assert_allclose(slope, difference, rtol=1e-5)


@pytest.mark.slow
def test_independent_rows_are_found_or_told():
    model = jd.robots.four_bar()
    closure = jc.described_constraints(model)
    robot = ConstrainedRobot(model, closure)
    assert robot.num_forces == 2  # of the three rows of a point, in a plane
    assert robot.num_invariants == 4
    with pytest.raises(ModelError, match="rank=3 is given, but 2 of 3 rows"):
        ConstrainedRobot(model, closure, rank=3)
    traced = lambda mass: ConstrainedRobot(jd.robots.four_bar(masses=(1.0, mass, 1.5)), closure).basis
    with pytest.raises(ModelError, match="give ConstrainedRobot their number"):
        jax.eval_shape(traced, 1.0)


@pytest.mark.slow
def test_a_robot_with_closures_says_the_same_with_unknowns():
    """The residual is zero at the accelerations along the closures, and regular in them."""
    m = jd.robots.four_bar()
    robot = Robot(m)
    assert not robot.affine

    @jax.jit
    def said(x, u):
        y = robot.unknowns(0.0, x, u)
        rate, residual = robot.implicit(0.0, x, u, y)
        slope = jax.jacfwd(lambda y: robot.implicit(0.0, x, u, y)[1])(y)
        return rate - robot.rate(0.0, x, u), residual, slope

    x = jnp.concatenate([jd.neutral(m), jnp.zeros(m.nv)])
    difference, residual, slope = said(x, jnp.ones(robot.nu))
    np.testing.assert_allclose(difference, 0, atol=1e-12)
    np.testing.assert_allclose(residual, 0, atol=1e-9)
    assert abs(jnp.linalg.det(slope)) > 1e-6


def test_shooting_refuses_unknown_forces():
    with pytest.raises(ModelError, match="Bob"):
        solve(_cartesian(), transcription=MultipleShooting(), intervals=4)
