"""Kelly's walking biped: energy, feet, and conserved angular momenta in an impact of the swing foot."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import robots
from jaxdyn.constraints import Holonomic, impulse

from ._pin import PoseOracle

LINKS = ("stance_tibia", "stance_femur", "torso", "swing_femur", "swing_tibia")
LENGTHS, MASSES = np.array([0.4, 0.4, 0.625, -0.4, -0.4]), np.array([3.2, 6.8, 20.0, 6.8, 3.2])
INERTIAS = np.array([0.93, 1.08, 2.22, 1.08, 0.93])
#: distance of the centres of mass along the links, from the lower end of each on the way to the swing foot
ALONG = np.array([0.4 - 0.128, 0.4 - 0.163, 0.425, -0.163, -0.128])
#: links on the way from the ground to each one
BEFORE = {0: (), 1: (0,), 2: (0, 1), 3: (0, 1), 4: (0, 1, 3)}


def _direction_and_rate(angle, rate):
    """Direction of a link that is upright at zero, in x and z, and its rate."""
    return np.array([-np.sin(angle), np.cos(angle)]), -rate * np.array([np.cos(angle), np.sin(angle)])


def closed_form(foot, foot_rate, r, w):
    """Origins and centres of all links and their rates, `(5, 2)` each, and the same of the swing foot."""
    q, dq = np.cumsum(r), np.cumsum(w)
    links = [_direction_and_rate(a, b) for a, b in zip(q, dq, strict=True)]

    def place(before, k, distance):
        legs = [(LENGTHS[i], links[i]) for i in before] + [(distance, links[k])]
        return foot + sum(d * e for d, (e, _) in legs), foot_rate + sum(d * de for d, (_, de) in legs)

    origins = [place(BEFORE[k], k, 0.0) for k in range(5)]
    centers = [place(BEFORE[k], k, ALONG[k]) for k in range(5)]
    return origins, centers, place(BEFORE[4], 4, LENGTHS[4])


def angular_momentum(about, links, centers, dq):
    """Angular momentum of some links about a point, anticlockwise with x to the right and z up."""
    arms = [(MASSES[k], centers[k][0] - about, centers[k][1], INERTIAS[k] * dq[k]) for k in links]
    return sum(m * (d[0] * v[1] - d[1] * v[0]) + spin for m, d, v, spin in arms)


def test_energy_and_feet_agree_with_the_closed_form():
    rng = np.random.default_rng(0)
    for floating in (False, True):
        place = PoseOracle(robots.walking_biped(floating=floating))
        for _ in range(3):
            q, v = rng.standard_normal((2, place.model.nq))
            foot, rate = (x[:2] if floating else np.zeros(2) for x in (q, v))
            origins, centers, swing = closed_form(foot, rate, q[-5:], v[-5:])
            kinetic = sum(0.5 * m * c[1] @ c[1] for m, c in zip(MASSES, centers, strict=True))
            kinetic += 0.5 * INERTIAS @ np.cumsum(v[-5:]) ** 2
            np.testing.assert_allclose(0.5 * v @ place.oracle.mass_matrix(q) @ v, kinetic, rtol=1e-12)
            for k, name in enumerate(LINKS):
                link = place.model.link_index(name)
                pose, mass = place(q, name), place.model.links.mass[link]
                np.testing.assert_allclose(mass, MASSES[k])
                np.testing.assert_allclose(pose[[0, 2], 3], origins[k][0], atol=1e-13)
                center = pose @ np.r_[place.model.links.com[link], 1.0]
                np.testing.assert_allclose(center[[0, 2]], centers[k][0], atol=1e-13)
            np.testing.assert_allclose(place(q, "swing_foot")[[0, 2], 3], swing[0], atol=1e-13)


@pytest.mark.slow
def test_an_impact_of_the_swing_foot_conserves_angular_momentum():
    """Of the whole robot about the foot, and of the outer links about each joint (Kelly 2017, appendix)."""
    model = robots.walking_biped(floating=True)
    end = jnp.array([0.0, 0.0, -0.4])

    def foot(x):
        at = x.pose("swing_tibia")
        return (at.rotation @ end + at.translation)[jnp.array([0, 2])]

    strike = eqx.filter_jit(lambda q, v: impulse(model, [Holonomic("ground", foot)], q, v).v)
    rng = np.random.default_rng(1)
    for _ in range(3):
        q, v = np.r_[0.0, 0.0, rng.standard_normal(5)], np.r_[0.0, 0.0, rng.standard_normal(5)]
        before, after = v, np.asarray(strike(jnp.asarray(q), jnp.asarray(v)))
        states = [closed_form(x[:2] * 0, x[:2], q[2:], x[2:]) for x in (before, after)]
        np.testing.assert_allclose(states[1][2][1], 0, atol=1e-10)
        assert np.abs(after[:2]).max() > 1e-2  # the stance foot leaves
        origins = states[0][0]
        swing, knee, hip = states[0][2][0], origins[4][0], origins[3][0]
        stance_knee = origins[1][0]
        for about, links in (
            (swing, range(5)),
            (knee, range(4)),
            (hip, range(3)),
            (hip, range(2)),
            (stance_knee, range(1)),
        ):
            kept = [
                angular_momentum(about, links, centers, np.cumsum(x[2:]))
                for (_, centers, _), x in zip(states, (before, after), strict=True)
            ]
            np.testing.assert_allclose(kept[1], kept[0], rtol=1e-10, atol=1e-10)
