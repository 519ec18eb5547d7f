"""The dynamics of a model without moving joints have empty results."""

import jax
import jax.numpy as jnp
import pytest

import jaxdyn as jd

EMPTY = jnp.zeros(0)


@pytest.fixture(scope="module")
def rock():
    return jd.ModelBuilder().add_link("rock", "world", None, jd.spatial.sphere(0.1, mass=1.0)).build()


FUNCTIONS = (jd.rnea, jd.forward_dynamics, jd.aba, jd.rnea_derivatives, jd.forward_dynamics_derivatives)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_empty_results(rock, f):
    assert all(x.shape in ((0,), (0, 0)) for x in jax.tree.leaves(f(rock, EMPTY, EMPTY, EMPTY)))


def test_matrices_are_empty_and_reactions_contain_the_weight(rock):
    assert jd.mass_matrix(rock, EMPTY).shape == (0, 0)
    assert jax.jit(jd.inertial_regressor)(rock, EMPTY, EMPTY, EMPTY).shape == (0, 10)
    wrench = jax.jit(jd.joint_reactions)(rock, EMPTY, EMPTY, EMPTY).wrench[0]
    assert jnp.allclose(wrench, jnp.array([0, 0, 0, 0, 0, 9.81]))
