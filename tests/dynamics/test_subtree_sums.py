"""Equations of motion from the states of the bodies, against the recursions over the tree."""

import jax
import pytest

from jaxdyn.dynamics import equations_of_motion
from jaxdyn.recursion import body_states
from tests.dynamics._cases import QUICK, TOLERANCE, call, model, state
from tests.oracles import relative_error


def equations(m, q, v, external):
    return equations_of_motion(m, body_states(m, q, v), external)


def check(name: str, options=None):
    m, (q, v, _, external) = model(name), state(name)
    mass, bias = jax.jit(equations, compiler_options=options)(m, q, v, external)
    assert relative_error(mass, call("mass_matrix", m, q)) < TOLERANCE
    assert relative_error(bias, call("bias_forces", m, q, v, external)) < TOLERANCE


def test_equations_of_motion_equal_the_recursions():
    check("pair")


@pytest.mark.slow("geared")
@pytest.mark.parametrize("name", ["geared", "tree", "every", "based"])
def test_equations_of_motion_of_other_robots(name):
    check(name, QUICK)
