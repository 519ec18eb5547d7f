"""A ball on a floor with all kinds of friction in one program: elliptic cones, rolling and spinning friction."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
from jaxdyn.contact import Contact, ContactMotion, Coulomb, Gap, Plane, Sphere
from jaxdyn.joints import Free
from jaxdyn.simulation import SimulationStatus
from jaxdyn.spatial import sphere

pytestmark = pytest.mark.exhaustive

simulate: Any = jd.simulate
MASS, RADIUS, GRAVITY = 2.0, 0.5, 9.81
MOMENT = 0.4 * MASS * RADIUS**2


def ball():
    b = jd.ModelBuilder()
    return b.add_link("ball", "world", Free(), sphere(RADIUS, mass=MASS)).build()


@eqx.filter_jit
def roll(friction, v0, end):
    contact = Contact("floor", Gap("ball", Sphere(RADIUS), "world", Plane()), friction)
    system = jd.System(ball(), motion=ContactMotion(contact))
    q0 = jnp.array([1.0, 0, 0, 0, 0, 0, RADIUS])
    options = {"max_events": 8, "rtol": 1e-10, "atol": 1e-11}
    return simulate(system, q0, v0, jnp.linspace(0.0, 1.0, 9) * end, **options)


def run(v0, end, **friction):
    """The run of a ball that starts with `(w, v)`, with numbers of `Coulomb`; its status is checked."""
    numbers = {"mu": 0.3, "ratio": 1.0, "direction": (1.0, 0.0, 0.0), "rolling": 0.0, "spinning": 0.0} | friction
    law = Coulomb(**{name: jnp.asarray(x, float) for name, x in numbers.items()})
    out = roll(law, jnp.asarray(v0, float), jnp.asarray(float(end)))
    assert out.status == SimulationStatus.FINISHED
    return out


@pytest.mark.parametrize("turn", [0.0, 0.7])
def test_anisotropic_friction_bends_the_path(turn):
    """A ball that slides without rotation: `c_2 / c_2(0) = (c_1 / c_1(0))^(ratio^2)` along and across the direction."""
    ratio = 0.6
    along, across = np.array([np.cos(turn), np.sin(turn), 0]), np.array([-np.sin(turn), np.cos(turn), 0])
    start = 3 * along + 2 * across
    out = run([0, 0, 0, *start], 0.4, ratio=ratio, direction=along)
    assert out.modes.sliding[:, 0].all()
    slip = np.asarray(out.contacts.slip[:, 0])
    first, second = slip @ along, slip @ across
    assert_allclose(second / 2, (first / 3) ** ratio**2, atol=1e-8)
    # the force in the elliptic cone
    speed = np.hypot(first, ratio * second)
    force = -0.3 * MASS * GRAVITY * (first[:, None] * along + ratio**2 * second[:, None] * across) / speed[:, None]
    assert_allclose(out.contacts.friction[:, 0], force, atol=1e-7)


def test_spinning_friction_stops_a_spinning_ball():
    """A ball at rest that spins about the vertical: `w' = -spinning m g / I`."""
    out = run([0, 0, 5.0, 0, 0, 0], 8.0, spinning=0.01, rolling=0.01)
    stop = 5.0 * MOMENT / (0.01 * MASS * GRAVITY)
    count = int(out.phases.count)
    assert_allclose(out.phases.time[count - 1], stop, atol=1e-7)
    times = np.linspace(0, 8, 9)
    assert_allclose(out.v[:, 2], np.maximum(5 * (1 - times / stop), 0), atol=1e-8)
    assert_allclose(out.modes.sliding[:, 2], times <= stop)
    assert_allclose(out.contacts.friction[1, 2], (0, 0, -0.01 * MASS * GRAVITY), atol=1e-8)
    assert_allclose(out.q[-1, 4:], (0, 0, RADIUS), atol=1e-9)


def test_rolling_and_spinning_friction_do_not_disturb_each_other():
    """A ball rolls and spins, and rests in either motion at a time of its own."""
    out = run([0, 2.0, 5.0, 1.0, 0, 0], 12.0, mu=0.5, rolling=0.01, spinning=0.02)
    spins, rolls = 5.0 * MOMENT / (0.02 * MASS * GRAVITY), 1.0 / (0.01 * GRAVITY / (RADIUS * 1.4))
    count = int(out.phases.count)
    assert_allclose(np.asarray(out.phases.time[1:count]), [spins, rolls], atol=1e-7)
    assert_allclose(out.q[-1, 4], rolls / 2, atol=1e-7)
    assert_allclose(out.v[-1], 0, atol=1e-10)
