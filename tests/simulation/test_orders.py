"""Orders of the solvers on vector spaces, across an impact and on manifolds, and long-time conservation."""

import functools as ft

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.joints import Spherical
from jaxdyn.simulation import (
    CanonicalMomenta,
    Coordinate,
    Event,
    Rebound,
    Rosenbrock,
    SemiImplicitEuler,
    Variational,
    simulate,
)
from jaxdyn.spatial import box
from tests.simulation._cases import distance, floating, state

TS = jnp.linspace(0, 0.5, 6)
#: solver, the steps of two runs, and the order
SOLVERS = [
    pytest.param(SemiImplicitEuler(), (256, 512), 1, id="semi-implicit"),
    pytest.param(Variational(), (64, 128), 2, id="variational"),
    pytest.param(Rosenbrock(), (64, 128), 2, id="rosenbrock"),
    pytest.param(CanonicalMomenta(diffrax.Heun()), (128, 256), 2, id="momentum-2"),
    pytest.param(CanonicalMomenta(diffrax.Tsit5()), (16, 64), 5, id="momentum-5"),
    pytest.param(diffrax.Tsit5(), (16, 32), 5, id="tsit5"),
]
START = jnp.array([0.4, -0.9]), jnp.array([0.3, 1.0])
FAR, NEAR = 10.0, 0.5


@ft.cache
def rods():
    return jd.robots.double_pendulum()


def swing(solver, dt, bound=FAR, ts=TS):
    """A double pendulum whose second joint rebounds at an upper bound."""
    stop = Event(Coordinate(1, jnp.array(bound)), Rebound(1, jnp.array(0.8)), direction=1)
    return simulate(rods(), *START, ts, dt=dt, solver=solver, events=(stop,))


@ft.cache
def reference(bound):
    """Steps of a millisecond of the fifth order."""
    return swing(diffrax.Tsit5(), 1e-3, bound)


def order_of(steps, errors):
    return np.log(errors[0] / errors[1]) / np.log(steps[1] / steps[0])


def is_of_order(observed, order):
    """With tolerance for higher-order terms, which matter for the fifth order at steps well above rounding."""
    return order - 0.3 < observed < order + (0.3 if order < 5 else 0.9)


@pytest.mark.slow("tsit5")
@pytest.mark.parametrize(("solver", "steps", "order"), SOLVERS)
def test_order_on_vector_spaces_and_across_an_impact(solver, steps, order):
    for bound, impacts in ((FAR, 0), (NEAR, 1)):
        runs = [swing(solver, 0.5 / n, bound) for n in steps]
        assert all(int(r.status) == 0 and int(r.events.count) == impacts for r in runs)
        assert is_of_order(order_of(steps, [distance(rods(), r, reference(bound)) for r in runs]), order)


@ft.cache
def top():
    """A body on a ball joint away from its centre of mass."""
    body = box((0.3, 0.2, 0.1), mass=2.0).moved((0.1, 0, -0.2))
    return jd.ModelBuilder().add_link("body", "world", Spherical(), body).build()


def spin(solver, dt, ts=TS):
    return simulate(top(), *state(top()), ts, dt=dt, solver=solver, max_steps=100_100)


@pytest.mark.slow("semi-implicit", "tsit5")
@pytest.mark.parametrize(("solver", "steps", "order"), SOLVERS)
def test_order_on_manifolds(solver, steps, order):
    exact = spin(diffrax.Tsit5(), 1e-3)
    runs = [spin(solver, 0.5 / n) for n in steps]
    assert is_of_order(order_of(steps, [distance(top(), r, exact) for r in runs]), order)
    np.testing.assert_allclose(np.linalg.norm(runs[-1].q, axis=-1), 1, atol=1e-13)
    # rows between the steps, which Tsit5 interpolates with the fourth order
    if isinstance(solver, diffrax.Tsit5):
        between = [np.abs(jd.difference(top(), exact.q[1], r.q[1])).max() for r in runs]
        assert order_of(steps, between) > 3.5


@pytest.mark.slow
def test_quaternions_keep_their_length_for_a_hundred_thousand_steps():
    tr = spin(SemiImplicitEuler(), 1e-3, 200 * TS)
    assert int(tr.status) == 0 and int(tr.num_steps) == 100_000
    np.testing.assert_allclose(np.linalg.norm(tr.q, axis=-1), 1, atol=1e-12)


@pytest.mark.exhaustive
def test_variational_solver_conserves_momentum_and_bounds_the_energy_error():
    m = eqx.tree_at(lambda m: m.gravity, floating(), jnp.zeros(3))
    q, v = state(m)
    tr = simulate(m, q, v, jnp.linspace(0, 2, 5), dt=5e-3, solver=Variational())
    np.testing.assert_allclose(tr.momentum, np.broadcast_to(tr.momentum[0], tr.momentum.shape), atol=1e-11)
    p = jd.robots.double_pendulum()
    tr = simulate(p, jnp.array([0.4, -0.9]), jnp.zeros(2), jnp.linspace(0, 200, 401), dt=0.02, solver=Variational())
    error = np.abs(tr.energy - tr.energy[0])
    assert error.max() < 0.05 and error[-100:].max() < 2 * error[1:101].max()


@pytest.mark.exhaustive
@pytest.mark.parametrize("n", [2, 4])
def test_energy_drift_of_chains_is_of_fifth_order(n):
    m = jd.robots.chain(n, length=0.5, mass=0.5)
    q, v = 0.5 * jnp.ones(n), jnp.zeros(n)
    drifts = []
    for dt in (0.01, 0.005):
        tr = simulate(m, q, v, jnp.linspace(0, 1, 11), dt=dt)
        drifts.append(np.abs(tr.energy - tr.energy[0]).max())
    assert np.log2(drifts[0] / drifts[1]) > 4.5 and drifts[1] < 1e-7
