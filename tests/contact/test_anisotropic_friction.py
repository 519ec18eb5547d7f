"""A puck that slides on an anisotropic floor, against its path in closed form."""

from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate

import jaxdyn as jd
from jaxdyn.contact import Contact, ContactMotion, Coulomb, Gap, Plane, Point
from jaxdyn.joints import Prismatic
from jaxdyn.simulation import SimulationStatus
from jaxdyn.spatial import point_mass

simulate: Any = jd.simulate
START, MASS, MU, GRAVITY, TURN = np.array([3.0, 2.0]), 2.0, 0.3, 9.81, 0.7
DIRECTION = 0.4, 1.0
AXES = np.array([[np.cos(TURN), np.sin(TURN), 0], [-np.sin(TURN), np.cos(TURN), 0]])


def slide(mu, ratio):
    """A puck that starts with the velocities `START` along and across the direction of the floor."""
    b = jd.ModelBuilder()
    b.add_link("x", "world", Prismatic((1, 0, 0)))
    b.add_link("y", "x", Prismatic((0, 1, 0)))
    puck = b.add_link("puck", "y", Prismatic((0, 0, 1)), point_mass(MASS)).build()
    law = Coulomb(mu, ratio=ratio, direction=AXES[0])
    motion = ContactMotion(Contact("floor", Gap("puck", Point(), "world", Plane()), law))
    ts, options = jnp.linspace(0.0, 2.0, 9), {"rtol": 1e-10, "atol": 1e-11}
    system = jd.System(puck, motion=motion)
    v0 = jnp.asarray(START @ AXES)
    return simulate(system, jnp.zeros(3), v0, ts, adjoint=diffrax.ForwardMode(), max_events=4, **options)


def path(mu, ratio):
    """Duration of the slip and place of rest along the axes: `c_2 / c_2(0) = s^(ratio^2)` with `s = c_1 / c_1(0)`,
    and `dt = -sqrt(c_1^2 + (ratio c_2)^2) / (mu g s) ds`.
    """
    first, second = START
    rate = lambda s: np.sqrt(first**2 + (ratio * second * s ** (ratio**2 - 1)) ** 2) / (mu * GRAVITY)
    total = lambda f: integrate.quad(f, 0, 1, epsabs=1e-12, epsrel=1e-12)[0]
    along, across = total(lambda s: first * s * rate(s)), total(lambda s: second * s ** (ratio**2) * rate(s))
    return np.array([total(rate), along, across])


def rest(mu, ratio):
    """Time of the end of the slip, place of rest along the axes, and the run."""
    run = slide(mu, ratio)
    return jnp.concatenate([run.phases.time[1:2], AXES[:, :2] @ run.q[-1, :2]]), run


@pytest.mark.slow
def test_a_puck_on_an_anisotropic_floor():
    """Time and place of rest, slips and forces at all times, for coefficients that are smaller and larger across."""
    run_to_rest = jax.jit(rest)
    for ratio in (0.6, 1.6):
        found, run = run_to_rest(MU, ratio)
        assert run.status == SimulationStatus.FINISHED and run.phases.count == 2
        assert_allclose(found, path(MU, ratio), atol=1e-8)
        slip, friction = np.asarray(run.contacts.slip[:, 0]), np.asarray(run.contacts.friction[:, 0])
        assert_allclose(slip, run.v, atol=1e-12)
        slides = np.asarray(run.t) < found[0]
        first, second = (slip[slides] @ AXES.T).T
        force = -MU * MASS * GRAVITY / np.hypot(first, ratio * second) * np.stack([first, ratio**2 * second])
        assert_allclose(friction[slides], force.T @ AXES, atol=1e-9)
        assert_allclose(friction[~slides], 0, atol=1e-9)


@pytest.mark.exhaustive
def test_derivatives_of_the_rest_on_an_anisotropic_floor():
    """Along a direction of both coefficients, at ratios on both sides of one."""
    derivative = jax.jit(lambda *x: jax.jvp(lambda *x: rest(*x)[0], x, DIRECTION)[1])
    for ratio in (0.6, 1.6):
        x, d, h = np.array([MU, ratio]), np.array(DIRECTION), 1e-5
        difference = (path(*(x + h * d)) - path(*(x - h * d))) / (2 * h)
        assert_allclose(derivative(*map(float, x)), difference, rtol=1e-6)
