"""`simulate` takes any formulation."""

import jax
import jax.numpy as jnp
import pytest

import jaxdyn as jd
from jaxdyn.dynamics import FreeMotion
from jaxdyn.formulations import ExactGradient, PlanarChain, SphericalChain, TwoPointGradient
from jaxdyn.simulation import MomentumForm, System, Variational
from tests.formulations._cases import model, state
from tests.oracles import relative_error

TRACES = []


def _counted(m, q, v, tau, external=None):
    TRACES.append(1)
    return PlanarChain()(m, q, v, tau, external)


@pytest.mark.slow
def test_a_formulation_moves_a_robot():
    """The same trajectory to rounding; compiled once for a model with other numbers."""
    m, (q, v, _, _) = model("hinges"), state("hinges")
    ts = jnp.array([0.0, 0.2])
    run = lambda m, motion: jd.simulate(System(m, motion=motion), q, v, ts, dt=0.02).checked()
    wanted = run(m, FreeMotion())
    got = run(m, FreeMotion(method=_counted))
    assert relative_error(got.q[-1], wanted.q[-1]) < 1e-10
    assert relative_error(got.v[-1], wanted.v[-1]) < 1e-10
    count = len(TRACES)
    run(jax.tree.map(lambda x: 1.001 * x, m), FreeMotion(method=_counted))
    assert count
    assert len(TRACES) == count


def test_numbers_of_a_formulation_are_leaves():
    motion = FreeMotion(method=SphericalChain(TwoPointGradient(jnp.asarray(1e-4))))
    assert jax.tree.leaves(motion) == [1e-4]
    assert jax.tree.leaves(FreeMotion(method=jd.crba_solve)) == []
    assert jax.tree.structure(FreeMotion(method=jd.aba)) == jax.tree.structure(FreeMotion(method=jd.aba))
    assert jax.tree.leaves(FreeMotion(method=SphericalChain(ExactGradient()))) == []


@pytest.mark.parametrize("solver", [Variational(), MomentumForm(Variational())], ids=lambda s: type(s).__name__)
def test_solvers_that_compute_no_accelerations_refuse_a_method(solver):
    m, (q, v, _, _) = model("hinges"), state("hinges")
    system = System(m, motion=FreeMotion(method=PlanarChain()))
    with pytest.raises(jd.ModelError, match="would go unused"):
        jd.simulate(system, q, v, jnp.array([0.0, 1.0]), dt=0.1, solver=solver)
