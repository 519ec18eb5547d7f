"""Quantities of beam theory against closed forms, solids and derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import spatial
from jaxdyn._errors import ArgumentError
from jaxdyn.beams import Beam, Material, Profile, Rectangle, Round, SectionProperties, Tube

STEEL = Material.isotropic(7850.0, 210e9, 0.3, yield_strength=235e6, retardation_time=1e-4)


def test_tube():
    tube = Tube(0.030, 0.026).properties()
    np.testing.assert_allclose(tube.area, 7.037167544e-4, rtol=1e-9)
    np.testing.assert_allclose(tube.second_moment_y, 2.772644012e-7, rtol=1e-9)
    np.testing.assert_allclose(tube.torsion_constant, 2 * tube.second_moment_z)


def test_a_tube_without_bore_is_round():
    tube, solid = Tube(0.02, 0.0), Round(0.02)
    for x, y in zip(jax.tree.leaves(tube.properties()), jax.tree.leaves(solid.properties()), strict=True):
        np.testing.assert_allclose(x, y)
    np.testing.assert_allclose(tube.shear_coefficients(0.3), solid.shear_coefficients(0.3))
    np.testing.assert_allclose(solid.shear_coefficients(0.3), 0.886363636, rtol=1e-8)


@pytest.mark.parametrize(("ratio", "beta"), [(1.0, 0.1405770), (2.0, 0.2286816), (10.0, 0.3123250)])
def test_torsion_constant_of_rectangles(ratio, beta):
    """`J_t = beta a b^3`, beta from the series with 2,000 terms."""
    n = np.arange(1, 4000, 2)
    series = 1 / 3 - 64 / (np.pi**5 * ratio) * np.sum(np.tanh(n * np.pi * ratio / 2) / n**5)
    np.testing.assert_allclose(series, beta, rtol=1e-6)
    for section in (Rectangle(0.01, 0.01 * ratio), Rectangle(0.01 * ratio, 0.01)):
        np.testing.assert_allclose(section.properties().torsion_constant, series * 0.01 * ratio * 0.01**3, rtol=1e-12)


def test_derivative_of_the_torsion_constant_of_a_square():
    """`J_t(b, h) = J_t(h, b)`, so the derivatives with respect to both edges agree; J_t is of degree four."""
    db, dh = jax.grad(lambda b, h: Rectangle(b, h).properties().torsion_constant, argnums=(0, 1))(0.02, 0.02)
    np.testing.assert_allclose(db, dh)
    np.testing.assert_allclose(0.02 * (db + dh), 4 * Rectangle(0.02, 0.02).properties().torsion_constant, rtol=1e-12)


def test_inertia_of_uniform_beams_is_that_of_solids():
    turn = spatial.rpy_to_matrix(jnp.array([0.3, -0.2, 0.5]))
    place = spatial.Pose(turn, [0.1, 0.2, 0.3])
    box = Beam(Rectangle(0.02, 0.03), STEEL, 0.5, placement=place).inertia()
    solid = spatial.box([0.5, 0.02, 0.03], density=7850.0).moved([0.25, 0.0, 0.0]).moved([0.1, 0.2, 0.3], turn)
    for x, y in zip(jax.tree.leaves(box), jax.tree.leaves(solid), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-15)
    rod = Beam(Round(0.02), STEEL, 0.5).inertia()
    np.testing.assert_allclose(
        jnp.sort(jnp.diagonal(rod.inertia)),
        jnp.sort(jnp.diagonal(spatial.cylinder(0.02, 0.5, density=7850.0).inertia)),
        rtol=1e-12,
    )


def test_inertia_of_a_cone_and_of_its_parts():
    """A solid cone: `m = rho pi r^2 l / 3`, centre at l / 4 from the base, `I = 3 m r^2 / 10` about its axis."""
    cone = Beam(Round(0.03), STEEL, 0.4, Round(0.0))
    whole = cone.inertia()
    np.testing.assert_allclose(whole.mass, 7850 * np.pi * 0.03**2 * 0.4 / 3, rtol=1e-12)
    np.testing.assert_allclose(whole.com, [0.1, 0, 0], atol=1e-15)
    np.testing.assert_allclose(whole.inertia[0, 0], 0.3 * whole.mass * 0.03**2, rtol=1e-12)
    np.testing.assert_allclose(whole.inertia[1, 1], whole.mass * (3 / 20 * 0.03**2 + 3 / 80 * 0.4**2), rtol=1e-12)
    parts = cone.inertia(0.0, 0.15) + cone.inertia(0.15)
    for x, y in zip(jax.tree.leaves(parts), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(cone.section_at(0.1).properties().second_moment_y, np.pi / 4 * 0.0225**4, rtol=1e-12)


def test_materials():
    np.testing.assert_allclose(STEEL.poisson_ratio, 0.3)
    for material in (Material.steel(), Material.aluminium()):
        assert 0.25 < material.poisson_ratio < 0.35
        assert material.retardation_time == 0


def test_sections_given_by_numbers():
    section = Profile(SectionProperties(1e-3, 2e-7, 1e-7, 5e-8), [0.8, 0.7])
    np.testing.assert_allclose(section.shear_coefficients(0.3), [0.8, 0.7])
    np.testing.assert_allclose(Beam(section, STEEL, 1.0).inertia().mass, 7.85)


def test_refused_beams():
    with pytest.raises(ArgumentError, match="Round at its start and a Tube at its end"):
        Beam(Round(0.01), STEEL, 1.0, Tube(0.01, 0.005))
