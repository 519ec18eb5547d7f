"""Elastic and inelastic bounces against closed forms: two balls and a wall, and a pendulum at a stop."""

from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

import jaxdyn as jd
from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Point, Sphere
from jaxdyn.joints import Prismatic
from jaxdyn.simulation import SimulationStatus
from jaxdyn.spatial import point_mass

pytestmark = pytest.mark.exhaustive

simulate: Any = jd.simulate
FORWARD = diffrax.ForwardMode()


def balls_and_a_wall():
    """Elastic balls of radius 0.1 m on a line, and a wall at x = 0 for the centre of ball a."""
    b = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    for name in "ab":
        b.add_link(name, "world", Prismatic((1, 0, 0)), point_mass(1.0))
    pair = Contact("pair", Gap("b", Sphere(0.1), "a", Sphere(0.1)), restitution=1.0)
    wall = Contact("wall", Gap("a", Point(), "world", Plane((1.0, 0.0, 0.0))), restitution=1.0)
    return jd.System(b.build(), motion=ContactMotion([pair, wall]))


def test_gradients_of_elastic_balls_and_of_a_ball_at_a_wall():
    """Two equal balls exchange their velocities; a ball at a wall is thrown back. Derivatives are 1, 0 or -1."""
    system = balls_and_a_wall()

    def end(state, duration):
        """Positions at the end, and the loss of a ball that should arrive at 1."""
        run = simulate(system, state[:2], state[2:], jnp.array([0.0, 1.0]) * duration, adjoint=FORWARD, max_events=4)
        out = jnp.append(run.q[-1], jnp.abs(run.q[-1, 0] - 1))
        return out, (out, run.status, run.phases.time[1])

    places = np.array([0.1, 0.5, 0.9, 1.1, 1.5, 1.9, 2.1, 2.5, 2.9])
    toss = [(x, 50.0, -1.0, 0.0) for x in places]
    states = jnp.array([(1.0, 1.52, 1.0, 0.0), *toss])
    durations = jnp.append(1.0, jnp.full(len(places), 2.0))
    gradient, (out, status, touch) = jax.jit(jax.vmap(jax.jacfwd(end, has_aux=True)))(states, durations)
    assert (status == SimulationStatus.FINISHED).all()
    assert_allclose(touch[0], 0.32, atol=1e-12)
    assert_allclose(out[0, :2], (1.32, 2.2), atol=1e-12)
    assert_allclose(gradient[0, 1], (1, 0, 1, 0), atol=1e-12)
    assert_allclose(gradient[0, 0], (0, 1, 0, 1), atol=1e-12)
    assert_allclose(gradient[1:, 2, 0], np.where(places < 2, np.sign(places - 1), -1), atol=1e-12)


def test_a_pendulum_at_a_stop():
    """Impacts of a point mass at the lowest place of its circle: amplitudes, times and their derivatives."""
    stop = Contact("stop", Gap("tip", Point(), "world", Plane((-1.0, 0.0, 0.0))), restitution=0.8)
    system = jd.System(jd.robots.pendulum(), motion=ContactMotion(stop))

    def times(angle):
        options = {"max_events": 8, "rtol": 1e-12, "atol": 1e-13, "adjoint": FORWARD}
        run = simulate(system, angle[None], jnp.zeros(1), jnp.array([0.0, 3.7]), **options)
        return run.phases.time, run.phases

    rate, phases = jax.jit(jax.jacfwd(times, has_aux=True))(jnp.array(1.0))
    assert phases.count == 5
    impacts = 0.53478440013967221, 1.5781090751896997, 2.6060886576506275, 3.6247656161252141
    assert_allclose(phases.time[1:5], impacts, atol=1e-9)
    assert_allclose(phases.v_before[1, 0], -3.0032097427364441, atol=1e-9)
    amplitudes = 2 * np.arcsin(np.abs(np.asarray(phases.v[1:4, 0])) / (2 * np.sqrt(9.81)))
    assert_allclose(amplitudes, (0.787253737237613, 0.623726086665913, 0.496000484565393), atol=1e-9)
    assert_allclose(rate[1], 0.0706562072958954, atol=1e-8)
    quarter = lambda angle: special.ellipk(np.sin(angle / 2) ** 2) / np.sqrt(9.81)
    assert_allclose(phases.time[2] - phases.time[1], 2 * quarter(amplitudes[0]), atol=1e-9)
