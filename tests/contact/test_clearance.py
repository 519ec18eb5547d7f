"""A slider-crank whose slider has clearance in its guide (Flores, Leine, Glocker 2010), against scipy with events."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate

import jaxdyn as jd
from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Point
from jaxdyn.joints import Revolute
from jaxdyn.simulation import SimulationStatus
from jaxdyn.spatial import Inertia

pytestmark = pytest.mark.exhaustive

simulate: Any = jd.simulate
LENGTHS, MASSES, MOMENTS = (0.153, 0.306), (0.038, 0.038, 0.076), (7.4e-5, 5.9e-4, 2.7e-6)
HALF_LENGTH, HALF_HEIGHT, CLEARANCE, GRAVITY, E, MU = 0.05, 0.025, 0.001, 9.81, 0.4, 0.01
RATES = np.array([150.0, -75.0, -0.01])
#: corners of the slider: left and right, above and below
CORNERS = np.array([[-1, 1], [1, 1], [-1, -1], [1, -1]]) * (HALF_LENGTH, HALF_HEIGHT)


def mechanism():
    b, axis = jd.ModelBuilder(), Revolute((0, -1, 0))
    body = lambda k, x: Inertia(MASSES[k], (0, 0, 0), MOMENTS[k] * np.eye(3)).moved((x, 0, 0))
    b.add_link("crank", "world", axis, body(0, LENGTHS[0] / 2))
    b.add_link("rod", "crank", axis, body(1, LENGTHS[1] / 2), translation=(LENGTHS[0], 0, 0))
    b.add_link("slider", "rod", axis, body(2, 0.0), translation=(LENGTHS[1], 0, 0))
    wall = HALF_HEIGHT + CLEARANCE
    contacts = [
        Contact(
            f"corner {k}",
            Gap(("slider", (x, 0, z)), Point(), ("world", (0, 0, wall * np.sign(z))), Plane((0, 0, -np.sign(z)))),
            MU,
            E,
            plane=(0.0, 1.0, 0.0),
        )
        for k, (x, z) in enumerate(CORNERS)
    ]
    return jd.System(b.build(), motion=ContactMotion(contacts))


@eqx.filter_jit
def run(end):
    q, v = jnp.zeros(3), jnp.asarray(np.diff(RATES, prepend=0.0))
    return simulate(mechanism(), q, v, jnp.array([0.0, 1.0]) * end, max_events=160, rtol=1e-9, atol=1e-11)


class Reference:
    """The same mechanism in absolute angles."""

    def mass(self, q):
        (l1, l2), (m1, m2, m3), (j1, j2, j3) = LENGTHS, MASSES, MOMENTS
        coupling = (m2 / 2 + m3) * l1 * l2 * np.cos(q[1] - q[0])
        first, second = j1 + (m1 / 4 + m2 + m3) * l1**2, j2 + (m2 / 4 + m3) * l2**2
        return np.array([[first, coupling, 0], [coupling, second, 0], [0, 0, j3]])

    def rates(self, t, y):
        q, v = y[:3], y[3:]
        (l1, l2), (m1, m2, m3) = LENGTHS, MASSES
        h = (m2 / 2 + m3) * l1 * l2 * np.sin(q[1] - q[0])
        weight = GRAVITY * np.array([(m1 / 2 + m2 + m3) * l1 * np.cos(q[0]), (m2 / 2 + m3) * l2 * np.cos(q[1]), 0])
        return np.concatenate([v, np.linalg.solve(self.mass(q), [h * v[1] ** 2, -h * v[0] ** 2, 0] - weight)])

    def corner(self, k, q):
        """Gap of a corner, and rows of its normal velocity and its slip."""
        x, z = CORNERS[k]
        arms = np.array([LENGTHS[0], LENGTHS[1], 1.0])
        up = arms * np.array([np.cos(q[0]), np.cos(q[1]), x * np.cos(q[2]) - z * np.sin(q[2])])
        along = -arms * np.array([np.sin(q[0]), np.sin(q[1]), x * np.sin(q[2]) + z * np.cos(q[2])])
        height = LENGTHS[0] * np.sin(q[0]) + LENGTHS[1] * np.sin(q[1]) + x * np.sin(q[2]) + z * np.cos(q[2])
        return HALF_HEIGHT + CLEARANCE - np.sign(z) * height, -np.sign(z) * up, along

    def impacts(self, count):
        """Times of the first impacts, with states after them."""
        y, t = np.concatenate([np.zeros(3), RATES]), 0.0
        events = [lambda t, y, k=k: self.corner(k, y[:3])[0] for k in range(4)]
        for event in events:
            event.terminal, event.direction = True, -1  # type: ignore[attr-defined]
        for _ in range(count):
            out = integrate.solve_ivp(self.rates, (t, 1), y, "DOP853", events=events, rtol=1e-11, atol=1e-12)
            k = next(k for k in range(4) if len(out.t_events[k]))
            t, y = out.t[-1], out.y[:, -1].copy()
            _, normal, along = self.corner(k, y[:3])
            direction = np.linalg.solve(self.mass(y[:3]), normal - MU * np.sign(along @ y[3:]) * along)
            y[3:] -= (1 + E) * (normal @ y[3:]) / (normal @ direction) * direction
            yield t, y


def test_a_slider_with_clearance():
    """Almost five revolutions with some hundred switches; the first impacts agree with the reference."""
    out = run(jnp.asarray(0.2))
    n = int(out.phases.count)
    assert out.status == SimulationStatus.FINISHED and n > 60
    absolute = lambda x: np.cumsum(np.asarray(x), -1)
    for k, (t, y) in enumerate(Reference().impacts(8), 1):
        assert_allclose(out.phases.time[k], t, atol=1e-11)
        assert_allclose(absolute(out.phases.q[k]), y[:3], atol=1e-10)
        assert_allclose(absolute(out.phases.v[k]), y[3:], atol=1e-7)  # of 150 rad/s
    # bounces end in rest on one corner, then on two, and the slider leaves its guide again
    corners = np.asarray(out.phases.modes.closed[:n]).sum(axis=1)
    assert {1, 2} <= set(corners) and (np.diff(corners) < 0).any()
    energy = np.asarray(out.energy)
    assert energy[-1] < energy[0]
