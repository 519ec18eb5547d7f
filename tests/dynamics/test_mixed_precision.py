"""A state and a robot in different precisions: results have the higher one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.dynamics._cases import QUICK, model, state
from tests.dynamics._functions import FUNCTIONS
from tests.oracles import relative_error

NAMES = ("rnea", "mass_matrix", "forward_dynamics", "coriolis_matrix", "joint_reactions", "task_space_dynamics")
KINEMATICS = {
    "forward_kinematics": lambda m, q, v, a, e: jd.forward_kinematics(m, q),
    "jacobian": lambda m, q, v, a, e: jd.jacobian(m, q, "f0"),
    "jacobian_derivative": lambda m, q, v, a, e: jd.jacobian_derivative(m, q, v, "f0"),
    "center_of_mass_jacobian": lambda m, q, v, a, e: jd.kinematics.center_of_mass_jacobian(m, q),
    "integrate": lambda m, q, v, a, e: jd.integrate(m, q, v),
}
ALL = {**{x: FUNCTIONS[x] for x in NAMES}, **KINEMATICS}
_low = lambda args: jax.tree.map(lambda x: x.astype(jnp.float32), args)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_results_have_the_higher_precision(name):
    m, s = model("single"), state("single")
    for args in ((m, *_low(s)), (_low(m), *s)):
        for x in jax.tree.leaves(jax.eval_shape(ALL[name], *args)):
            assert x.dtype == jnp.float64 or name == "integrate"


@pytest.mark.slow
def test_errors_are_those_of_the_lower_precision():
    f = jax.jit(
        lambda *args: [ALL[x](*args) for x in ("mass_matrix", "center_of_mass_jacobian")], compiler_options=QUICK
    )
    m, s = model("pair"), state("pair")
    for got, want in zip(f(m, *_low(s)), f(m, *s), strict=True):
        assert relative_error(got, want) < 1e-5
        assert np.any(np.asarray(got) != np.asarray(want))
