"""Problems: what they take, what they refuse, and that a robot moves as in `simulate`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn._errors import ModelError, ShapeError
from jaxdyn.trajopt import Bounds, Guess, PathConstraint, Problem, Robot, partial

from .problems import push


def test_a_robot_moves_as_its_dynamics_say():
    robot = Robot(jd.robots.acrobot(damping=(0.2, 0.1)))
    assert robot.control_names == ("elbow",)
    assert robot.state_names == ("q.shoulder", "q.elbow", "v.shoulder", "v.elbow")
    x, u = jnp.array([0.3, -0.4, 0.5, 0.6]), jnp.array([2.0])
    rate = robot.rate(0.0, x, u)
    effort = jnp.array([0.0, 2.0]) - jnp.array([0.2, 0.1]) * x[2:]
    np.testing.assert_allclose(rate, jnp.concatenate([x[2:], jd.forward_dynamics(robot.model, x[:2], x[2:], effort)]))


def test_quaternions_are_refused_by_name():
    with pytest.raises(ModelError, match="base_joint"):
        Robot(jd.robots.quadruped())


def test_bounds_of_a_robot_are_its_limits():
    robot = Robot(jd.robots.cart_pole(force=7.0, track=2.0))
    b = Bounds.of(robot)
    assert b.upper_control == 7.0
    assert b.lower_state[0] == -2.0
    assert np.isinf(b.upper_state[1:]).all()


def test_ends_are_given_in_part_or_by_functions():
    p = push()
    q = Problem(p.dynamics, 1.0, start=jnp.zeros(2), end=partial([3.0], [1]))
    np.testing.assert_allclose(q.end.residual(jnp.array([5.0, 4.0])), [1.0])
    q = Problem(p.dynamics, 1.0, end=_circle)
    np.testing.assert_allclose(q.end.residual(jnp.array([3.0, 4.0])), [24.0])
    assert q.start.residual(jnp.ones(2)).shape == (0,)


def _circle(x):
    return x @ x - 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": np.zeros(3)}, r"start has shape \(3,\), expected \(2,\)"),
        ({"end": partial([1.0, 2.0], [0])}, "as many values as components"),
        ({"bounds": Bounds(lower_state=np.zeros(3))}, "lower_state has shape"),
        ({"guess": Guess(jnp.zeros(2), jnp.zeros((2, 3)), jnp.zeros((2, 1)))}, "guess.x has shape"),
    ],
)
def test_shapes_are_checked(options, message):
    with pytest.raises(ShapeError, match=message):
        Problem(push().dynamics, 1.0, **options)


def test_every_number_is_a_leaf():
    p = push(path=(PathConstraint("speed", _speed, upper=3.25),), bounds=Bounds(upper_control=4.25))
    numbers = np.concatenate([np.ravel(x) for x in jax.tree.leaves(p)])
    assert {2.0, 1.5, 1.2, 3.25, 4.25} <= set(numbers.tolist())


def _speed(t, x, u):
    return x[1]


def test_a_guess_is_interpolated():
    guess = Guess(jnp.array([0.0, 0.5, 1.0]), jnp.array([[0.0, 0], [2, 1], [0, 0]]), jnp.zeros((3, 1)))
    x, u = push().with_guess(guess).guess.at(jnp.array([0.25, 0.75]))
    np.testing.assert_allclose(x, [[1, 0.5], [1, 0.5]])
    assert u.shape == (2, 1)
