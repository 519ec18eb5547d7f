"""Redundant constraints: values and derivatives near and at singular configurations, and with permanent redundancy."""

import functools as ft

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.constraints import evaluation as ev
from jaxdyn.simulation import System

RATE = 3.5 * 9.81 / 3  # `3 th'' = 3.5 g sin th` of two parallelograms, see tests/robots/test_linkages.py
FLAT = np.pi / 2


@ft.cache
def parallelograms():
    model = jd.robots.n_four_bar(2)
    turn = jnp.array([-1.0 if name.startswith("bar") else 1.0 for name in model.link_names])
    return model, jc.described_constraints(model), turn


@ft.cache
def _acceleration_program():
    model, loops, turn = parallelograms()

    @jax.jit
    def both(angle, speed):
        f = lambda angle, speed: jc.constrained_dynamics(model, loops, angle * turn, speed * turn, jnp.zeros(5))
        d, slope = jax.jvp(f, (angle, speed), (jnp.ones(()), jnp.zeros(())))
        slow = jax.jvp(f, (angle, speed), (jnp.zeros(()), jnp.ones(())))[1]
        return d, slope.a, slope.multipliers, slow.a

    return both


@pytest.mark.exhaustive
@pytest.mark.parametrize("aside", [0.3, 1e-3, -1e-3, 1e-5])
def test_near_the_flat_configuration(aside):
    """The closed form of the acceleration and its derivatives, up to the conditioning of A."""
    d, slope, pull, slow = _acceleration_program()(FLAT + aside, 2.0)
    turn, lost = parallelograms()[2], 1e-16 / abs(aside)
    assert int(d.rank) == 4 and int(d.status) == jc.ConstraintStatus.SOLVED
    assert_allclose(d.a, RATE * np.sin(FLAT + aside) * turn, atol=1e-12 + 100 * lost)
    assert_allclose(slope, RATE * np.cos(FLAT + aside) * turn, atol=1e-11 + 100 * lost / abs(aside))
    assert_allclose(slow, 0, atol=1e-10 + 1000 * lost)
    assert np.isfinite(d.multipliers).all() and np.isfinite(pull).all()


@pytest.mark.slow
@pytest.mark.parametrize("speed", [0.0, 2.0])
def test_in_the_flat_configuration(speed):
    """The acceleration nearest, in the metric of M, to the unconstrained one under two of four rows (lstsq)."""
    model, loops, turn = parallelograms()
    d, slope, pull, slow = _acceleration_program()(FLAT, speed)
    assert int(d.rank) == 2 and int(d.status) == jc.ConstraintStatus.SOLVED
    q, v = FLAT * turn, speed * turn
    x = ev.constraint_kinematics(model, 0.0, q, v)
    a, gamma = (
        np.asarray(ev.linearise_constraints(model, loops, x)[0]),
        np.asarray(ev.acceleration_bias(model, loops, x)),
    )
    root = np.linalg.cholesky(jd.mass_matrix(model, q))
    free = jd.forward_dynamics(model, q, v, jnp.zeros(5))
    scaled = np.linalg.solve(root, a.T).T
    want = free + np.linalg.solve(root.T, np.linalg.lstsq(scaled, -gamma - a @ free, rcond=1e-8)[0])
    assert_allclose(d.a, want, atol=1e-10)
    shortest = np.linalg.lstsq(a.T, np.asarray(jd.mass_matrix(model, q) @ (want - free)), rcond=1e-8)[0]
    assert_allclose(d.multipliers, shortest, atol=1e-10)
    assert all(np.isfinite(x).all() for x in (slope, pull, slow))


@pytest.mark.exhaustive
def test_simulation_through_the_flat_configuration():
    """The final state and its derivative with respect to the initial speed, against the closed-form pendulum."""
    model, loops, turn = parallelograms()
    times = jnp.array([0.0, 0.4])

    @jax.jit
    def end(speed):
        system = System(model, (), jc.ConstrainedMotion(loops))
        forward = diffrax.ForwardMode()
        path = jd.simulate(system, 1.2 * turn, speed * turn, times, dt=0.01, adjoint=forward, max_steps=64)
        return path.q[-1], path.status

    (q, status), (slope, _) = jax.jvp(lambda s: end(s), (jnp.array(1.5),), (jnp.ones(()),))
    rate = lambda t, y: [y[1], RATE * np.sin(y[0]), y[3], RATE * np.cos(y[0]) * y[2]]
    want = solve_ivp(rate, (0, 0.4), [1.2, 1.5, 0, 1], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    assert want[0] > FLAT + 0.3
    assert int(status) == jd.SimulationStatus.FINISHED
    assert_allclose(q, want[0] * turn, atol=1e-6)
    assert_allclose(slope, want[2] * turn, atol=1e-5)


@pytest.mark.exhaustive
def test_derivatives_of_a_linkage_with_permanent_redundancy():
    """Bricard's linkage: with respect to efforts, masses, gravity, and along its motion (to third order)."""
    model = jd.robots.bricard()
    loop = jc.described_constraints(model)
    still, tau = jnp.zeros(5), jnp.array([0.5, -1.0, 0.3, 0.8, 0.1])
    solve = jax.jit(jc.constrained_dynamics)
    v = jax.jit(jc.impulse)(model, loop, still, jnp.array([1.0, 0.3, -0.2, 0.1, 0.4])).v
    a = solve(model, loop, still, v, tau).a
    way = lambda x: jnp.sin(1.0 + jnp.arange(x.size))

    def score(s):
        own = lambda m: (m.links.mass, m.gravity)
        m = eqx.tree_at(own, model, [x + k * way(x) for x, k in zip(own(model), s[2:], strict=True)])
        q = s[0] * v + s[0] ** 2 / 2 * a
        d = jc.constrained_dynamics(m, loop, q, v + s[0] * a, tau + s[1] * way(tau))
        return d.a @ jnp.array([1.0, -0.5, 0.3, 0.8, -1.2]) + d.multipliers @ way(d.multipliers), d.rank

    h = 3e-4
    points = jnp.concatenate([jnp.zeros((1, 4)), h * jnp.eye(4), -h * jnp.eye(4)])
    (value, rank), slopes = jax.jit(jax.vmap(jax.value_and_grad(score, has_aux=True)))(points)
    assert np.all(rank == 4)
    want = (value[1:5] - value[5:]) / (2 * h)
    assert np.abs(want).min() > 1e-3
    assert_allclose(slopes[0], want, rtol=1e-5)
