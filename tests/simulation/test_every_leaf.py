"""Derivatives of simulated results with respect to every number of the parts, controllers and constraints."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import jaxdyn as jd
from jaxdyn.model import Model
from jaxdyn.simulation import integrate_fixed_steps
from tests.actuators._kinds import FRICTIONS, KINDS
from tests.simulation._leaf_classes import classes_in, classes_with_numbers
from tests.simulation._leaf_constraints import CONSTRAINT_CASES
from tests.simulation._leaf_parts import PART_CASES

CASES = PART_CASES | CONSTRAINT_CASES


@pytest.mark.slow
def test_every_class_with_numbers_has_a_case():
    """Actuators and their friction have theirs in `tests/actuators/test_kinds.py`."""
    cases = [(case.system.parts, case.system.motion, case.events) for case in (make() for make in CASES.values())]
    covered = classes_in([*cases, list(KINDS.values()), list(FRICTIONS.values())])
    assert sorted(c.__name__ for c in classes_with_numbers() - covered) == []


def _is_number_of_the_case(tree):
    """Numbers outside of robots, whose derivatives other tests compare."""
    is_model = lambda x: isinstance(x, Model)
    return jax.tree.map(lambda x: not is_model(x) and eqx.is_inexact_array(x), tree, is_leaf=is_model)


def final_state(case, numbers, static, adjoint):
    """Configuration and velocity at the end as a vector."""
    (parts, motion), events = eqx.combine(numbers, static)
    system = jd.System(case.system.model, parts, motion)
    q, v = (jnp.asarray(x, float) for x in (case.q, case.v))
    if system.updates_between_steps or events:
        ts = jnp.array([0.0, case.steps * case.dt])
        options = {"inputs": case.inputs, "dt": case.dt, "parts": case.parts, "max_steps": 64, "solver": diffrax.Heun()}
        run = jd.simulate(system, q, v, ts, events=events, adjoint=adjoint, **options)
    else:
        if case.inputs is not None:
            system = jd.System(system.model, (*system.parts, jd.simulation.Inputs(case.inputs)), motion)
        options = {"solver": diffrax.Heun(), "adjoint": adjoint, "parts": case.parts}
        run = integrate_fixed_steps(system, q, v, 0.0, case.dt, case.steps, **options)
    return jnp.concatenate([run.q[-1], run.v[-1]])


@pytest.mark.slow("efforts", "sampled")
@pytest.mark.parametrize("name", CASES)
def test_derivatives_with_respect_to_every_number(name):
    """In forward and reverse mode against central differences; only the named numbers may have no effect."""
    case = CASES[name]()
    tree = ((case.system.parts, case.system.motion), case.events)
    numbers, static = eqx.partition(tree, _is_number_of_the_case(tree))
    theta, unravel = ravel_pytree(numbers)
    final = lambda adjoint: lambda x: final_state(case, unravel(x), static, adjoint)
    forward = jax.jit(jax.jacfwd(final(diffrax.ForwardMode())))(theta)
    weights = jnp.cos(jnp.arange(float(forward.shape[0])))
    reverse = jax.jit(jax.grad(lambda x: weights @ final(None)(x)))(theta)
    scale = jnp.where(theta == 0, 1.0, jnp.abs(theta))
    steps = 1e-5 * jnp.diag(scale)
    values = jax.jit(jax.vmap(final(None)))(jnp.concatenate([theta + steps, theta - steps]))
    central = ((values[: len(theta)] - values[len(theta) :]) / 2e-5).T
    size = np.maximum(np.abs(central).max(0), 1.0)
    np.testing.assert_allclose(forward * scale / size, central / size, atol=3e-8)
    np.testing.assert_allclose(reverse * scale / size, weights @ forward * scale / size, rtol=1e-9, atol=1e-11)
    effects = jax.tree.map(lambda x: bool(jnp.any(x != 0)), jax.vmap(unravel)(forward))
    names = [jax.tree_util.keystr(path) for path, x in jax.tree_util.tree_leaves_with_path(effects) if not x]
    assert {name.rsplit(".", 1)[-1] for name in names} <= case.without_effect
