"""Rotating beams: stiffening by centrifugal forces, and spin-up."""

import diffrax
import numpy as np
import pytest

from benchmarks import _flexible_cases as cases

SPEED = 3.0


@pytest.mark.slow
def test_frequencies_of_a_rotating_cantilever():
    found = {n: cases.rotating_frequencies(n, SPEED) for n in (4, 8)}
    flap = np.array(cases.FLAP[SPEED])
    error = np.array([found[n][1] / flap - 1 for n in (4, 8)])
    assert np.all(np.abs(error[1]) < [0.0057, 0.0147, 0.0225]) and np.all(error[0] / error[1] > 3.7)
    for lag, flapping in found.values():  # the stiffnesses differ by that of the centrifugal force across the axis
        np.testing.assert_allclose(lag**2, flapping**2 - SPEED**2, rtol=1e-8)


@pytest.mark.exhaustive
def test_spin_up():
    """The least deflection of eight sublinks, converged in time; the solution has -0.573751."""
    found = cases.spin_up(8, "Simo and Vu-Quoc", 0.002, solver=diffrax.Tsit5())
    np.testing.assert_allclose(found[0], -0.566689, atol=1e-6)
