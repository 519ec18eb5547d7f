"""Arguments of `Problem`, errors for invalid problems, and dynamics of robots."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn._errors import ModelError, ShapeError
from jaxdyn.trajopt import (
    Bounds,
    Guess,
    MultipleShooting,
    PathConstraint,
    Problem,
    Robot,
    VectorField,
    ilqr,
    partial,
    solve,
)

from .problems import push


@pytest.mark.exhaustive
def test_rate_of_robot_is_forward_dynamics():
    robot = Robot(jd.robots.acrobot(damping=(0.2, 0.1)))
    assert robot.control_names == ("elbow",)
    assert robot.state_names == ("q.shoulder", "q.elbow", "v.shoulder", "v.elbow")
    x, u = jnp.array([0.3, -0.4, 0.5, 0.6]), jnp.array([2.0])
    rate = robot.rate(0.0, x, u)
    effort = jnp.array([0.0, 2.0]) - jnp.array([0.2, 0.1]) * x[2:]
    np.testing.assert_allclose(rate, jnp.concatenate([x[2:], jd.forward_dynamics(robot.model, x[:2], x[2:], effort)]))


def test_joints_with_quaternions_are_rejected():
    with pytest.raises(ModelError, match="base_joint"):
        Robot(jd.robots.quadruped())


def test_bounds_of_robot_are_joint_limits():
    robot = Robot(jd.robots.cart_pole(force=7.0, track=2.0))
    b = Bounds.of(robot)
    assert b.upper_control == 7.0
    assert b.lower_state[0] == -2.0
    assert np.isinf(b.upper_state[1:]).all()


def test_boundary_conditions_by_components_and_functions():
    p = push()
    q = Problem(p.dynamics, 1.0, start=jnp.zeros(2), end=partial([3.0], [1]))
    np.testing.assert_allclose(q.end.residual(jnp.array([5.0, 4.0])), [1.0])
    q = Problem(p.dynamics, 1.0, end=_circle)
    np.testing.assert_allclose(q.end.residual(jnp.array([3.0, 4.0])), [24.0])
    assert q.start.residual(jnp.ones(2)).shape == (0,)


def _circle(x):
    return x @ x - 1


def test_boundary_conditions_of_controls():
    p = push()
    q = Problem(p.dynamics, 1.0, start_control=[3.0], end_control=_circle)
    np.testing.assert_allclose(q.start_control.residual(jnp.array([5.0])), [2.0])
    np.testing.assert_allclose(q.end_control.residual(jnp.array([2.0])), [3.0])
    assert p.end_control.is_free
    q = push(end_control=partial([0.5], [0]))
    np.testing.assert_allclose(q.end_control.residual(jnp.array([2.0])), [1.5])
    with pytest.raises(ModelError, match="piecewise constant controls"):
        solve(q, transcription=MultipleShooting(), intervals=2)
    with pytest.raises(ModelError, match="fixes controls at the ends"):
        ilqr(q, intervals=2)


@pytest.mark.exhaustive
def test_optimum_with_end_control_equals_quadratic_program():
    """Simpson's rule is exact for the moments of the controls: the constraints are two moments and the end control."""
    n, T, m, d = 6, 1.2, 2.0, 1.5
    t = np.linspace(0, T, 2 * n + 1)
    weight = np.tile([2.0, 4.0], n + 1)[: 2 * n + 1] * T / (6 * n)
    weight[[0, -1]] /= 2
    A, b = np.stack([weight, weight * (T - t), np.eye(2 * n + 1)[-1]]), np.array([0, m * d, 0.5])
    u = (A / weight).T @ np.linalg.solve(A / weight @ A.T, b)
    found = solve(push(end_control=[0.5]), intervals=n).checked()
    np.testing.assert_allclose(found.u[:, 0], u[::2], atol=1e-7)
    np.testing.assert_allclose(found.cost, weight @ u**2, rtol=1e-10)


def _lag(t, x, u, _):
    return u - x


def _follow(t, x, u):
    return (x[0] - jnp.cos(t)) ** 2 + u @ u


def _periodic(x0, xT):
    return xT - x0


@pytest.mark.exhaustive
def test_periodic_optimum_is_steady_state():
    """`xdot = u - x` follows `cos t`: of `x = Re(z e^it)`, `|z - 1|^2 + |(1 + i) z|^2` is least at `z = 1/3`."""
    field = VectorField(_lag, ("x",), ("u",))
    problem = Problem(field, 2 * np.pi, running=_follow, coupling=_periodic)
    found = solve(problem, intervals=24).checked()
    np.testing.assert_allclose(found.cost, 2 * np.pi / 3, rtol=1e-5)
    np.testing.assert_allclose(found.x[:, 0], np.cos(found.t) / 3, atol=1e-4)
    np.testing.assert_allclose(found.x[0], found.x[-1], atol=1e-10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": np.zeros(3)}, r"start has shape \(3,\), expected \(2,\)"),
        ({"end": partial([1.0, 2.0], [0])}, "as many values as components"),
        ({"end_control": np.zeros(2)}, r"end_control has shape \(2,\), expected \(1,\)"),
        ({"bounds": Bounds(lower_state=np.zeros(3))}, "lower_state has shape"),
        ({"guess": Guess(jnp.zeros(2), jnp.zeros((2, 3)), jnp.zeros((2, 1)))}, "guess.x has shape"),
    ],
)
def test_wrong_shapes_are_rejected(options, message):
    with pytest.raises(ShapeError, match=message):
        Problem(push().dynamics, 1.0, **options)


def test_all_numbers_are_leaves():
    p = push(path=(PathConstraint("speed", _speed, upper=3.25),), bounds=Bounds(upper_control=4.25))
    numbers = np.concatenate([np.ravel(x) for x in jax.tree.leaves(p)])
    assert {2.0, 1.5, 1.2, 3.25, 4.25} <= set(numbers.tolist())


def _speed(t, x, u):
    return x[1]


def test_guess_is_interpolated():
    guess = Guess(jnp.array([0.0, 0.5, 1.0]), jnp.array([[0.0, 0], [2, 1], [0, 0]]), jnp.zeros((3, 1)))
    x, u = push().with_guess(guess).guess.at(jnp.array([0.25, 0.75]))
    np.testing.assert_allclose(x, [[1, 0.5], [1, 0.5]])
    assert u.shape == (2, 1)
