"""Assembly: from an initial guess to the nearest state on the constraints."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.constraints import evaluation as ev
from tests.constraints._cases import assemble_four_bar, four_bar, four_bar_closure


@jax.jit
def _errors(q, v, length=1.3):
    x = ev.constraint_kinematics(four_bar(length), 0.0, q, v)
    loop = (four_bar_closure(length),)
    return ev.constraint_residuals(four_bar(length), loop, x), ev.constraint_rates(four_bar(length), loop, x)


@pytest.mark.slow
def test_assembly_from_a_distant_guess():
    end = assemble_four_bar(1.3, jnp.array([0.4, 0.9, -0.3]), jnp.array([1.0, 0.0, 0.0])).checked()
    g, rate = _errors(end.q, end.v)
    assert np.abs(g).max() < 1e-12
    assert np.abs(rate).max() < 1e-12
    assert int(end.status) == jc.AssemblyStatus.CLOSED


@pytest.mark.slow
def test_assembly_from_a_nearby_guess():
    """Links 1.10, 0.5, 1.20 and 0.75 between bearings."""
    closed = assemble_four_bar(1.20, jnp.array([0.4, 0.9, -0.3]), jnp.zeros(3)).checked().q
    guess = closed + jnp.array([0.02, -0.01, 0.015])
    assert np.abs(_errors(guess, jnp.zeros(3), 1.20)[0]).max() > 1e-2
    end = assemble_four_bar(1.20, guess, jnp.zeros(3)).checked()
    assert np.abs(_errors(end.q, end.v, 1.20)[0]).max() < 1e-5
    assert_allclose(end.q, closed, atol=0.05)


@pytest.mark.slow
def test_error_names_a_closure_that_cannot_close():
    end = assemble_four_bar(3.0, jnp.array([0.4, 0.9, -0.3]), jnp.zeros(3))  # longer than the sum of all other bars
    assert int(end.status) != jc.AssemblyStatus.CLOSED
    with pytest.raises(jd.ConvergenceError, match="'loop' does not close"):
        end.checked()


@pytest.mark.slow
def test_error_names_the_open_one_of_several_closures():
    """Two linkages side by side; the bars of the second do not reach its pin."""
    pair = jd.merge(jd.robots.four_bar(), jd.robots.four_bar(), prefix="other_")
    where = lambda m: m.closures[1].translations
    open_loop = eqx.tree_at(where, pair, where(pair).at[0].multiply(5.0))
    end = jax.jit(jc.assemble)(open_loop, jc.described_constraints(open_loop), jnp.array([0.1, -0.1, 0.05] * 2))
    assert end.names == ("pin", "other_pin")
    assert end.errors[0] < 1e-4 < 0.1 < end.errors[1]
    with pytest.raises(jd.ConvergenceError, match="'other_pin' does not close"):
        end.checked()


@pytest.mark.exhaustive
def test_derivative_of_the_assembled_configuration():
    q, v = jnp.array([0.4, 0.9, -0.3]), jnp.array([1.0, 0.0, 0.0])
    q = assemble_four_bar(1.3, q, v).q
    pose = lambda length: assemble_four_bar(length, q, v).q
    slope = (pose(1.3 + 1e-5) - pose(1.3 - 1e-5)) / 2e-5
    got = jax.jacfwd(pose)(1.3)
    # for a closed guess the nearest solution moves by the minimum-norm step
    assert_allclose(got, slope, atol=1e-6)
    g = jax.jacrev(pose)(1.3)
    assert_allclose(g, got, atol=1e-12)
