"""A ball on a floor with friction against slip, rolling and spinning in one program."""

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


def test_rolling_and_spinning_friction_do_not_disturb_each_other():
    """A ball rolls and spins, and rests in either motion at a time of its own."""
    out = run([0, 2.0, 5.0, 1.0, 0, 0], 12.0, mu=0.5, rolling=0.01, spinning=0.02)
    spins, rolls = 5.0 * MOMENT / (0.02 * MASS * GRAVITY), 1.0 / (0.01 * GRAVITY / (RADIUS * 1.4))
    count = int(out.phases.count)
    assert_allclose(np.asarray(out.phases.time[1:count]), [spins, rolls], atol=1e-7)
    assert_allclose(out.q[-1, 4], rolls / 2, atol=1e-7)
    assert_allclose(out.v[-1], 0, atol=1e-10)
