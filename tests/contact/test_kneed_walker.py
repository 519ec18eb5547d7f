"""A passive walker with knees on a slope (Hsu Chen 2007): knee stops are contacts, strikes of the feet are events.

Reference: integration with scipy of the same walker with locked and free knees, and fixed points by `fsolve`; it agrees
with the published gait to the three digits given.
"""

import functools as ft
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
from jaxdyn.contact import Contact, ContactMotion, GapFunction
from jaxdyn.joints import Revolute
from jaxdyn.simulation import Event, SimulationStatus
from jaxdyn.spatial import point_mass

from ..simulation.orbits._walkers import Ground, Strike

pytestmark = pytest.mark.exhaustive

simulate: Any = jd.simulate
SLOPE, HIP, THIGH, SHANK = 0.0504, 0.5, 0.5, 0.05
#: distances of the masses from the foot on a straight leg of 1 m, and of the knee
ON_SHANK, KNEE, ON_THIGH = 0.375, 0.5, 0.675
KNEE_STOP = 0.1


class KneeGap(eqx.Module):
    """The gap at the stop of the knee, a lever below it: zero for a straight leg, positive for a bent one."""

    def __call__(self, x):
        pose = x.pose("shank")
        normal = -pose.rotation[:, 0]
        return -KNEE_STOP * x.coordinate("knee"), pose.translation - KNEE_STOP * pose.rotation[:, 2], normal


class StraightLegs(eqx.Module):
    """The strike of the foot of a straight leg; the leg that leaves the ground is straight as well."""

    strike: Strike

    def __call__(self, model, t, q, v):
        q, v = self.strike(model, t, q[:2], v[:2])
        return jnp.append(q, 0.0), jnp.append(v, 0.0)


def walker():
    """Angles of the stance leg from the vertical, of the hip and of the knee, positive anticlockwise."""
    b, axis = jd.ModelBuilder(), Revolute((0, -1, 0))
    up = lambda z: (0.0, 0.0, z)
    leg = point_mass(SHANK).moved(up(ON_SHANK)) + point_mass(THIGH).moved(up(ON_THIGH))
    b.add_link("stance_leg", "world", axis, leg + point_mass(HIP).moved(up(1.0)), joint_name="ankle")
    thigh = point_mass(THIGH).moved(up(ON_THIGH - 1))
    b.add_link("thigh", "stance_leg", axis, thigh, joint_name="hip", translation=up(1.0))
    shank = point_mass(SHANK).moved(up(ON_SHANK - KNEE))
    b.add_link("shank", "thigh", axis, shank, joint_name="knee", translation=up(KNEE - 1))
    return b.add_frame("swing_foot", "shank", translation=up(-KNEE)).build()


def strike():
    """The event at which the swing foot meets the slope."""
    mass = SHANK + THIGH
    centre = (SHANK * ON_SHANK + THIGH * ON_THIGH) / mass
    moment = SHANK * (ON_SHANK - centre) ** 2 + THIGH * (ON_THIGH - centre) ** 2
    straight = jd.robots.compass_gait(centre, 1 - centre, mass, HIP, moment, floating=True)
    return Event(Ground(jnp.array(SLOPE)).height, StraightLegs(Strike(straight)), terminal=True, direction=-1)


@jax.jit
@ft.partial(jax.jacfwd, has_aux=True)
def linearise(y):
    """The derivative of a step with respect to stance angle and rates of both legs; their values, and the run."""
    swing = -y[0] - 2 * SLOPE  # both feet are on the slope
    q, v = jnp.stack([y[0], swing - y[0], 0.0 * swing]), jnp.stack([y[1], y[2] - y[1], 0.0 * swing])
    stop = Contact("knee stop", GapFunction("shank", "thigh", KneeGap()))
    system = jd.System(walker(), motion=ContactMotion(stop))
    options = {"max_events": 4, "rtol": 1e-11, "atol": 1e-11, "adjoint": diffrax.ForwardMode()}
    run = simulate(system, q, v, jnp.array([0.0, 1.5]), events=(strike(),), **options)
    after = run.events.q[0], run.events.v[0]
    out = jnp.stack([after[0][0], after[1][0], after[1][0] + after[1][1]])
    return out, (out, run.status, run.events.time[0], run.phases)


def test_gait_of_a_walker_with_knees():
    """The fixed point of a step by Newton's method on its derivative: gait, period, and eigenvalues."""
    y = jnp.array([0.1877, -1.1014, -0.0399])
    for _ in range(5):
        slope, (after, *_) = linearise(y)
        y = y - np.linalg.solve(slope - np.eye(3), after - y)
    slope, (after, status, period, phases) = linearise(y)
    assert_allclose(after, y, atol=1e-10)
    assert status == SimulationStatus.EVENT
    assert_allclose(y[:2], (0.1882, -1.1096), atol=1e-4)
    assert_allclose(y, (0.18818546, -1.10958733, -0.05714811), atol=1e-8)
    assert_allclose(period, 0.564328165914605, atol=1e-8)
    # the knee bends at once, and its stop closes once and holds the leg straight until the strike
    assert phases.count == 2 and phases.modes.closed[1, 0] == 1
    assert_allclose(phases.time[1], 0.3486120004834143, atol=1e-8)
    assert_allclose(np.sort(np.abs(np.linalg.eigvals(slope))), (0.14382267, 0.65516848, 0.65516848), atol=1e-6)
