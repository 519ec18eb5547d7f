"""The woodpecker toy (Leine, Glocker and Van Campen 2003): impacts of the beak, jamming and sliding of the sleeve.

The published model is linear in its angles, apart from the impacts. Levers of 1/SCALE times their length and angles of
SCALE times their size give the same equations up to terms of SCALE^2, for bodies that rotate.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
from jaxdyn.contact import AllAtOnce, Contact, ContactMotion, GapFunction
from jaxdyn.joints import Prismatic, Revolute
from jaxdyn.simulation import SimulationStatus
from jaxdyn.spatial import Inertia

pytestmark = pytest.mark.exhaustive

simulate: Any = jd.simulate
SCALE = 1e-3
R_POLE, R_SLEEVE, H_SLEEVE, L_SLEEVE, L_BIRD, H_BEAK, L_BEAK = 0.0025, 0.0031, 0.0058, 0.010, 0.015, 0.02, 0.0201
M_SLEEVE, M_BIRD, J_SLEEVE, J_BIRD, STIFFNESS = 3e-4, 4.5e-3, 5e-9, 7e-7, 0.0056


class PoleGap(eqx.Module):
    """The distance of a corner at `offset = (x, z)` of a body from the pole, linear in the angle of the body."""

    link: str = eqx.field(static=True)
    play: float
    offset: tuple[float, float]

    def __call__(self, x):
        angle = x.coordinate("sleeve_joint")
        if self.link == "bird":
            angle = angle + x.coordinate("bird_joint")
        along, up = self.offset
        point = x.pose(self.link).translation + jnp.array([along, 0.0, up]) / SCALE
        return self.play - up * angle / SCALE, point, jnp.array([1.0, 0.0, 0.0])


def woodpecker():
    """A sleeve on a vertical pole and a bird on a spring."""
    b, axis = jd.ModelBuilder(), Revolute((0, -1, 0))
    body = lambda mass, moment, x: Inertia(mass, (x / SCALE, 0, 0), moment / SCALE**2 * np.eye(3))
    b.add_link("slide", "world", Prismatic((0, 0, 1)))
    b.add_link("sleeve", "slide", axis, body(M_SLEEVE, J_SLEEVE, 0.0))
    bird, spring = body(M_BIRD, J_BIRD, L_BIRD), STIFFNESS / SCALE**2
    b.add_link("bird", "sleeve", axis, bird, translation=(L_SLEEVE / SCALE, 0, 0), stiffness=spring)
    gaps = {
        "beak": PoleGap("bird", L_SLEEVE + L_BIRD - L_BEAK - R_POLE, (L_BIRD - L_BEAK, H_BEAK)),
        "lower corner": PoleGap("sleeve", R_SLEEVE - R_POLE, (R_SLEEVE, -H_SLEEVE)),
        "upper corner": PoleGap("sleeve", R_SLEEVE - R_POLE, (R_SLEEVE, H_SLEEVE)),
    }
    contacts = [
        Contact(name, GapFunction(gap.link, "world", gap), 0.3, 0.5 if name == "beak" else 0.0, (0.0, 1.0, 0.0))
        for name, gap in gaps.items()
    ]
    return jd.System(b.build(), motion=ContactMotion(contacts, impacts=AllAtOnce(path=False)))


@eqx.filter_jit
def run(q, v, end):
    return simulate(woodpecker(), q, v, jnp.array([0.0, 1.0]) * end, max_events=64, rtol=1e-8, atol=1e-11)


def coordinates(y, sleeve, bird):
    return jnp.array([y, sleeve * SCALE, (bird - sleeve) * SCALE])


def heights_and_angles(x):
    x = np.asarray(x)
    return np.stack([x[..., 0], x[..., 1] / SCALE, (x[..., 1] + x[..., 2]) / SCALE], -1)


def test_a_woodpecker_descends_its_pole():
    """Pecks, speeds and state of time stepping with the steps h = 5e-6 s and 2e-5 s, whose errors are of the order h.

    Friction of an impact opposes the slip after it (Moreau 1988), as in the reference. With the exact impact path, in
    which the slip of the beak reverses, the sleeve turns faster after a peck and the second peck is 4 ms later.
    """
    out = run(coordinates(0.0, -0.1036, -0.2788), coordinates(-0.3411, 0.0, -7.4583), jnp.asarray(0.3))
    n = int(out.phases.count)
    assert out.status == SimulationStatus.FINISHED
    pecks = np.flatnonzero(np.asarray(out.phases.impulse[:n, 0]) > 0)
    times = np.asarray(out.phases.time)[pecks]
    before, after = heights_and_angles(out.phases.v_before)[pecks], heights_and_angles(out.phases.v)[pecks]
    assert_allclose(times, (0.08102, 0.22692), atol=1.5e-4)
    assert_allclose(before[0, 2], 16.9375, rtol=1e-3)
    assert_allclose(after[:, 2], -0.5 * before[:, 2], rtol=2e-4)  # the sleeve turns too: a term of the order SCALE
    assert_allclose(heights_and_angles(out.q[-1]), (-0.04135, -0.10347, -0.3411), atol=2e-3)
    assert_allclose(heights_and_angles(out.v[-1]), (-0.2599, 0, -8.330), atol=3e-2)
    energy = np.asarray(out.energy)
    assert energy[-1] < energy[0]
