"""An elastic bar that hits a rigid wall, as a chain of masses and springs, against d'Alembert's solution."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize

import jaxdyn as jd
from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Point
from jaxdyn.joints import Prismatic
from jaxdyn.simulation import SimulationStatus
from jaxdyn.spatial import point_mass

pytestmark = pytest.mark.exhaustive

simulate: Any = jd.simulate
MODULUS, AREA, LENGTH, DENSITY, SPEED, GAP = 210e9, 3.14e-4, 1.0, 7800.0, 0.1, 5e-5
#: twice the length over the speed of sound
DURATION = 2 * LENGTH * np.sqrt(DENSITY / MODULUS)


def masses(count):
    return DENSITY * AREA * LENGTH / count * np.array([0.5, *[1.0] * (count - 1), 0.5])


def hit(count):
    """The run of a chain of `count` springs; its coordinates are the place of the first mass, and the elongations."""
    b, parent = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0)), "world"
    for k, mass in enumerate(masses(count)):
        stiffness = MODULUS * AREA * count / LENGTH if k else 0.0
        b.add_link(f"m{k}", parent, Prismatic((1, 0, 0)), point_mass(mass), stiffness=stiffness)
        parent = f"m{k}"
    wall = Contact("wall", Gap("m0", Point(), "world", Plane((1.0, 0.0, 0.0))))
    system = jd.System(b.build(), motion=ContactMotion(wall))
    start = jnp.zeros(count + 1)
    ts = jnp.array([0.0, GAP / SPEED + 3 * DURATION])
    return simulate(system, start.at[0].set(GAP), start.at[0].set(-SPEED), ts, max_events=8, rtol=1e-9, atol=1e-12)


def contact_time(count):
    """How long the spring at the wall pushes, from the eigenvectors of the chain with its first mass at rest."""
    m, k = masses(count)[1:], MODULUS * AREA * count / LENGTH
    stiffness = k * (np.diag([2.0] * (count - 1) + [1.0]) - np.eye(count, k=1) - np.eye(count, k=-1))
    square, shape = np.linalg.eigh(stiffness / np.sqrt(np.outer(m, m)))
    rate = np.sqrt(square)
    weight = shape[0] / np.sqrt(m[0]) * (shape.T @ np.sqrt(m)) * -SPEED / rate
    push = lambda t: -weight @ np.sin(rate * t)
    return optimize.brentq(push, 0.8 * DURATION, 1.3 * DURATION, xtol=1e-18)


def test_an_elastic_bar_leaves_the_wall_as_a_wave_does():
    """The plastic impact takes the speed of the mass at the wall alone, half a spring's share of the bar."""
    durations, speeds = [], []
    for count in (8, 32):
        run = hit(count)
        assert run.status == SimulationStatus.FINISHED and run.phases.count == 3
        touch, leave = run.phases.time[1:3]
        assert_allclose(touch, GAP / SPEED, rtol=1e-9)
        assert_allclose(leave - touch, contact_time(count), rtol=1e-7)
        m, v = masses(count), np.cumsum(np.asarray(run.v[-1]))
        elastic = MODULUS * AREA * count / LENGTH / 2 * np.sum(np.asarray(run.q[-1, 1:]) ** 2)
        energy = m @ v**2 / 2 + elastic
        assert_allclose(energy / (m.sum() * SPEED**2 / 2), 1 - 0.5 / count, rtol=1e-7)
        durations.append(float(leave - touch))
        speeds.append(m @ v / m.sum())
    errors = np.abs(np.array([durations, speeds]).T / (DURATION, SPEED) - 1)
    assert (errors[1] < errors[0] / 2).all()  # the front spreads by dispersion: errors fall as count^(-2/3)
    limit = np.array([contact_time(n) for n in (64, 512)])
    assert (np.abs(limit / DURATION - 1) < (0.01, 0.002)).all()
