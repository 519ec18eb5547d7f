"""Robots with closed chains move along their closures by default."""

import functools as ft

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.constraints import ConstrainedMotion, assemble, described_constraints
from jaxdyn.dynamics import FreeMotion
from jaxdyn.simulation import System, simulate


@ft.cache
def moving_four_bar():
    """A four-bar linkage with a configuration and a velocity that meet its closure."""
    m = jd.robots.four_bar()
    q = assemble(m, described_constraints(m), jd.neutral(m)).checked().q
    v = ConstrainedMotion().project(m, 0.0, q, jnp.ones(m.nv))[1]
    return m, q, v


def test_the_default_motion_satisfies_the_closures_of_the_model():
    m = jd.robots.four_bar()
    motion = System(m).motion
    assert isinstance(motion, ConstrainedMotion) and motion.constraints is None
    assert isinstance(System(m, motion=FreeMotion()).motion, FreeMotion)
    assert isinstance(System(jd.robots.pendulum()).motion, FreeMotion)


@pytest.mark.exhaustive
def test_a_simulated_four_bar_stays_closed_without_moments_in_its_hinges():
    m, q, v = moving_four_bar()
    ts = jnp.linspace(0, 0.1, 3)
    tr = simulate(m, q, v, ts, dt=2e-3)
    np.testing.assert_allclose(assemble(m, described_constraints(m), tr.q[-1]).q, tr.q[-1], atol=1e-9)
    assert np.abs(tr.q[-1] - q).max() > 0.05
    np.testing.assert_allclose(tr.energy, tr.energy[0], rtol=1e-7)
    # no motor and no friction: hinges have no moment about their axes, and their reactions do no work
    effort = np.abs(tr.reactions.effort).max()
    assert effort < 1e-9 and np.abs(tr.reactions.bearing).max() > 1.0
    np.testing.assert_allclose(tr.power, 0, atol=1e-9)
