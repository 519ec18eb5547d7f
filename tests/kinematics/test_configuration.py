"""The configuration manifold against Pinocchio, and its identities."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from jaxdyn.joints import Revolute, Spherical
from jaxdyn.kinematics import (
    configuration_velocity,
    difference,
    forward_kinematics,
    integrate,
    neutral,
    random_configuration,
)
from jaxdyn.model import ModelBuilder
from tests.kinematics.test_frames import assert_close, robot_with_mimicking_joint
from tests.oracles import ALL_KINDS, random_model, random_state, to_pinocchio

_integrate, _difference, _poses = jax.jit(integrate), jax.jit(difference), jax.jit(forward_kinematics)


@pytest.fixture(scope="module")
def tree():
    """A robot with joints of every type."""
    return random_model(0, 12, kinds=ALL_KINDS, fixed_fraction=0.1)


@pytest.mark.slow
def test_integrate_and_difference_agree_with_pinocchio():
    model = random_model(1, 10, floating=True)
    oracle = to_pinocchio(model)
    q, v, _, _ = random_state(model, 0)
    q1 = _integrate(model, q, v)
    want = pin.integrate(oracle.model, oracle.q(q), oracle.v(v))
    near = lambda a, b: np.abs(pin.difference(oracle.model, a, b)).max()
    assert near(oracle.q(q1), want) < 1e-12
    got = _difference(model, q, q1)
    assert_close(got, oracle.v_back(pin.difference(oracle.model, oracle.q(q), oracle.q(q1))))


@pytest.mark.slow
def test_difference_is_the_inverse_of_integrate(tree):
    q, v, _, _ = random_state(tree, 3)
    v = v * 0.5  # rotations by less than half a turn
    assert_close(_difference(tree, q, _integrate(tree, q, v)), v, 1e-12)
    q1, *_ = random_state(tree, 4)
    there = _integrate(tree, q, _difference(tree, q, q1))
    got, want = _poses(tree, there), _poses(tree, q1)
    assert_close(got.rotation, want.rotation)
    assert_close(got.translation, want.translation)
    assert_close(_difference(tree, q, q), np.zeros(tree.nv))


def test_configuration_velocity_is_the_rate_of_the_coordinates(tree):
    q, v, _, _ = random_state(tree, 5)
    h = 1e-6
    rate = (_integrate(tree, q, h * v) - _integrate(tree, q, -h * v)) / (2 * h)
    assert_close(jax.jit(configuration_velocity)(tree, q, v), rate, 1e-8)  # central differences


@pytest.mark.exhaustive
def test_derivatives_at_the_origin(tree):
    """The derivative of `integrate(q, difference(q, .))` at q: the identity on the tangent space."""
    q = neutral(tree)
    zero = jnp.zeros(tree.nv)
    step = jax.jit(jax.jacrev(lambda dv: difference(tree, q, integrate(tree, q, dv))))(zero)
    assert_close(step, np.eye(tree.nv), 1e-12)
    second = jax.jit(jax.jacfwd(jax.jacrev(lambda dv: integrate(tree, q, dv).sum())))(zero)
    assert jnp.isfinite(second).all()


def test_neutral_and_random_configurations():
    b = ModelBuilder()
    b.add_link("a", "world", Revolute([0, 0, 1]), lower=1.0, upper=1.5)
    b.add_link("b", "a", Spherical())
    b.add_link("c", "b", Revolute([0, 1, 0]), lower=0.0)
    model = b.build()
    assert_close(neutral(model), [0, 1, 0, 0, 0, 0])
    keys = jax.random.split(jax.random.PRNGKey(0), 100)
    q = jax.jit(jax.vmap(random_configuration, (None, 0)))(model, keys)
    assert q.shape == (100, 6)
    assert (q[:, 0] >= 1).all() and (q[:, 0] <= 1.5).all() and np.ptp(q[:, 0]) > 0.4
    assert_close(jnp.linalg.norm(q[:, 1:5], axis=1), np.ones(100))
    assert jnp.isfinite(q).all()


def test_mimicking_joints_have_no_coordinates():
    model = robot_with_mimicking_joint()
    drawn = jax.eval_shape(random_configuration, model, jax.random.PRNGKey(0))
    assert neutral(model).shape == drawn.shape == (2,)
    assert_close(_integrate(model, jnp.array([1.0, 2.0]), jnp.array([0.5, 0.25])), [1.5, 2.25])


def test_configuration_of_a_fixed_model():
    model = ModelBuilder().build()
    zero = jnp.zeros(0)
    for x in (
        neutral(model),
        integrate(model, zero, zero),
        difference(model, zero, zero),
        configuration_velocity(model, zero, zero),
        random_configuration(model, jax.random.PRNGKey(0)),
    ):
        assert x.shape == (0,)


_slopes = jax.jit(jax.jacrev(difference, 2))


@pytest.mark.slow
@pytest.mark.parametrize("turns", [0.0, 0.5])
def test_gradient_of_difference_is_finite(turns):
    """At the identity and at a rotation by pi."""
    b = ModelBuilder()
    b.add_link("a", "world", Spherical())
    model = b.build()
    q1 = jnp.array([np.cos(np.pi * turns), 0, np.sin(np.pi * turns), 0])
    rates = _slopes(model, neutral(model), q1)
    assert jnp.isfinite(rates).all() and jnp.abs(rates).max() > 0.5
