"""Stresses at the fibres of sections against closed forms, tables and a finite-difference torsion problem."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn._errors import ArgumentError
from jaxdyn.beams import Profile, Rectangle, Round, Tube

TUBE = Tube(0.030, 0.026)
ZERO = jnp.zeros(3)


def largest(section, force=(0.0, 0.0, 0.0), moment=(0.0, 0.0, 0.0)) -> np.ndarray:
    """Largest magnitudes of normal and shear stress."""
    return np.abs(section.fibre_stresses(jnp.asarray(force), jnp.asarray(moment))).max(0)


def test_bending_of_a_tube():
    """`sigma = M c / I`, whatever the direction of the moment."""
    np.testing.assert_allclose(largest(TUBE, moment=(0, 100.0, 0)), [10.819997037e6, 0], rtol=1e-9)
    np.testing.assert_allclose(largest(TUBE, moment=(0, 60.0, -80.0)), [10.819997037e6, 0], rtol=1e-9, atol=1e-6)


def test_axial_force_torsion_and_shear_of_circular_sections():
    area, i = TUBE.properties().area, TUBE.properties().second_moment_y
    np.testing.assert_allclose(
        largest(TUBE, force=(500.0, 0, 0), moment=(70.0, 0, 0)), [500 / area, 70 * 0.03 / (2 * i)]
    )
    np.testing.assert_allclose(largest(Round(0.01), force=(0, 30.0, 40.0)), [0, 4 / 3 * 50 / (np.pi * 1e-4)])
    thin = Tube(0.03, 0.03 - 1e-7)
    np.testing.assert_allclose(largest(thin, force=(0, 30.0, 40.0))[1], 2 * 50 / thin.properties().area, rtol=1e-5)
    # torsion and shear force add up on one side
    both = largest(TUBE, force=(0, 30.0, 40.0), moment=(70.0, 0, 0))[1]
    alone = largest(TUBE, force=(0, 30.0, 40.0))[1] + largest(TUBE, moment=(70.0, 0, 0))[1]
    np.testing.assert_allclose(both, alone)


def test_largest_normal_stress_of_a_circle_is_that_of_all_fibres():
    force, moment = jnp.array([300.0, 0, 0]), jnp.array([0.0, 20.0, -35.0])
    angle = np.linspace(0, 2 * np.pi, 100_001)
    y, z = 0.03 * np.cos(angle), 0.03 * np.sin(angle)
    p = TUBE.properties()
    around = 300 / p.area + (z * 20.0 + y * 35.0) / p.second_moment_y
    fibres = TUBE.fibre_stresses(force, moment)[:, 0]
    np.testing.assert_allclose([fibres.max(), fibres.min()], [around.max(), around.min()], rtol=1e-8)


def test_rectangles_in_bending_and_shear():
    """`sigma = 6 M / b h^2` in the corners and `tau = 3 V / 2 A` at the middles of the sides."""
    bar = Rectangle(0.02, 0.05)
    np.testing.assert_allclose(largest(bar, moment=(0, 100.0, 0)), [600 / (0.02 * 0.05**2), 0])
    np.testing.assert_allclose(largest(bar, moment=(0, 0, 100.0)), [600 / (0.05 * 0.02**2), 0])
    oblique = 600 * (1 / (0.02 * 0.05**2) + 1 / (0.05 * 0.02**2))
    np.testing.assert_allclose(largest(bar, moment=(0, -100.0, 100.0))[0], oblique)
    np.testing.assert_allclose(largest(bar, force=(0, 0, 40.0)), [0, 1.5 * 40 / 1e-3])


def torsion_by_differences(width: float, height: float, n: int) -> tuple[float, float, float]:
    """J_t and `tau J_t / T` at the middles of the sides along z and y, from Prandtl's stress function on a grid."""
    y, z = np.linspace(0, width, n + 1), np.linspace(0, height, n + 1)
    second = lambda h: (2 * np.eye(n - 1) - np.eye(n - 1, k=1) - np.eye(n - 1, k=-1)) / h**2
    (ly, vy), (lz, vz) = (np.linalg.eigh(second(x[1])) for x in (y, z))
    source = vy.T @ (2 * np.ones((n - 1, n - 1))) @ vz
    phi = np.pad(vy @ (source / (ly[:, None] + lz[None])) @ vz.T, 1)
    slope = lambda f, h: (4 * f[1] - f[2]) / (2 * h)
    return 2 * phi.sum() * y[1] * z[1], slope(phi[:, n // 2], y[1]), slope(phi[n // 2], z[1])


@pytest.mark.parametrize(("width", "height"), [(0.02, 0.02), (0.02, 0.05), (0.05, 0.02), (0.03, 0.031)])
def test_torsion_of_rectangles(width, height):
    """The stress function of Saint-Venant torsion, solved by differences."""
    constant, along_z, along_y = torsion_by_differences(width, height, 400)
    bar = Rectangle(width, height)
    np.testing.assert_allclose(bar.properties().torsion_constant, constant, rtol=1e-4)
    fibres = np.asarray(bar.fibre_stresses(ZERO, jnp.array([7.0, 0, 0])))
    np.testing.assert_allclose(
        fibres[4:, 1], 7 / constant * np.array([along_z, -along_z, -along_y, along_y]), rtol=2e-4
    )
    assert (fibres[:4] == 0).all()


@pytest.mark.slow
def test_shear_stress_of_a_square_in_torsion():
    """`tau = T / 0.208 a^3`, and derivatives with respect to both edges, which are equal by symmetry."""
    np.testing.assert_allclose(largest(Rectangle(0.02, 0.02), moment=(7.0, 0, 0))[1], 7 / (0.208 * 8e-6), rtol=1e-3)

    def shear(width, height, fibre):
        return Rectangle(width, height).fibre_stresses(ZERO, jnp.array([7.0, 0, 0]))[fibre, 1]

    along_z = jax.grad(shear, argnums=(0, 1))(0.02, 0.02, 4)
    along_y = jax.grad(shear, argnums=(1, 0))(0.02, 0.02, 7)
    np.testing.assert_allclose(along_z, along_y)
    h = 1e-7
    differences = [
        shear(0.02 + h, 0.02, 4) - shear(0.02 - h, 0.02, 4),
        shear(0.02, 0.02 + h, 4) - shear(0.02, 0.02 - h, 4),
    ]
    np.testing.assert_allclose(along_z, np.array(differences) / (2 * h), rtol=1e-6)


def test_profiles_bound_the_stresses_of_a_rectangle():
    bar = Rectangle(0.02, 0.05)
    loads = jnp.array([100.0, 20.0, -30.0]), jnp.array([5.0, 40.0, -20.0])
    modulus = 5.0 / largest(bar, moment=(5.0, 0, 0))[1]
    profile = Profile(bar.properties(), [2 / 3, 2 / 3], [0.01, 0.025], modulus)
    exact, bound = bar.fibre_stresses(*loads), profile.fibre_stresses(*loads)
    np.testing.assert_allclose(np.abs(exact[:, 0]).max(), np.abs(bound[:, 0]).max())
    assert np.abs(exact[:, 1]).max() < np.abs(bound[:, 1]).max()
    by_extent = Profile(bar.properties(), extents=[0.01, 0.025]).fibre_stresses(ZERO, jnp.array([5.0, 0, 0]))
    np.testing.assert_allclose(by_extent[:, 1], 5.0 * 0.025 / bar.properties().torsion_constant)
    with pytest.raises(ArgumentError, match="Profile without extents has no stresses"):
        Profile(bar.properties()).fibre_stresses(*loads)


@pytest.mark.slow
@pytest.mark.parametrize("section", [TUBE, Round(0.01), Rectangle(0.02, 0.05)], ids=lambda x: type(x).__name__)
def test_derivatives_are_finite_without_load(section):
    slopes = jax.jacfwd(lambda f, m: section.fibre_stresses(f, m), argnums=(0, 1))(ZERO, ZERO)
    assert all(np.isfinite(x).all() for x in slopes)
