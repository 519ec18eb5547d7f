"""Impacts with friction at one contact: closed form in the plane, integration in space, energy, derivatives."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from jaxdyn.contact import Newton, Poisson, Stronge
from jaxdyn.contact.rigid import planar_impact, spatial_impact

#: of a double pendulum's tip at a wall, normal and tangential, and its rates before an impact
DELASSUS = np.array([[0.981134275472, 0.101163480896], [0.101163480896, 0.457532105281]])
RATE = np.array([-2.013772157722, 0.973330763851])


@ft.cache
def planar(law):
    return jax.jit(ft.partial(planar_impact, law()))


@ft.cache
def spatial(law):
    return jax.jit(ft.partial(spatial_impact, law()))


def random_impacts(count, seed=0):
    """Random Delassus matrices of a planar contact, rates, coefficients of friction and of restitution."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(count, 2, 2))
    delassus = half @ half.swapaxes(1, 2) + 0.05 * np.eye(2)
    rate = np.stack([-rng.uniform(0.1, 2, count), rng.normal(size=count)], 1)
    rate[::5, 1] = 0.0  # no slip before the impact
    return delassus, rate, rng.uniform(0, 2, count), rng.uniform(0, 1, count)


def kinetic_change(delassus, rate, impulse):
    return np.einsum("ni,ni->n", impulse, rate) + np.einsum("ni,nij,nj->n", impulse, delassus, impulse) / 2


def test_the_reference_impulses_of_a_double_pendulum():
    for mu, impulse in ((0.1, (2.073877423820, -0.207387742382)), (0.3, (2.118009505863, -0.635402851759))):
        assert_allclose(planar(Newton)(0.0, mu, mu, DELASSUS, RATE), impulse, atol=1e-10)
    sticks = planar(Newton)(0.0, 1.2, 1.2, DELASSUS, RATE)
    assert_allclose(RATE + DELASSUS @ sticks, 0, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("law", [Poisson, Stronge])
def test_an_impact_never_gains_energy(law):
    """100,000 random impacts; by Newton's law some of them do."""
    delassus, rate, mu, e = random_impacts(100_000)
    batch = jax.jit(jax.vmap(ft.partial(planar_impact, law())))
    impulse = np.asarray(batch(e, mu, mu, delassus, rate))
    assert np.isfinite(impulse).all()
    after = rate + np.einsum("nij,nj->ni", delassus, impulse)
    assert after[:, 0].min() > -1e-9
    assert np.max(np.abs(impulse[:, 1]) - mu * impulse[:, 0]) < 1e-9
    assert kinetic_change(delassus, rate, impulse).max() < 1e-9
    newton = np.asarray(jax.jit(jax.vmap(ft.partial(planar_impact, Newton())))(e, mu, mu, delassus, rate))
    assert kinetic_change(delassus, rate, newton).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("law", [Newton, Poisson, Stronge])
def test_an_impact_in_space_is_that_in_the_plane_where_nothing_leads_out_of_it(law):
    delassus, rate, mu, e = random_impacts(40, seed=1)
    for g, c, m, k in zip(delassus, rate, mu, e, strict=True):
        g3 = np.zeros((3, 3))
        g3[:2, :2], g3[2, 2] = g, 0.7
        flat, full = planar(law)(k, m, m, g, c), spatial(law)(k, m, m, g3, np.array([*c, 0.0]))
        assert_allclose(full, [*flat, 0.0], atol=2e-6 * (1 + np.abs(flat).max()))


@pytest.mark.slow
@pytest.mark.parametrize("law", [Newton, Poisson, Stronge])
def test_derivatives_of_an_impact_in_space(law):
    rng = np.random.default_rng(3)
    half = rng.normal(size=(3, 3))
    g = half @ half.T + 0.2 * np.eye(3)
    normal = lambda x: spatial_impact(law(), x[0], x[1], x[1], g, x[2:])[0]
    x = jnp.array([0.5, 0.4, -1.0, -0.4, 0.3])
    value, gradient = jax.jit(normal), jax.jit(jax.grad(normal))
    h = 1e-6
    differences = [(value(x.at[i].add(h)) - value(x.at[i].add(-h))) / (2 * h) for i in range(5)]
    assert_allclose(gradient(x), differences, atol=1e-7)


@pytest.mark.slow
def test_a_rod_dropped_on_a_floor():
    """A slender rod of unit mass and length at 45 and at 30 degrees, with speed 1 (closed form)."""
    for angle, e, p, up in ((np.pi / 4, 0.5, 0.6, -0.4), (np.pi / 6, 0.0, 0.307692307692308, -0.692307692307692)):
        gain = np.array(
            [[1 + 3 * np.cos(angle) ** 2, -3 * np.sin(angle) * np.cos(angle)], [0, 1 + 3 * np.sin(angle) ** 2]]
        )
        gain[1, 0] = gain[0, 1]
        impulse = planar(Newton)(e, 0.0, 0.0, gain, np.array([-1.0, 0.0]))
        assert_allclose(impulse[0], p, atol=1e-12)
        assert_allclose(-1 + impulse[0], up, atol=1e-12)
    a = np.pi / 4
    gain = np.array(
        [[1 + 3 * np.cos(a) ** 2, -3 * np.sin(a) * np.cos(a)], [-3 * np.sin(a) * np.cos(a), 1 + 3 * np.sin(a) ** 2]]
    )
    sticks = planar(Newton)(0.0, 0.7, 0.7, gain, np.array([-1.0, 0.0]))
    assert_allclose(np.abs(sticks), [0.625, 0.375], atol=1e-12)
    slides = planar(Newton)(0.0, 0.55, 0.55, gain, np.array([-1.0, 0.0]))
    assert abs(slides[1] / slides[0]) == pytest.approx(0.55)
