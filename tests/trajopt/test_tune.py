"""Tuning of the leaves of a pytree."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxdyn as jd
from jaxdyn.trajopt import TuningStatus, tune


def bowl(x):
    """A minimum of 1 at a = 2, b = (1, 3); `name` is not tuned."""
    assert x["name"] == "fixed"
    return 1 + (x["a"] - 2) ** 2 + jnp.sum(jnp.log(x["b"] / jnp.array([1.0, 3.0])) ** 2)


START = {"a": jnp.array(0.5), "b": jnp.array([2.0, 0.1]), "name": "fixed"}


@pytest.mark.parametrize("optimiser", [optax.adam(0.1), optax.lbfgs()])
def test_minimum_of_a_bowl(optimiser):
    found = tune(bowl, START, optimiser, steps=200, positive=True).checked()
    np.testing.assert_allclose(found.parameters["a"], 2, rtol=1e-3)
    np.testing.assert_allclose(found.parameters["b"], [1, 3], rtol=1e-3)
    assert found.parameters["name"] == "fixed" and found.history.shape == (201,)
    assert found.cost == found.history.min() and found.gradient_norm < 1e-2


def _root(x):
    return jnp.sqrt(x)


def test_outcomes():
    """From x = 1 the first step of unit length ends at the root's singular point, the next one beyond it."""
    found = tune(_root, jnp.array(1.0), optax.sgd(2.0), steps=5)
    assert found.status == TuningStatus.NOT_FINITE and found.parameters <= 1 and jnp.isnan(found.history[-1])
    with pytest.raises(jd.ConvergenceError, match="NOT_FINITE: the cost or its gradient"):
        found.checked()
    assert tune(lambda x: x**2, jnp.array(0.0), steps=3).status == TuningStatus.NOT_IMPROVED
    several = jax.vmap(lambda x: tune(_square, x, steps=300))(jnp.array([1.0, -2.0]))
    np.testing.assert_allclose(several.parameters, 0, atol=1e-2)


def _square(x):
    return x**2


def test_refused_tunings():
    with pytest.raises(jd.ArgumentError, match="no floating-point array"):
        tune(_square, 3)
    with pytest.raises(jd.ArgumentError, match="steps is 0"):
        tune(_square, jnp.array(1.0), steps=0)
