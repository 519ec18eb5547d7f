"""Robots with one joint as constants of a compiled function, subject to constant folding by XLA."""

import jax
import jax.numpy as jnp
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd

ROBOT = jd.robots.pendulum(length=0.5, mass=2.0)
FUNCTIONS = {
    "rnea": lambda q: jd.rnea(ROBOT, q, q, q),
    "mass_matrix": lambda q: jd.mass_matrix(ROBOT, q),
    "forward_dynamics": lambda q: jd.forward_dynamics(ROBOT, q, q, q),
    "derivatives": lambda q: jd.forward_dynamics_derivatives(ROBOT, q, q, q).dq,
    "gradient": jax.grad(lambda q: jd.forward_dynamics(ROBOT, q, q, q)[0]),
}


@pytest.mark.parametrize(
    "name", ["rnea", *(pytest.param(x, marks=pytest.mark.exhaustive) for x in FUNCTIONS if x != "rnea")]
)
def test_one_joint_robot_as_a_constant(name):
    q = jnp.array([0.3])
    assert_allclose(jax.jit(FUNCTIONS[name])(q), FUNCTIONS[name](q), atol=1e-13)
