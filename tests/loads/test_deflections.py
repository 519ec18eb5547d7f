"""Deflections against closed forms, and against Castigliano's theorem."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn._errors import ModelError
from jaxdyn.beams import Beam, Material, Rectangle, Round, Tube
from jaxdyn.loads import internal_loads
from tests.loads._cases import ALUMINIUM, cantilever, deflections_at, spatial_arm, states

NONE = jnp.zeros(0)
LIGHT = Material(1e-9, 70e9, 27e9)
TUBE = Tube(0.030, 0.026)


def bend(beam: Beam, force=(0.0, 0.0, 0.0), moment=(0.0, 0.0, 0.0), **options):
    """Deflections of a clamped beam under a force and a moment at its tip, and its own weight."""
    arm = jnp.array([1.0, 0, 0]) * beam.length
    wrench = jnp.concatenate([jnp.asarray(moment) + jnp.cross(arm, jnp.asarray(force)), jnp.asarray(force)])
    return deflections_at(cantilever(beam), {"arm": beam}, NONE, NONE, NONE, wrench[None], **options)


@pytest.mark.slow
def test_tip_force():
    """`d = F l^3 / 3 E I` and `th = F l^2 / 2 E I`, along the beam `F s^2 (3 l - s) / 6 E I`."""
    x = bend(Beam(TUBE, LIGHT, 0.8), (0.0, 0.0, 50.0))
    ei = 70e9 * 2.772644012e-7
    np.testing.assert_allclose(x.displacement("tip")[2], 0.4396697209e-3, rtol=1e-7)
    np.testing.assert_allclose(x.rotation_vector("tip"), [0, -50 * 0.8**2 / (2 * ei), 0], rtol=1e-7, atol=1e-18)
    s = np.asarray(x.s[0])
    np.testing.assert_allclose(
        x.section_translation[0, :, 2], 50 * s**2 * (3 * 0.8 - s) / (6 * ei), rtol=1e-7, atol=1e-18
    )
    np.testing.assert_allclose(x.points[0], np.stack([s, 0 * s, 0 * s], 1), atol=1e-15)


def test_own_weight():
    """`d = w l^4 / 8 E I` and `th = w l^3 / 6 E I`."""
    x = bend(Beam(TUBE, ALUMINIUM, 0.8))
    w, ei = 2700 * 7.037167544e-4 * 9.81, 70e9 * 2.772644012e-7
    np.testing.assert_allclose(x.displacement("tip")[2], -0.0491709355e-3, rtol=1e-8)
    np.testing.assert_allclose(x.rotation_vector("tip")[1], w * 0.8**3 / (6 * ei), rtol=1e-8)


@pytest.mark.slow
def test_torsion_stretch_and_shear():
    """`T l / G J_t`, `N l / E A`, `V l / k G A` beside bending, and both principal axes of a rectangle."""
    bar = Rectangle(0.02, 0.05)
    p = bar.properties()
    x = bend(Beam(bar, LIGHT, 0.8), (900.0, 30.0, 50.0), (7.0, 0.0, 0.0))
    np.testing.assert_allclose(x.rotation_vector("tip")[0], 7 * 0.8 / (27e9 * p.torsion_constant), rtol=1e-7)
    bending = [30 * 0.8**3 / (3 * 70e9 * p.second_moment_z), 50 * 0.8**3 / (3 * 70e9 * p.second_moment_y)]
    np.testing.assert_allclose(x.displacement("tip"), [900 * 0.8 / (70e9 * p.area), *bending], rtol=1e-7)
    shear = bend(Beam(bar, LIGHT, 0.8), (900.0, 30.0, 50.0), has_shear=True).displacement("tip") - x.displacement("tip")
    k = bar.shear_coefficients(LIGHT.poisson_ratio)
    np.testing.assert_allclose(shear[1:], np.array([30, 50]) * 0.8 / (k * 27e9 * p.area), rtol=1e-5)


@pytest.mark.slow
def test_taper():
    """A cone under a tip force: `d = 64 F l^3 / (3 pi E d_0^3 d_l)`, with diameters at clamp and tip (Roark)."""
    x = bend(Beam(Round(0.02), LIGHT, 0.8, Round(0.01)), (0.0, 0.0, 50.0))
    np.testing.assert_allclose(
        x.displacement("tip")[2], 64 * 50 * 0.8**3 / (3 * np.pi * 70e9 * 0.04**3 * 0.02), rtol=1e-6
    )


def listed(beams) -> tuple[Beam, ...]:
    return beams if isinstance(beams, tuple) else (beams,)


def strain_energy(model, beams, q, v, a, external):
    """`1/2 int N^2 / E A + T^2 / G J_t + M_y^2 / E I_y + M_z^2 / E I_z ds` by the trapezoidal rule."""
    loads = internal_loads(model, beams, q, v, a, external, sections=401)
    energy = 0.0
    for row, beam in enumerate(beam for name in ("bent", "cone", "bar") for beam in listed(beams[name])):
        n = jax.vmap(lambda s, beam=beam: beam.section_at(s).properties())(loads.s[row])
        e, g = beam.material.youngs_modulus, beam.material.shear_modulus
        stiffness = [e * n.area, g * n.torsion_constant, e * n.second_moment_y, e * n.second_moment_z]
        squares = jnp.concatenate([loads.force[row, :, :1], loads.moment[row]], 1) ** 2
        energy += jnp.trapezoid((squares / jnp.stack(stiffness, 1)).sum(1), loads.s[row]) / 2
    return energy


@pytest.mark.slow
def test_displacement_of_a_tool_by_castigliano():
    """The displacement of a tool is the derivative of the strain energy with respect to a force there, in motion."""
    model, beams = spatial_arm()
    q, v, a, external = (x[0] for x in states(model, 1))
    bar = model.link_index("bar")
    arm = model.frames.translation[0]

    def energy(wrench):
        about_origin = jnp.concatenate([wrench[:3] + jnp.cross(arm, wrench[3:]), wrench[3:]])
        return strain_energy(model, beams, q, v, a, external.at[bar].add(about_origin))

    slopes = jax.jit(jax.grad(energy))(jnp.zeros(6))
    x = deflections_at(model, beams, q, v, a, external)
    turn = jd.frame_pose(model, q, "bar").rotation
    tolerance = 1e-5  # of the trapezoidal rule
    np.testing.assert_allclose(x.rotation_vector("tool") @ turn, slopes[:3], rtol=tolerance)
    np.testing.assert_allclose(x.displacement("tool") @ turn, slopes[3:], rtol=tolerance)


@pytest.mark.slow
def test_links_and_frames_move_with_the_beams_that_carry_them():
    """A link and its origin move with the point of the parent to which it is attached; its frames with its own beam."""
    model, beams = spatial_arm()
    q, v, a, external = (x[0] for x in states(model, 1))
    x = deflections_at(model, beams, q, v, a, external)
    assert x.names == (*model.link_names, "tool") and x.links == ("bent", "bent", "cone", "bar")
    np.testing.assert_array_equal(x.displacement("bent"), 0)
    np.testing.assert_allclose(x.displacement("cone"), x.section_translation[1, -1], rtol=1e-10)
    np.testing.assert_allclose(x.rotation_vector("cone"), x.section_rotation[1, -1], rtol=1e-10)
    np.testing.assert_allclose(x.rotation_vector("cone"), x.section_rotation[2, 0], rtol=1e-10)
    tool = jd.frame_pose(model, q, "tool").translation
    moved = x.section_translation[3, -1] + np.cross(x.section_rotation[3, -1], tool - x.points[3, -1])
    np.testing.assert_allclose(x.displacement("tool"), moved, rtol=1e-10)
    with pytest.raises(ModelError, match="no link or frame is called 'hand'"):
        x.displacement("hand")
