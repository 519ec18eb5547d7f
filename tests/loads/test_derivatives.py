"""Derivatives of loads with respect to dimensions and materials, batches, and precision."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.beams import Beam, Material, Tube
from jaxdyn.joints import Fixed, Revolute
from jaxdyn.loads import buckling_utilisation, deflections, internal_loads, stresses, worst_case
from jaxdyn.model import ModelBuilder
from jaxdyn.spatial import point_mass
from tests.loads._cases import DOWN, spatial_arm, states

#: outer radius, inner radius at the end, length, density, Young's modulus, yield strength, place of the motor
NUMBERS = jnp.array([0.03, 0.02, 0.8, 2700.0, 70e9, 250e6, 0.31])
STATE = jnp.array([0.7]), jnp.array([2.0]), jnp.array([5.0])


def design(numbers):
    """Worst utilisation, tip displacement and buckling of a swinging tapered tube with a motor, from its dimensions."""
    outer, inner, length, density, modulus, strength, place = numbers
    material = Material.isotropic(density, modulus, 0.3, yield_strength=strength)
    beam = Beam(Tube(outer, 0.022), material, length, Tube(0.8 * outer, inner), DOWN)
    builder = ModelBuilder().add_link("arm", "world", Revolute((0.2, 1.0, 0.0)), beam.inertia())
    builder.add_link("motor", "arm", Fixed(), point_mass(1.5), translation=(0.05, 0.02, -place))
    model = builder.add_frame("tip", "arm", translation=(0.0, 0.0, -length)).build()
    beams = {"arm": beam}
    push = jnp.zeros((2, 6), numbers.dtype).at[0, 5].set(80.0)
    loads = internal_loads(model, beams, *STATE, push, sections=5)
    stress = stresses(beams, loads)
    bent = deflections(model, beams, *STATE, push, sections=5)
    worst = worst_case(stress.utilisation, stress)
    return jnp.concatenate(
        [
            jnp.stack([worst.value, stress.safety_factor, loads.bending.sum()]),
            1e3 * bent.displacement("tip"),
            buckling_utilisation(beams, loads),
        ]
    )


@functools.cache
def jacobian():
    return jax.jit(jax.jacfwd(design)), jax.jit(design)


@pytest.mark.slow
def test_derivatives_with_respect_to_dimensions_and_materials():
    slopes, values = jacobian()
    exact = slopes(NUMBERS) * NUMBERS
    relative = np.diag(np.full(len(NUMBERS), 1e-5))
    rows = [values(NUMBERS * (1 + h)) - values(NUMBERS * (1 - h)) for h in relative]
    np.testing.assert_allclose(exact, np.stack(rows, 1) / 2e-5, rtol=1e-6, atol=1e-8)
    assert (np.abs(np.asarray(exact)).max(0) > 1e-3).all()


@pytest.mark.exhaustive
def test_reverse_mode_and_batches():
    slopes, values = jacobian()
    weights = jnp.arange(1.0, 8.0)
    gradient = jax.jit(jax.grad(lambda x: weights @ design(x)))(NUMBERS)
    np.testing.assert_allclose(gradient * NUMBERS, weights @ slopes(NUMBERS) * NUMBERS, rtol=1e-9, atol=1e-12)
    rng = np.random.default_rng(0)
    batch = NUMBERS * (1 + 0.1 * rng.uniform(-1, 1, (3, len(NUMBERS))))
    together = jax.jit(jax.vmap(design))(batch)
    for row, numbers in zip(together, batch, strict=True):
        np.testing.assert_allclose(row, values(numbers), rtol=1e-9)


@pytest.mark.slow
def test_single_precision():
    """Results in float32 agree with those in float64, and stay in float32."""
    model, beams = spatial_arm()
    state = [x[0] for x in states(model, 1)]
    single = lambda tree: jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), tree)

    @jax.jit
    def results(model, beams, q, v, a, external):
        loads = internal_loads(model, beams, q, v, a, external, sections=5)
        bent = deflections(model, beams, q, v, a, external, sections=5)
        return loads, stresses(beams, loads), bent, buckling_utilisation(beams, loads)

    coarse = results(*single((model, beams, *state)))
    for x, y in zip(jax.tree.leaves(coarse), jax.tree.leaves(results(model, beams, *state)), strict=True):
        assert x.dtype == jnp.float32
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-5 * np.abs(y).max())


@pytest.mark.exhaustive
def test_a_link_at_rest_without_gravity_has_finite_derivatives():
    """All loads are zero, where directions of moments are undefined."""
    model, beams = spatial_arm()
    zero = jnp.zeros(model.nv)

    def total(gravity):
        still = jd.Model(**{**vars(model), "gravity": gravity})
        loads = internal_loads(still, beams, zero, zero, zero, sections=3)
        stress = stresses(beams, loads)
        return jnp.stack([stress.von_mises.sum(), loads.bending.sum(), loads.shear.sum(), stress.utilisation.max()])

    values, slopes = jax.jit(lambda g: (total(g), jax.jacfwd(total)(g)))(jnp.zeros(3))
    assert (values == 0).all() and np.isfinite(slopes).all()
