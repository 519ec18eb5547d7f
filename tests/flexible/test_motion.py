"""Motions of flexible links: conservation laws, closed loops, and identification from a log of the tip."""

import numpy as np
import pytest

import jaxdyn as jd
from benchmarks import _flexible_motions as motions
from jaxdyn.beams import Beam, Material, Tube
from jaxdyn.flexible import add_flexible_link
from jaxdyn.identification import collect, select


@pytest.mark.exhaustive
def test_flying_spaghetti():
    """The momentum is the impulse of the force, exactly; angular momentum and energy do not change in free flight."""
    flight = motions.spaghetti(4, 4.0, dt=4e-3)
    np.testing.assert_allclose(flight.momentum, np.tile([20.0, 0.0, 0.0], (11, 1)), atol=1e-9)
    np.testing.assert_allclose(flight.angular, flight.angular[0], rtol=1e-9)
    np.testing.assert_allclose(flight.energy, flight.energy[0], rtol=1e-6)
    lengths = np.linalg.norm(flight.span, axis=1)
    assert lengths.min() < 9.9  # the beam bends


@pytest.mark.exhaustive
def test_slider_crank():
    """The rod of the closed loop bends by about 1.5 % of its length in the first revolutions at 150 rad/s."""
    _, deflection, run = motions.slider_crank(4, dt=2e-5)
    np.testing.assert_allclose(np.abs(deflection).max() / 0.3, 0.0150, atol=1e-4)
    np.testing.assert_allclose(run.q[-1, 0], 4 * np.pi, rtol=1e-9)


def test_leaves_of_beams_can_be_fitted():
    builder = jd.ModelBuilder()
    part = add_flexible_link(builder, "arm", beam=Beam(Tube(0.02, 0.018), Material.steel(), 1.0), sublinks=1)
    system = jd.System(builder.build(), (part,))
    paths = [f"parts[FlexibleLink].beam.material.{name}" for name in ("youngs_modulus", "retardation_time")]
    assert len(collect(system, select(*paths)).names) == 2
