"""A rod that tumbles on a floor and a block that rocks on its corners: a planar body with two corners."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, optimize

import jaxdyn as jd
from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Point
from jaxdyn.joints import Prismatic, Revolute
from jaxdyn.simulation import SimulationStatus
from jaxdyn.spatial import rod

pytestmark = pytest.mark.exhaustive

simulate: Any = jd.simulate


def planar_body():
    b = jd.ModelBuilder()
    b.add_link("x", "world", Prismatic((1, 0, 0)))
    b.add_link("z", "x", Prismatic((0, 0, 1)))
    return b.add_link("body", "z", Revolute((0, 1, 0)), rod(1.0, mass=1.0)).build()


@eqx.filter_jit
def move(corners, inertia, q, v, end, gravity, friction, restitution):
    """A body of 1 kg with two corners above the floor."""
    model = eqx.tree_at(
        lambda m: (m.gravity, m.links.inertia),
        planar_body(),
        (jnp.array([0.0, 0, -1]) * gravity, jnp.zeros((3, 3, 3)).at[2].set(jnp.eye(3) * inertia)),
    )
    floor = lambda k: Gap(("body", corners[k]), Point(), "world", Plane())
    contacts = [Contact(f"corner {k}", floor(k), friction, restitution, plane=(0.0, 1.0, 0.0)) for k in range(2)]
    system = jd.System(model, motion=ContactMotion(contacts))
    return simulate(system, q, v, jnp.array([0.0, 1.0]) * end, max_events=8, rtol=1e-11, atol=1e-12)


def tumble(q, v, end, gravity, friction):
    """Times of the elastic impacts of a rod of unit mass and length, and its state at the end; no slip may stop."""
    q, v, t, times = np.array(q, float), np.array(v, float), 0.0, []
    arm = lambda q, side: side / 2 * np.array([np.sin(q[2]), np.cos(q[2])])
    after = lambda h: (q + h * v - [0, gravity * h**2 / 2, 0], v - [0, gravity * h, 0])
    while True:
        hits = []
        for side in (-1, 1):
            height = lambda h, side=side: after(h)[0][1] + arm(after(h)[0], side)[1]
            grid = np.linspace(1e-9, end - t, 4001)
            values = np.array([height(h) for h in grid])
            down = np.flatnonzero((values[:-1] > 0) & (values[1:] <= 0))
            if len(down):
                hits.append((optimize.brentq(height, *grid[down[0] : down[0] + 2], xtol=1e-15), side))
        if not hits:
            return np.array(times), *after(end - t)
        h, side = min(hits)
        q, v = after(h)
        t += h
        times.append(t)
        x, z = arm(q, side)
        normal, slip = v[1] - v[2] * x, v[0] + v[2] * z
        per_impulse = np.array([-friction * np.sign(slip), 1.0, 12 * (-friction * np.sign(slip) * z - x)])
        gain = per_impulse[1] - per_impulse[2] * x
        v = v - 2 * normal / gain * per_impulse
        assert np.sign(v[0] + v[2] * z) == np.sign(slip)


def test_a_rod_tumbles_elastically():
    """A rod that falls on its lower end with friction, l = m = 1, g = 10, at 45 degrees: seven impacts of both ends."""
    q, v = [0.0, 0.5 * np.cos(np.pi / 4) + 0.01, np.pi / 4], [-0.5, 0.1, 0.1]
    ends = jnp.array([[0.0, 0, -0.5], [0, 0, 0.5]])
    number = jnp.asarray
    numbers = number(0.6), number(10.0), number(0.01), number(1.0)
    run = move(ends, number(1 / 12), number(q), number(v), *numbers)
    times, q_end, v_end = tumble(q, v, 0.6, 10.0, 0.01)
    assert run.status == SimulationStatus.FINISHED
    assert_allclose(run.phases.time[1 : int(run.phases.count)], times, atol=1e-7)
    assert len(times) == 7
    assert_allclose(run.q[-1], q_end, atol=1e-6)
    assert_allclose(run.v[-1], v_end, atol=1e-6)


def test_a_block_rocks():
    """Housner's block: the two corners at each strike, the loss of speed, and the time of the swings."""
    alpha, tilt, mass, gravity = 0.2, 0.1, 1.0, 9.81
    half = np.array([np.sin(alpha), np.cos(alpha)])  # half width and height, half diagonal 1
    corners = jnp.array([[-half[0], 0, -half[1]], [half[0], 0, -half[1]]])
    turn = np.array([[np.cos(tilt), np.sin(tilt)], [-np.sin(tilt), np.cos(tilt)]])
    q = np.append(-turn @ [half[0], -half[1]], tilt)  # stands on the right corner at the origin
    number = jnp.asarray
    numbers = number(3.0), number(gravity), number(2.0), number(0.0)
    run = move(corners, number(mass / 3), number(q), jnp.zeros(3), *numbers)
    phases, n = run.phases, int(run.phases.count)
    assert run.status == SimulationStatus.FINISHED and n == 5
    assert_allclose(phases.modes.closed[:n, 0], [0, 1, 0, 1, 0])  # one corner takes over from the other
    assert_allclose(phases.modes.sliding[:n], 0)
    assert_allclose(phases.v[1:n, 2] / phases.v_before[1:n, 2], 0.940795745502, atol=1e-9)
    # theta'' = p^2 sin(theta) of the diagonal from the vertical, p^2 = 3 g / 4 R
    square = 3 * gravity / 4
    speed = lambda start, end: np.sqrt(2 * square * (np.cos(start) - np.cos(end)))
    quarter = lambda start: integrate.quad(lambda s: 2 * s / speed(start, start + s**2), 0, np.sqrt(alpha - start))[0]
    assert_allclose(abs(phases.v_before[1, 2]), speed(alpha - tilt, alpha), atol=1e-9)
    assert_allclose(phases.time[1], quarter(alpha - tilt), atol=1e-8)
    tops = np.arccos(np.cos(alpha) + np.asarray(phases.v[1 : n - 1, 2]) ** 2 / (2 * square))
    assert_allclose(np.diff(phases.time[1:n]), [2 * quarter(top) for top in tops], atol=1e-8)
