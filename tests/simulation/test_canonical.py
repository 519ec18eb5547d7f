"""Canonical momenta and derivatives of the Lagrangian against automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.joints import Fixed, Helical, Planar, Spherical, Universal
from jaxdyn.recursion import bodies
from jaxdyn.simulation.solvers._momenta import momentum_and_slope
from jaxdyn.spatial import box
from tests.simulation._cases import state


def robot():
    """Two branches on a planar base, with a joint whose subspace depends on its coordinates and a fixed link."""
    body = box((0.3, 0.2, 0.1), mass=2.0).moved((0.1, 0.2, 0.3))
    at = {"translation": (0.1, 0.0, 0.3)}
    b = jd.ModelBuilder()
    b.add_link("a", "world", Planar(), body)
    b.add_link("b", "a", Universal([1, 0, 0], [0, 1, 0]), body, **at)
    b.add_link("c", "b", Fixed(), body, **at)
    b.add_link("d", "a", Helical([0, 0, 1], 0.1), body, **at)
    b.add_link("e", "d", Spherical(), body, **at)
    return b.build()


@pytest.mark.exhaustive
def test_momentum_and_slope_of_the_lagrangian():
    m = robot()
    q, v = state(m)
    external = jnp.asarray(np.random.default_rng(3).normal(size=(m.num_links, 6)))
    lagrangian = lambda x: (
        jd.kinetic_energy(m, jd.integrate(m, q, x), v) - jd.potential_energy(m, jd.integrate(m, q, x))
    )
    zero = jnp.zeros(m.nv)
    load = jd.rnea(m, q, zero, zero) - jd.rnea(m, q, zero, zero, external)
    p, slope = momentum_and_slope(m, bodies(m), q, v, external)
    np.testing.assert_allclose(p, jd.mass_matrix(m, q) @ v, atol=1e-13)
    np.testing.assert_allclose(slope, jax.jit(jax.jacfwd(lagrangian))(zero) + load, atol=1e-12)
