"""Theorem 1 and lemma 1: rates of configuration and momentum, and error bounds of numerical gradients."""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.formulations import (
    ExactGradient,
    ThreePointGradient,
    TwoPointGradient,
    hamilton_equations,
    hamiltonian,
    momentum_rates,
    planar_links,
    relative_mass_matrix,
)
from tests.formulations._cases import TOLERANCE, model, state
from tests.oracles import relative_error

jit = ft.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@pytest.mark.parametrize("step", [1e-2, 1e-3])
@pytest.mark.parametrize("gradient", [TwoPointGradient, ThreePointGradient])
def test_lemma_1(gradient, step):
    """The error for `sin(a q)` stays below the bound of equation 9, and comes within 1 % of it."""
    rule, q = gradient(step), np.linspace(-np.pi, np.pi, 401)
    for a in (0.5, 1.0, 3.0):
        slope = jax.vmap(lambda x, a=a: rule(lambda y: jnp.sin(a * y[0]), x[None])[0])(q)
        worst = np.abs(np.asarray(slope) - a * np.cos(a * q)).max()
        rounding = 4e-16 / step
        assert 0.99 * rule.bound(a) < worst + rounding
        assert worst < rule.bound(a) + rounding


@pytest.mark.slow
def test_gradients_of_a_kinetic_energy():
    """`T = c + A cos(beta_2 + phi)` for two revolute joints: errors are below A times the bound for frequency 1."""
    links = planar_links(model("hinges"))
    q, v, _, _ = state("hinges")
    energy = lambda x: v @ relative_mass_matrix(links, x) @ v / 2
    exact = ExactGradient()(energy, q)
    around = jax.vmap(lambda x: energy(q.at[1].set(x)))(jnp.linspace(0, 2 * np.pi, 400))
    amplitude = (around.max() - around.min()) / 2
    assert amplitude > 1e-2
    for rule in (TwoPointGradient(1e-3), ThreePointGradient(1e-2)):
        error = np.abs(rule(energy, q) - exact)
        assert 0 < error.max() < 1.01 * amplitude * rule.bound(1.0)
    assert ExactGradient().bound(3.0) == 0


@jit
def _flows(m, q, v, tau, external):
    mass, rate = jax.jvp(lambda q: jd.mass_matrix(m, q) @ v, (q,), (v,))
    p = mass
    moved = rate + jd.mass_matrix(m, q) @ jd.forward_dynamics(m, q, v, tau, external)
    energy = jd.kinetic_energy(m, q, v) + jd.potential_energy(m, q)
    rough = momentum_rates(m, q, p, tau, external, gradient=TwoPointGradient(1e-4))
    return (
        moved,
        momentum_rates(m, q, p, tau, external),
        hamilton_equations(m, q, p, tau, external),
        (hamiltonian(m, q, p), energy),
        rough,
    )


@jit
def _with_losses(m, q, v, tau):
    p = jd.mass_matrix(m, q) @ v
    rate = jax.jvp(lambda q: jd.mass_matrix(m, q) @ v, (q,), (v,))[1]
    moved = rate + jd.mass_matrix(m, q) @ jd.forward_dynamics(m, q, v, tau + jd.passive_forces(m, q, v))
    return (
        moved,
        momentum_rates(m, q, p, tau, passive=jd.passive_forces)[1],
        hamilton_equations(m, q, p, tau, passive=jd.passive_forces)[1],
        momentum_rates(m, q, p, tau)[1],
    )


@pytest.mark.slow
def test_state_dependent_efforts():
    """Step 3 of theorem 1: damping, friction and springs, at the velocity that the function computes."""
    m, (q, v, tau, _) = model("hinges"), state("hinges")
    properties = {"damping": 0.3, "friction": 0.2, "stiffness": 0.7}
    for name, value in properties.items():
        where = lambda m, name=name: getattr(m.properties, name)
        m = eqx.tree_at(where, m, jnp.full_like(where(m), value))
    moved, momentum, hamilton, free = _with_losses(m, q, v, tau)
    assert relative_error(momentum, moved) < TOLERANCE
    assert relative_error(hamilton, moved) < TOLERANCE
    assert relative_error(free, moved) > 1e-2


def _field(m, x, tau):
    q, p = x[: m.nq], x[m.nq :]
    return jnp.concatenate(hamilton_equations(m, q, p, tau))


@jit
def _hamiltonian_gradient(m, x, tau):
    energy = lambda x: hamiltonian(m, x[: m.nq], x[m.nq :])
    return jax.grad(energy)(x), _field(m, x, tau), jax.jacfwd(lambda x: _field(m, x, tau))(x)


@pytest.mark.slow
def test_power_balance_and_symplectic_flow():
    """`dH/dt = qdot . tau`, and the linearised flow is symplectic: `J A` is symmetric, which preserves volume."""
    m, (q, v, tau, _) = model("hinges"), state("hinges")
    slope, field, jacobian = map(np.asarray, _hamiltonian_gradient(m, jnp.concatenate([q, v]), tau))
    np.testing.assert_allclose(slope @ field, field[:2] @ np.asarray(tau), rtol=1e-12)
    swap = np.kron([[0, 1], [-1, 0]], np.eye(2))
    np.testing.assert_allclose(swap @ jacobian, (swap @ jacobian).T, atol=1e-11)
    assert np.abs(jacobian).max() > 0.1


def _flow(field, x, *, step=0.005, count=100):
    def forward(x, _):
        a = field(x)
        b = field(x + step / 2 * a)
        c = field(x + step / 2 * b)
        d = field(x + step * c)
        return x + step / 6 * (a + 2 * b + 2 * c + d), None

    return jax.lax.scan(forward, x, None, length=count)[0]


@jit
def _flows_of_both(m, q, v):
    still = jnp.zeros_like(v)
    mass = lambda q: jd.mass_matrix(m, q)
    end = _flow(lambda x: _field(m, x, still), jnp.concatenate([q, mass(q) @ v]))
    newton = lambda x: jnp.concatenate([x[2:], jd.forward_dynamics(m, x[:2], x[2:], still)])
    other = _flow(newton, jnp.concatenate([q, v]))
    energy = hamiltonian(m, q, mass(q) @ v), hamiltonian(m, end[:2], end[2:])
    return end, jnp.concatenate([other[:2], mass(other[:2]) @ other[2:]]), energy


@pytest.mark.exhaustive
def test_flow_conserves_the_hamiltonian():
    """Half a second of Hamilton's equations equals half a second of forward dynamics, and conserves H."""
    m, (q, v, _, _) = model("hinges"), state("hinges")
    end, other, (before, after) = _flows_of_both(m, q, v)
    assert relative_error(end, other) < 1e-6  # of Runge and Kutta's steps
    assert abs(after - before) < 1e-6 * (1 + abs(before))
    assert np.abs(np.asarray(end[:2] - q)).max() > 0.1


@pytest.mark.slow
def test_rates_of_configuration_and_momentum():
    """The block F of theorem 1, and Hamilton's equations: `v = M^-1 p`, and `p'` is the derivative of `M v`."""
    m, (q, v, tau, external) = model("hinges"), state("hinges")
    moved, (rate, force), (hamilton_rate, hamilton_force), (h, energy), rough = _flows(m, q, v, tau, external)
    assert relative_error(rate, v) < TOLERANCE
    assert relative_error(force, moved) < TOLERANCE
    assert relative_error(hamilton_rate, v) < TOLERANCE
    assert relative_error(hamilton_force, moved) < TOLERANCE
    assert relative_error(h, energy) < TOLERANCE
    assert TOLERANCE < relative_error(rough[1], moved) < 1e-3


def test_joints_with_quasi_velocities_raise_an_error():
    m = model("floating")
    zero = jnp.zeros(m.nv)
    for f in (momentum_rates, hamilton_equations):
        with pytest.raises(jd.ModelError, match="'l0_joint' is a Free"):
            f(m, state("floating")[0], zero, zero)
