"""Robots with closed chains move and bear loads as such, without being asked to."""

import functools as ft

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.constraints import ConstrainedMotion, assemble, described_constraints
from jaxdyn.dynamics import FreeMotion
from jaxdyn.simulation import System, simulate


@ft.cache
def swing():
    """Four bars from where they close, moving."""
    m = jd.robots.four_bar()
    q = assemble(m, described_constraints(m), jd.neutral(m)).checked().q
    v = ConstrainedMotion().project(m, 0.0, q, jnp.ones(m.nv))[1]
    return m, q, v


def test_a_model_alone_is_the_mechanism_that_it_describes():
    m = jd.robots.four_bar()
    motion = System(m).motion
    assert isinstance(motion, ConstrainedMotion) and motion.constraints is None
    assert isinstance(System(m, motion=FreeMotion()).motion, FreeMotion)
    assert isinstance(System(jd.robots.pendulum()).motion, FreeMotion)


@pytest.mark.slow
def test_four_bars_stay_closed_and_bear_no_moment_in_their_hinges():
    m, q, v = swing()
    ts = jnp.linspace(0, 0.1, 3)
    tr = simulate(m, q, v, ts, dt=2e-3)
    np.testing.assert_allclose(assemble(m, described_constraints(m), tr.q[-1]).q, tr.q[-1], atol=1e-9)
    assert np.abs(tr.q[-1] - q).max() > 0.05
    np.testing.assert_allclose(tr.energy, tr.energy[0], rtol=1e-7)
    # no motor and no friction: hinges carry no moment about their axes, and what they carry does no work
    effort = np.abs(tr.reactions.effort).max()
    assert effort < 1e-9 and np.abs(tr.reactions.bearing).max() > 1.0
    np.testing.assert_allclose(tr.power, 0, atol=1e-9)
