"""Theorem 1 and lemma 1: rates of configuration and momentum, and gradients with their stated errors."""

import functools as ft

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
    """`T = c + A cos(beta_2 + phi)` for two hinges: the errors are below A times the bound for a frequency of 1."""
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


def test_joints_without_rates_of_coordinates_are_refused():
    m = model("floating")
    zero = jnp.zeros(m.nv)
    for f in (momentum_rates, hamilton_equations):
        with pytest.raises(jd.ModelError, match="'l0_joint' is a Free"):
            f(m, state("floating")[0], zero, zero)
