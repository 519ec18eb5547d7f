"""First-order descent: mini-batches, memory, and fits through simulations."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxdyn as jd
from jaxdyn import ArgumentError
from jaxdyn.identification import (
    FirstOrder,
    FitStatus,
    GeometricPrior,
    Log,
    OutputError,
    Physical,
    Windows,
    collect,
    fit,
)
from jaxdyn.identification.methods._first_order import descend_batches
from jaxdyn.identification.methods._unconstrained import Cost
from jaxdyn.identification.parameters import make_chart

from .synthetic_logs import SELECTION, arm, perturb_model, synthetic_log

ARM = arm()
ADAM = optax.adam(0.1)


def _cost(samples=24) -> tuple[Cost, jax.Array]:
    """The cost of all parameters of the arm at its perturbed start, and this start."""
    problem = FirstOrder(ADAM, chunk=8).problem(
        collect(perturb_model(ARM), SELECTION), [synthetic_log(ARM, 0.1, samples)]
    )
    start = problem.parameters.read()
    chart = make_chart(problem.parameters, np.asarray(start))
    cost = Cost(problem, None, chart, GeometricPrior(0.3, 0.2), start, jnp.array([2.0, 3.0, 4.0]), None)
    return cost, chart.z(start)


@pytest.mark.slow
def test_curvatures_are_the_diagonal_of_the_gauss_newton_matrix():
    cost, z = _cost()
    z = z + 0.1  # away from the start, where terms of the prior vanish
    got = eqx.filter_jit(cost.curvatures)(z)
    np.testing.assert_allclose(got, jnp.diagonal(eqx.filter_jit(cost.quadratic_model)(z)[2]), rtol=1e-10)
    forward = eqx.tree_at(lambda c: c.problem, cost, _by_forward_mode(cost.problem))
    np.testing.assert_allclose(eqx.filter_jit(forward.curvatures)(z), got, rtol=1e-10)


def _by_forward_mode(problem):
    fields = {name: getattr(problem, name) for name in problem.__dataclass_fields__}
    return type(problem)(**{**fields, "forward": True})


def _shapes(jaxpr: Any):
    """Shapes of all intermediate results of a program, those of inner programs included."""
    for equation in jaxpr.eqns:
        yield from (x.aval.shape for x in equation.outvars)
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                yield from _shapes(inner)


@pytest.mark.slow
def test_descent_forms_no_matrix_of_all_parameters():
    cost, z = _cost()
    count = z.size
    has_matrix = lambda f, *args: any(s.count(count) > 1 for s in _shapes(jax.make_jaxpr(f)(*args).jaxpr))
    assert has_matrix(cost.quadratic_model, z)
    assert not has_matrix(cost.curvatures, z)
    assert not has_matrix(cost.value_and_gradient, z)
    descend = lambda z, rows, keys: descend_batches(cost, z, jnp.ones(count), ADAM, rows, (4, 6), keys)
    assert not has_matrix(descend, z, jnp.arange(24), jax.random.split(jax.random.key(0), 2))


@pytest.mark.slow
def test_mini_batches_converge_to_the_least_squares_solution():
    """A residual that is linear in damping, so that the truth is the solution of the normal equations."""
    log = synthetic_log(ARM, 0.2, 410)  # the batches of an epoch leave out ten samples
    paths, weights = "joints[*].damping", [5.0] * 3
    known = fit(perturb_model(ARM), log, paths, Physical(reweight=0), weights=weights).checked()
    schedule = optax.exponential_decay(1.0, transition_steps=150, decay_rate=0.5)
    method = FirstOrder(optax.adam(schedule), max_steps=2000, reweight=0, batch_size=40)
    found = fit(perturb_model(ARM), log, paths, method, weights=weights)
    for a, b in zip(found.parameters, known.parameters, strict=True):
        assert abs(a.value - b.value) < 0.02 * b.deviation
    assert known.cost <= found.cost < known.cost * (1 + 1e-5)
    assert len(found.history) == 202 and found.steps == 2000  # the start, 200 epochs, the end
    assert found.initial_cost == pytest.approx(known.initial_cost, rel=1e-6)


@pytest.mark.slow
def test_adam_fits_through_simulations():
    truth = jd.robots.pendulum(damping=0.3)
    t = jnp.linspace(0.0, 2.0, 101)
    run = jd.simulate(truth, jnp.array([1.0]), jnp.zeros(1), t, dt=0.02)
    log = Log(t, run.q, run.v, None, effort=jnp.zeros((101, 1)))
    start = jd.robots.pendulum(damping=0.1)
    windows = Windows(length=0.4, stride=0.2, lead=0.0)
    known = fit(start, log, ["joints[*].damping"], OutputError(windows, Physical(reweight=0))).checked()
    for size in (None, 3):
        schedule = optax.exponential_decay(0.01, transition_steps=30, decay_rate=0.5)
        solver = FirstOrder(optax.adam(schedule), max_steps=210, reweight=0, batch_size=size)
        found = fit(start, log, ["joints[*].damping"], OutputError(windows, solver))
        assert found.parameters[0].value == pytest.approx(known.parameters[0].value, abs=1e-4)
        assert found.status != FitStatus.NOT_FINITE and found.cost < 1e-3 * found.initial_cost
    assert known.parameters[0].value == pytest.approx(0.3, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, -1, 2.0, True])
def test_batch_size_is_a_whole_number(size):
    with pytest.raises(ArgumentError, match="batch_size"):
        FirstOrder(ADAM, batch_size=size)
