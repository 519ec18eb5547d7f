"""Plain loops of fixed steps against `simulate`, and the preparation of solvers."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.constraints import ConstrainedMotion
from jaxdyn.dynamics import FreeMotion
from jaxdyn.simulation import (
    CanonicalMomenta,
    Coordinate,
    Event,
    HeldSignal,
    OnManifold,
    Rebound,
    SemiImplicitEuler,
    System,
    Variational,
    integrate_fixed_steps,
    simulate,
)
from jaxdyn.simulation.solvers import prepare_solver
from tests.simulation._cases import floating, state

REVERSE, FORWARD = diffrax.RecursiveCheckpointAdjoint(), diffrax.ForwardMode()


def test_fixed_steps_are_the_steps_of_simulate():
    model, start = jd.robots.pendulum(damping=0.1), (jnp.array([1.0]), jnp.array([-0.5]))
    path = integrate_fixed_steps(model, *start, 2.0, 0.05, 10, solver=SemiImplicitEuler())
    want = simulate(model, *start, 2.0 + jnp.linspace(0, 0.5, 11), dt=0.05, solver=SemiImplicitEuler())
    np.testing.assert_allclose(path.q, want.q, atol=1e-11)
    np.testing.assert_allclose(path.v, want.v, atol=1e-11)


@pytest.mark.exhaustive
def test_fixed_steps_on_manifolds_in_both_modes():
    model = floating()
    q, v = state(model)
    path = integrate_fixed_steps(model, q, v, 0.0, 0.02, 5, solver=diffrax.Heun())
    want = simulate(model, q, v, jnp.array([0.0, 0.1]), dt=0.02, solver=diffrax.Heun())
    np.testing.assert_allclose(path.q[-1], want.q[-1], atol=1e-12)

    def final(v, adjoint):
        return integrate_fixed_steps(model, q, v, 0.0, 0.02, 5, solver=diffrax.Heun(), adjoint=adjoint).v[-1]

    backward = jax.jit(jax.jacrev(lambda v: final(v, REVERSE)))(v)
    np.testing.assert_allclose(backward, jax.jit(jax.jacfwd(lambda v: final(v, FORWARD)))(v), atol=1e-11)


def test_systems_that_change_between_steps_raise():
    model, start = jd.robots.pendulum(), (jnp.zeros(1), jnp.zeros(1))
    with pytest.raises(jd.ModelError, match="sampled parts or a motion that projects"):
        integrate_fixed_steps(System(model, (HeldSignal(jnp.zeros((2, 1)), 0.1),)), *start, 0.0, 0.1, 2)
    with pytest.raises(jd.ModelError, match="sampled parts or a motion that projects"):
        integrate_fixed_steps(System(model, motion=ConstrainedMotion(())), *start, 0.0, 0.1, 2)
    with pytest.raises(jd.ArgumentError, match="num_steps is 0"):
        integrate_fixed_steps(model, *start, 0.0, 0.1, 0)


def test_solvers_are_prepared_for_the_manifold_and_the_adjoint():
    vector, manifold = System(jd.robots.pendulum()), System(floating())
    for solver in (diffrax.Tsit5(), SemiImplicitEuler(), diffrax.HalfSolver(diffrax.Euler())):
        assert prepare_solver(solver, vector, REVERSE) == solver
        assert prepare_solver(solver, manifold, REVERSE) == OnManifold(solver)
    own = (Variational(), CanonicalMomenta(diffrax.Tsit5()), OnManifold(diffrax.Tsit5()))
    for solver in (*own, diffrax.HalfSolver(Variational())):
        assert prepare_solver(solver, manifold, REVERSE) == solver
    for solver in (diffrax.Tsit5(), *own[1:], diffrax.HalfSolver(diffrax.Tsit5())):
        inner = prepare_solver(solver, vector, FORWARD)
        assert getattr(inner, "solver", inner).scan_kind == "lax"


@pytest.mark.parametrize("wrap", [lambda s: s, diffrax.HalfSolver, OnManifold], ids=["plain", "half", "manifold"])
def test_solvers_check_the_motion(wrap):
    constrained = System(jd.robots.pendulum(), motion=ConstrainedMotion(()))
    with pytest.raises(jd.ModelError, match="Variational integrates the free motion of a tree, not ConstrainedMotion"):
        prepare_solver(wrap(Variational()), constrained, REVERSE)


def test_rebounds_check_the_motion():
    event = Event(Coordinate(0, 0.5), Rebound(0, 0.3), direction=-1)
    event.check(FreeMotion())
    event.check(ConstrainedMotion())
    with pytest.raises(jd.ModelError, match="the ConstrainedMotion of its system has constraints"):
        event.check(ConstrainedMotion(()))
    Event(Coordinate(0, 0.5), Rebound(0, 0.3, ConstrainedMotion(()))).check(ConstrainedMotion(()))
