"""A mass on a spring on a moving belt: one program for oscillation with friction, stick-slip and free sliding."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.contact import Contact, ContactMotion, Coulomb, Gap, Plane, Point
from jaxdyn.joints import Prismatic
from jaxdyn.simulation import SimulationStatus
from jaxdyn.spatial import point_mass

pytestmark = pytest.mark.slow

simulate: Any = jd.simulate


class Uniform(eqx.Module):
    """Motion with constant speed."""

    speed: jax.Array

    def __call__(self, t):
        return self.speed * t


def belt_and_mass():
    """A belt along x with a mass above it, whose coordinates are x, with a spring, and z."""
    b = jd.ModelBuilder(gravity=(0.0, 0.0, -1.0))
    b.add_link("belt", "world", Prismatic((1, 0, 0)), point_mass(1.0))
    b.add_link("x", "world", Prismatic((1, 0, 0)), stiffness=1.0)
    return b.add_link("mass", "x", Prismatic((0, 0, 1)), point_mass(1.0)).build()


@eqx.filter_jit
def slide(x, v, ends, *, static, kinetic, belt, gravity, stiffness):
    model = eqx.tree_at(
        lambda m: (m.gravity, m.properties.stiffness),
        belt_and_mass(),
        (jnp.array([0.0, 0, -1]) * gravity, jnp.array([0.0, 1, 0]) * stiffness),
    )
    friction = Coulomb(static, kinetic=kinetic)
    contact = Contact("belt", Gap("mass", Point(), "belt", Plane()), friction, plane=(0.0, 1.0, 0.0))
    motion = ContactMotion(contact, jc.PrescribedCoordinate("belt", "belt_joint", Uniform(belt)))
    start = jnp.stack([0 * x, x, 0 * x]), jnp.stack([belt, v, 0 * v])
    options = {"max_events": 12, "rtol": 1e-11, "atol": 1e-12}
    return simulate(jd.System(model, motion=motion), *start, jnp.array([0.0, 1.0]) * ends, **options)


def run(x, v, ends, static=1.0, kinetic=1.0, belt=0.0, gravity=1.0, stiffness=1.0):
    """The run, its status checked, with the times of its phases, and positions and sliding at their beginnings."""
    numbers = {"static": static, "kinetic": kinetic, "belt": belt, "gravity": gravity, "stiffness": stiffness}
    x, v, ends, *rest = (jnp.asarray(float(y)) for y in (x, v, ends, *numbers.values()))
    out = slide(x, v, ends, **dict(zip(numbers, rest, strict=True)))
    assert out.status == SimulationStatus.FINISHED
    n = int(out.phases.count)
    return out, out.phases.time[:n], out.phases.q[:n, 1], out.phases.modes.sliding[:n, 0]


def test_an_oscillator_with_friction_comes_to_rest():
    out, times, x, sliding = run(12.0, 6.0, 30.0)
    assert_allclose(times[1:], 0.43240777557053783 + np.pi * np.arange(8), atol=1e-7)
    assert_allclose(times[-1], 22.42355635069909, atol=1e-7)
    assert_allclose(x[1:-1], (-1.0) ** np.arange(7) * (13.317821063276353 - 2 * np.arange(7)), atol=1e-7)
    assert_allclose(out.q[-1, 1], 0.6821789367236466, atol=1e-7)
    assert_allclose(out.v[-1], 0, atol=1e-12)
    assert_allclose(sliding, [1] * 8 + [0])


def test_stick_slip_on_a_belt_has_its_period():
    """Static coefficient 1, kinetic 1/2, belt with speed 0.1: the closed form of the limit cycle."""
    _, times, x, sliding = run(0.0, 0.1, 60.0, kinetic=0.5, belt=0.1)
    assert_allclose(sliding, [0, 1] * 4 + [0])
    assert_allclose(times[1], 10.0, atol=1e-8)
    assert_allclose(times[2::2] - times[1::2][:4], 3.5363837732895544, atol=1e-8)
    assert_allclose(np.diff(times[2::2]), 13.536383773289554, atol=1e-8)
    assert_allclose(x[1::2], 1.0, atol=1e-8)  # the spring has reached the limit of static friction
    assert_allclose(x[2::2], 0.0, atol=1e-8)  # the mirror image about x = 1/2


def test_equal_coefficients_slide_from_the_limit_of_sticking():
    """At the limit the slip starts with neither speed nor acceleration; the mass then swings about x = 1."""
    out, times, _, sliding = run(0.0, 0.1, 13.0, belt=0.1)
    assert_allclose(sliding, [0, 1])
    assert_allclose(times[1], 10.0, atol=1e-8)
    assert_allclose(out.q[-1, 1], 1 + 0.1 * np.sin(3.0), atol=1e-8)
    assert_allclose(out.v[-1, 1], 0.1 * np.cos(3.0), atol=1e-8)


def test_a_sliding_mass_does_not_lift_off():
    """A point mass decelerates by mu g; the convex relaxation of the friction law would let it rise with 0.38 m/s."""
    out, times, *_ = run(0.0, 1.0, 0.01, static=0.5, kinetic=0.5, gravity=9.81, stiffness=0.0)
    assert len(times) == 1
    assert_allclose(out.v[-1, 1:], (0.95095, 0.0), atol=1e-12)
    assert_allclose(out.q[-1, 1:], (0.01 - 0.5 * 9.81 * 0.01**2 / 2, 0.0), atol=1e-12)
