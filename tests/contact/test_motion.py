"""Simulated motions with contacts against closed forms: falling, sliding, sticking, rolling, lifting off, resting."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
from jaxdyn.contact import Contact, ContactMotion, Coulomb, Gap, Newton, Plane, Point, Sphere, box_corners
from jaxdyn.joints import Free, Prismatic
from jaxdyn.simulation import Feedback, SimulationStatus, System
from jaxdyn.spatial import point_mass, sphere

pytestmark = pytest.mark.slow

Y = (0.0, 1.0, 0.0)
simulate: Any = jd.simulate


def puck(axes, gravity=(0.0, 0.0, -9.81), mass=1.0):
    """A point mass that translates along several axes."""
    b = jd.ModelBuilder(gravity=gravity)
    parent = "world"
    for k, axis in enumerate(axes):
        inertia = point_mass(mass) if k == len(axes) - 1 else None
        b.add_link(f"x{k}", parent, Prismatic(axis), *([] if inertia is None else [inertia]))
        parent = f"x{k}"
    return b.build()


def floor(body, friction=None, restitution: Any = 0.0, *, plane=None, normal=(0.0, 0.0, 1.0), shape=None, name="floor"):
    shape = Point() if shape is None else shape
    return Contact(name, Gap(body, shape, "world", Plane(normal)), friction, restitution, plane)


def test_a_ball_bounces_as_its_closed_form():
    ball = puck([(0, 0, 1)])
    system = System(ball, motion=ContactMotion(floor("x0", restitution=0.9)))
    run = simulate(system, jnp.ones(1), jnp.zeros(1), jnp.array([0.0, 2.0]))
    assert run.status == SimulationStatus.FINISHED and run.phases.count == 4
    assert_allclose(run.q[-1, 0], 0.013684362285067738, atol=1e-8)
    assert_allclose(run.v[-1, 0], 3.1872221811425339, atol=1e-8)


def test_bouncing_ends_in_rest():
    ball = puck([(0, 0, 1)])
    system = System(ball, motion=ContactMotion(floor("x0", restitution=0.5)))
    run = simulate(system, jnp.ones(1), jnp.zeros(1), jnp.array([0.0, 1.0, 2.0]))
    assert run.status == SimulationStatus.FINISHED
    fall = np.sqrt(2 / 9.81)
    last = run.phases.time[run.phases.count - 1]
    assert_allclose(last, fall * (1 + 2 * 0.5 / 0.5), atol=3e-4)  # the accumulation, less the bounces below 1 mm/s
    assert run.modes.closed[-1, 0] == 1
    assert_allclose([run.q[-1, 0], run.v[-1, 0]], 0, atol=1e-12)


def test_a_cart_leaves_the_wall_when_its_force_vanishes():
    """1 kg on `x >= 0` from 0.5 under -1 N until t = 2, then -1 + r (t - 2): lifts off at 2 + 1/r."""

    def force(t, q, v):
        return jnp.where(t < 2, -1.0, -1.0 + (t - 2))[None]

    cart = puck([(1, 0, 0)])
    system = System(cart, (Feedback(force),), ContactMotion(floor("x0", normal=(1.0, 0.0, 0.0))))
    run = simulate(system, jnp.array([0.5]), jnp.zeros(1), jnp.array([0.0, 1.5, 2.0, 4.0]))
    count = int(run.phases.count)
    assert_allclose(run.phases.time[1], 1.0, atol=1e-8)
    assert_allclose(run.phases.time[count - 1], 3.0, atol=1e-8)
    assert_allclose(run.q[-1, 0], 1 / 6, atol=1e-8)
    assert_allclose(run.v[-1, 0], 0.5, atol=1e-8)


def block(mu, tilt=0.0, plane=None):
    gravity = (9.81 * np.sin(tilt), 0.0, -9.81 * np.cos(tilt))
    body = puck([(1, 0, 0), (0, 1, 0), (0, 0, 1)], gravity)
    return System(body, motion=ContactMotion(floor("x2", mu, plane=plane)))


@pytest.mark.parametrize("plane", [pytest.param(Y, marks=pytest.mark.exhaustive), None], ids=["planar", "spatial"])
def test_a_block_slides_to_rest(plane):
    v0 = jnp.array([4.0, 0.0 if plane else 0.8, 0.0])
    q0 = jnp.array([-1.5, 0.0 if plane else -0.5, 0.0])
    run = simulate(block(0.25, plane=plane), q0, v0, jnp.array([0.0, 3.0]))
    speed = np.linalg.norm(v0)
    assert run.status == SimulationStatus.FINISHED and run.phases.count == 2
    assert_allclose(run.phases.time[1], speed / (0.25 * 9.81), atol=1e-7)
    if plane is None:
        assert_allclose(run.q[-1], (1.8265774604478922, 0.16531549208957852, 0), atol=1e-7)
    assert_allclose(run.v[-1], 0, atol=1e-9)


def test_a_block_on_an_incline_sticks_within_the_cone_and_slides_beyond_it():
    ts = jnp.array([0.0, 1.0])
    rest = simulate(block(np.tan(0.5) + 1e-3, 0.5), jnp.zeros(3), jnp.zeros(3), ts)
    slide = simulate(block(np.tan(0.5) - 0.1, 0.5), jnp.zeros(3), jnp.zeros(3), ts)
    assert rest.modes.sliding[-1, 0] == 0 and slide.modes.sliding[-1, 0] == 1
    assert_allclose(rest.q[-1], 0, atol=1e-12)
    assert_allclose(slide.v[-1, 0], 9.81 * (np.sin(0.5) - (np.tan(0.5) - 0.1) * np.cos(0.5)), atol=1e-8)


@pytest.mark.exhaustive
def test_a_ball_slides_until_it_rolls():
    b = jd.ModelBuilder()
    ball = b.add_link("ball", "world", Free(), sphere(0.5, mass=2.0)).build()
    system = System(ball, motion=ContactMotion(floor("ball", 0.2, shape=Sphere(0.5))))
    q0 = jnp.array([1.0, 0, 0, 0, 0, 0, 0.5])
    run = simulate(system, q0, jnp.array([0.0, 0, 0, 5.0, 0, 0]), jnp.array([0.0, 0.7281199941750399, 1.0]))
    assert run.phases.count == 2
    assert_allclose(run.phases.time[1], 0.7281199941750399, atol=1e-7)
    assert_allclose(run.q[1, 4], 3.1205142607501712, atol=1e-6)
    assert_allclose(run.q[-1, 4], 3.1205142607501712 + 25 / 7 * (1 - 0.7281199941750399), atol=1e-6)


def bounce(h, e, g, adjoint=None):
    ball = eqx.tree_at(lambda m: m.gravity, puck([(0, 0, 1)]), jnp.array([0.0, 0.0, -1.0]) * g)
    system = System(ball, motion=ContactMotion(floor("x0", restitution=Newton(e))))
    run = simulate(system, jnp.asarray(h)[None], jnp.zeros(1), jnp.array([0.0, 2.0]), adjoint=adjoint)
    return jnp.concatenate([run.q[-1], run.v[-1]])


@pytest.mark.exhaustive
def test_derivatives_of_a_bouncing_ball_in_both_modes():
    reference = np.array(
        [
            [-3.17353781885747, -8.01308249579548, 0.324895227435528],
            [11.4036110905713, 35.5684587521023, -0.837552386282236],
        ]
    )
    x = 1.0, 0.9, 9.81
    forward = jax.jacfwd(lambda x: bounce(*x, adjoint=diffrax.ForwardMode()))(x)
    assert_allclose(np.stack(forward, 1), reference, atol=1e-6)
    reverse = jax.grad(lambda x: bounce(*x)[0])(x)
    assert_allclose(reverse, reference[0], atol=1e-6)


@pytest.mark.exhaustive
def test_derivatives_of_a_sliding_block():
    """Distance `v^2 / 2 mu g`, with a direction of slip in the plane."""

    def distance(mu):
        system = block(mu)
        v0 = jnp.array([4.0, 0.8, 0.0])
        run = simulate(system, jnp.zeros(3), v0, jnp.array([0.0, 3.0]), adjoint=diffrax.ForwardMode())
        return jnp.linalg.norm(run.q[-1])

    value, slope = jax.jvp(distance, (0.25,), (1.0,))
    assert_allclose([value, slope], [3.3924566768603466, -13.569826707441386], atol=1e-6)


@pytest.mark.exhaustive
def test_a_box_lands_flat_slides_and_comes_to_rest():
    """Four corners at once: a flat plastic landing, forces of least norm, and a common end of sliding."""
    b = jd.ModelBuilder()
    box = b.add_link("box", "world", Free(), jd.spatial.box((0.4, 0.3, 0.2), mass=2.0)).build()
    gaps = box_corners("box", (0.4, 0.3, 0.2), "world", Plane())
    corners = [Contact(f"c{k}", g, 0.3) for k, g in enumerate(gaps) if g.first.translation[2] < 0]
    system = System(box, motion=ContactMotion(corners))
    q0 = jnp.array([1.0, 0, 0, 0, 0, 0, 0.15])
    run = simulate(system, q0, jnp.array([0.0, 0, 0, 0.5, 0, 0]), jnp.array([0.0, 1.0]))
    fall, mu, g = np.sqrt(2 * 0.05 / 9.81), 0.3, 9.81
    left = 0.5 - mu * g * fall  # the impact takes mu times the normal impulse
    assert run.status == SimulationStatus.FINISHED and run.modes.closed[-1].all()
    assert_allclose(run.phases.time[1], fall, atol=1e-8)
    assert_allclose(run.q[-1, 4], 0.5 * fall + left**2 / (2 * mu * g), atol=1e-7)
    assert_allclose(run.phases.time[2], fall + left / (mu * g), atol=1e-7)


@pytest.mark.exhaustive
def test_rolling_friction_stops_a_ball():
    """A ball rolls to rest with `a = rho g / (r (1 + 2/5))`: the contact sticks and rolls, then does neither."""
    b = jd.ModelBuilder()
    ball = b.add_link("ball", "world", Free(), sphere(0.5, mass=2.0)).build()
    system = System(ball, motion=ContactMotion(floor("ball", Coulomb(0.5, rolling=0.02), shape=Sphere(0.5))))
    q0, v0 = jnp.array([1.0, 0, 0, 0, 0, 0, 0.5]), jnp.array([0.0, 2.0, 0, 1.0, 0, 0])
    run = simulate(system, q0, v0, jnp.array([0.0, 1.0, 8.0]))
    deceleration = 0.02 * 9.81 / (0.5 * 1.4)
    assert run.status == SimulationStatus.FINISHED and run.phases.count == 2
    assert_allclose(run.phases.time[1], 1 / deceleration, atol=1e-8)
    assert_allclose(run.q[-1, 4], 0.5 / deceleration, atol=1e-8)
