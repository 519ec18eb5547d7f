"""Stresses, safety factors and buckling of beams against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn._errors import ArgumentError, ModelError
from jaxdyn.beams import Beam, Material, Rectangle, Round, Tube
from jaxdyn.loads import buckling_utilisation, internal_loads, stresses
from tests.loads._cases import ALUMINIUM, cantilever, loads_at, spatial_arm, states

NONE = jnp.zeros(0)
stresses_of = jax.jit(stresses)


def tip_loads(beam: Beam, force, sections=9):
    """Internal loads of a clamped beam under a force at its tip and its own weight."""
    model = cantilever(beam)
    wrench = jnp.concatenate([jnp.cross(jnp.array([beam.length, 0, 0]), jnp.asarray(force)), jnp.asarray(force)])
    return loads_at(model, {"arm": beam}, NONE, NONE, NONE, wrench[None], sections=sections)


def test_stresses_of_a_tube():
    """A moment of 100 N m at the clamp: 10.82 MPa of the yield strength of 250 MPa."""
    weightless = Material(1e-9, 70e9, 27e9, 250e6)
    beam = Beam(Tube(0.030, 0.026), weightless, 0.8)
    stress = stresses_of({"arm": beam}, tip_loads(beam, (0.0, 0.0, 125.0)))
    np.testing.assert_allclose(stress.normal[0, 0], 10.819997037e6, rtol=1e-9)
    np.testing.assert_allclose(stress.von_mises[0, 0], 10.819997037e6, rtol=1e-9)
    np.testing.assert_allclose(stress.safety_factor, 250 / 10.819997037, rtol=1e-9)
    s = np.asarray(stress.s[0])
    bending = stress.von_mises[0, 0] * (1 - s / 0.8)
    k = 4 / 3 * (0.03**2 + 0.03 * 0.026 + 0.026**2) / (0.03**2 + 0.026**2)
    shear = np.sqrt(3) * k * 125 / 7.037167544e-4
    np.testing.assert_allclose(stress.von_mises[0], np.maximum(bending, shear), rtol=1e-6)


def test_buckling():
    """`F_crit = pi^2 E I / (K l)^2`; a beam in tension does not buckle."""
    beam = Beam(Round(0.005), Material(1e-9, 210e9, 81e9), 0.6)
    critical = np.pi**2 * 210e9 * np.pi / 4 * 0.005**4 / (2 * 0.6) ** 2
    loads = tip_loads(beam, (-0.5 * critical, 0.0, 0.0))
    np.testing.assert_allclose(buckling_utilisation({"arm": beam}, loads), [0.5], rtol=1e-6)
    np.testing.assert_allclose(buckling_utilisation({"arm": beam}, loads, length_factor=1.0), [0.125], rtol=1e-6)
    assert buckling_utilisation({"arm": beam}, tip_loads(beam, (10.0, 0.0, 0.0))) == 0
    flat = Beam(Rectangle(0.002, 0.02), Material(1e-9, 210e9, 81e9), 0.6, Rectangle(0.001, 0.02))
    weakest = np.pi**2 * 210e9 * 0.02 * 0.001**3 / 12 / 1.2**2
    ratio = buckling_utilisation({"arm": flat}, tip_loads(flat, (-0.1, 0.0, 0.0)))
    np.testing.assert_allclose(ratio, [0.1 / weakest], rtol=1e-6)


@pytest.mark.slow
def test_beams_of_all_sections_and_of_many_states():
    """One call for several states equals the calls for each; utilisation is relative to each material."""
    model, beams = spatial_arm()
    q, v, a, external = states(model, 3)
    rows = [loads_at(model, beams, *(x[k] for x in (q, v, a, external))) for k in range(3)]
    batch = jax.tree.map(lambda *x: jnp.stack(x), *rows)
    together = stresses_of(beams, batch)
    assert together.von_mises.shape == batch.s.shape and together.safety_factor.shape == (3,)
    for k, row in enumerate(rows):
        alone = stresses_of(beams, row)
        np.testing.assert_allclose(together.von_mises[k], alone.von_mises, rtol=1e-12)
        np.testing.assert_allclose(together.safety_factor[k], 1 / (alone.von_mises / 250e6).max(), rtol=1e-12)
    by_sections = np.stack([np.asarray(x) for x in (together.normal, together.shear)])
    bound = np.sqrt(by_sections[0] ** 2 + 3 * by_sections[1] ** 2)
    assert (together.von_mises <= bound * (1 + 1e-12)).all()
    assert (together.von_mises >= np.maximum(by_sections[0], np.sqrt(3) * by_sections[1]) * (1 - 1e-12)).all()


def test_refused_beams():
    beam = Beam(Round(0.005), ALUMINIUM, 0.6)
    model, loads = cantilever(beam), tip_loads(beam, (0.0, 0.0, 0.0))
    with pytest.raises(ArgumentError, match="there are 1 beams on the links 'leg'"):
        stresses({"leg": beam}, loads)
    with pytest.raises(ModelError, match="no link is called 'leg'"):
        internal_loads(model, {"leg": beam}, NONE, NONE, NONE)
    with pytest.raises(ArgumentError, match="sections is 1, expected an int of at least 2"):
        internal_loads(model, {"arm": beam}, NONE, NONE, NONE, sections=1)


@pytest.mark.slow
def test_refused_objects(without_annotations):
    loads = tip_loads(Beam(Round(0.005), ALUMINIUM, 0.6), (0.0, 0.0, 0.0))
    beam = Beam(Round(0.005), ALUMINIUM, 0.6)
    for wrong, message in (
        ({}, "beams is empty"),
        (beam, "beams is a Beam, expected a mapping"),
        ({"arm": ()}, "empty sequence of beams"),
        ({"arm": 0.1}, r"beams\['arm'\] is 0.1"),
    ):
        with pytest.raises(ArgumentError, match=message):
            stresses(wrong, loads)
