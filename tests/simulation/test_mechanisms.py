"""Robots with closed chains move and bear loads as such, without being asked to."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.constraints import ConstrainedMotion, RevoluteClosure, assemble, described_constraints
from jaxdyn.dynamics import FreeMotion
from jaxdyn.joints import Free, Revolute
from jaxdyn.simulation import System, Trajectory, simulate
from jaxdyn.spatial import box


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


ROD = box((0.1, 0.1, 0.5), mass=1.0).moved((0, 0, -0.25))


def _tree():
    b = jd.ModelBuilder()
    b.add_link("upper", "world", Revolute([0, 1, 0]), ROD)
    b.add_link("lower", "upper", Revolute([0, 1, 0]), ROD, translation=(0, 0, -0.5))
    return b.build()


def _cut():
    b = jd.ModelBuilder()
    b.add_link("upper", "world", Revolute([0, 1, 0]), ROD)
    b.add_link("lower", "world", Free(), ROD)
    return b.build()


@pytest.mark.slow
def test_bearings_of_a_cut_chain_are_those_of_the_tree():
    """Two rods in a row: hinge by hinge, or with the second one free and held to the first by a closure."""
    tree, cut = _tree(), _cut()
    q, v = jnp.array([0.4, -1.1]), jnp.array([1.5, -0.7])

    def free_state(q):
        pose = jd.forward_kinematics(tree, q)
        return pose.rotation[1], pose.translation[1]

    (r, p), (dr, dp) = jax.jvp(free_state, (q,), (v,))
    spin = r.T @ dr
    turn = q.sum() / 2
    state = jnp.array([q[0], jnp.cos(turn), 0, jnp.sin(turn), 0, *p])
    speed = jnp.array([v[0], spin[2, 1], spin[0, 2], spin[1, 0], *(r.T @ dp)])
    sideways = (1.0, -1.0, 0.0, 0.0)  # z of the closure's axes along y
    hinge = RevoluteClosure("hinge", ("upper", (0, 0, -0.5), sideways), ("lower", (0, 0, 0), sideways))
    motion = ConstrainedMotion((hinge,))
    whole, other = _row(System(tree), q, v), _row(System(cut, motion=motion), state, speed)
    np.testing.assert_allclose(other.acceleration[0, 0], whole.acceleration[0, 0], rtol=1e-10)
    found, want = other.reactions, whole.reactions
    np.testing.assert_allclose(found.wrench[0, 0], want.wrench[0, 0], atol=1e-9)
    assert np.abs(want.wrench[0, 0]).max() > 5
    np.testing.assert_allclose(found.wrench[0, 1], 0, atol=1e-9)  # a free joint carries nothing


def _row(system, q, v):
    zero = jnp.zeros((), int)
    return Trajectory(jnp.zeros(1), q[None], v[None], None, jnp.array([True]), zero, zero, system)
