"""`simulate` with formulations."""

import functools as ft

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.dynamics import FreeMotion
from jaxdyn.formulations import ExactGradient, PlanarChain, SphericalChain, TwoPointGradient
from jaxdyn.simulation import CanonicalMomenta, SimulationStatus, System, Variational
from tests.formulations._cases import each, model, state, with_pitch
from tests.oracles import relative_error

jit = ft.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
TRACES = []


def _count_traces(m, q, v, tau, external=None):
    TRACES.append(1)
    return PlanarChain()(m, q, v, tau, external)


@pytest.mark.slow
def test_simulation_with_a_formulation():
    """Equal trajectories to rounding, and one compilation for models of one structure."""
    m, (q, v, _, _) = model("hinges"), state("hinges")
    ts = jnp.array([0.0, 0.2])
    run = lambda m, motion: jd.simulate(System(m, motion=motion), q, v, ts, dt=0.02).checked()
    wanted = run(m, FreeMotion())
    got = run(m, FreeMotion(method=_count_traces))
    assert relative_error(got.q[-1], wanted.q[-1]) < 1e-10
    assert relative_error(got.v[-1], wanted.v[-1]) < 1e-10
    count = len(TRACES)
    run(jax.tree.map(lambda x: 1.001 * x, m), FreeMotion(method=_count_traces))
    assert count
    assert len(TRACES) == count


@ft.partial(jit, static_argnums=0)
def _simulate_two_steps(method, m, q, v):
    run = jd.simulate(
        System(m, motion=FreeMotion(method=method)), q, v, jnp.array([0.0, 0.06]), dt=0.03, solver=diffrax.Euler()
    )
    return run.q[-1], run.v[-1], run.status


@pytest.mark.exhaustive
@pytest.mark.parametrize(("method", "robot"), each())
def test_simulation_with_every_formulation(method, robot):
    """Two steps agree with the default method; at a singularity of the angles the status is `NOT_FINITE`."""
    m, (q, v, _, _) = model(robot), state(robot)
    *got, status = _simulate_two_steps(method, m, q, v)
    *wanted, _ = _simulate_two_steps(None, m, q, v)
    assert status == 0
    for x, y in zip(got, wanted, strict=True):
        assert relative_error(x, y) < 1e-10
    assert np.abs(np.asarray(got[1]) - np.asarray(v)).max() > 1e-3
    if isinstance(method, SphericalChain):
        *_, status = _simulate_two_steps(method, m, with_pitch(m, np.pi / 2), v)
        assert status == SimulationStatus.NOT_FINITE


def test_uncovered_model_raises_an_error():
    """Numbers are checked before the simulation is traced."""
    builder = jd.ModelBuilder()
    for name, parent, axis in (("a", "world", (0, 1, 0)), ("b", "a", (0, 0.6, 0.8))):
        builder.add_link(name, parent, jd.joints.Revolute(axis), jd.spatial.sphere(0.1, mass=1.0))
    system = System(builder.build(), motion=FreeMotion(method=PlanarChain()))
    with pytest.raises(jd.ModelError, match="PlanarChain.*'b_joint' is not parallel"):
        jd.simulate(system, jnp.zeros(2), jnp.zeros(2), jnp.array([0.0, 1.0]), dt=0.1)


def test_numbers_of_a_formulation_are_leaves():
    motion = FreeMotion(method=SphericalChain(TwoPointGradient(jnp.asarray(1e-4))))
    assert jax.tree.leaves(motion) == [1e-4]
    assert jax.tree.leaves(FreeMotion(method=jd.crba_solve)) == []
    assert jax.tree.structure(FreeMotion(method=jd.aba)) == jax.tree.structure(FreeMotion(method=jd.aba))
    assert jax.tree.leaves(FreeMotion(method=SphericalChain(ExactGradient()))) == []


@pytest.mark.parametrize("solver", [Variational(), CanonicalMomenta(Variational())], ids=lambda s: type(s).__name__)
def test_solvers_without_accelerations_raise_an_error_for_a_method(solver):
    m, (q, v, _, _) = model("hinges"), state("hinges")
    system = System(m, motion=FreeMotion(method=PlanarChain()))
    with pytest.raises(jd.ModelError, match="would be ignored"):
        jd.simulate(system, q, v, jnp.array([0.0, 1.0]), dt=0.1, solver=solver)
