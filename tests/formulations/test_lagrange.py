"""The second-kind form of Lagrange's equations: symbols, Coriolis matrix and passivity."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.formulations import lagrange_christoffel_symbols, second_kind
from tests.formulations._cases import TOLERANCE, model, state
from tests.oracles import relative_error

jit = ft.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@jit
def _terms(m, q, v):
    moved = lambda x: jd.mass_matrix(m, jd.integrate(m, q, x))
    mass, rate = jax.jvp(moved, (jnp.zeros_like(v),), (v,))
    return second_kind(m, q, v), mass, rate, jd.bias_forces(m, q, v), jd.gravity_forces(m, q)


@pytest.mark.slow("hinges")
@pytest.mark.parametrize("robot", ["hinges", "ball_slide"])
def test_second_kind(robot):
    """`C v + g = h` and `dM/dt - 2 C` skew-symmetric, also with quaternions."""
    m, (q, v, _, _) = model(robot), state(robot)
    terms, mass, rate, bias, gravity = _terms(m, q, v)
    assert relative_error(terms.mass_matrix, mass) < TOLERANCE
    assert relative_error(terms.gravity, gravity) < TOLERANCE
    assert relative_error(terms.coriolis @ v + terms.gravity, bias) < TOLERANCE
    if robot == "hinges":  # elsewhere the rate is that of M in the chart, whose coordinates are not the velocities
        assert relative_error(terms.mass_rate, rate) < TOLERANCE
    else:
        assert relative_error(terms.mass_rate, rate) > 1e-3
    passive = np.asarray(terms.mass_rate - 2 * terms.coriolis)
    assert np.abs(passive + passive.T).max() < TOLERANCE * np.abs(terms.mass_rate).max()
    assert np.abs(terms.coriolis).max() > 1e-2


@jit
def _symbols(m, q):
    return lagrange_christoffel_symbols(m, q), jd.christoffel_symbols(m, q)


@pytest.mark.slow
def test_christoffel_symbols_of_joints_with_vector_coordinates():
    got, wanted = _symbols(model("pair"), state("pair")[0])
    assert relative_error(got, wanted) < TOLERANCE
