"""The phases of a contact task in one simulation: approach, impact, motion along a surface under force control."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn._errors import ModelError
from jaxdyn.contact import Contact, ContactFeedback, ContactMotion, Gap, Plane, Point
from jaxdyn.control import POSITION, HybridPositionForce, OperationalSpace
from jaxdyn.joints import Prismatic
from jaxdyn.simulation import SimulationStatus
from jaxdyn.spatial import Pose, point_mass

HEIGHT, FORCE, SPEED = -1.5, 12.0, 0.2
START = jnp.array([-1.23368072, 1.63834769])  # the tip at (0.55, -1.25)


def _approach(t):
    return Pose(jnp.eye(3), jnp.stack([0.5 + 0 * t, 0 * t, -1.3 - 0.3 * t]))


def _wipe(t):
    return Pose(jnp.eye(3), jnp.stack([0.5 + SPEED * t, 0 * t, HEIGHT + 0 * t]))


def _height(p):
    return p[2] - HEIGHT


@pytest.mark.slow
def test_arm_approaches_touches_and_wipes():
    """The force is exact on a rigid surface without friction; errors along it die out with the poles of the law."""
    arm = jd.robots.double_pendulum()
    table = Contact("table", Gap("tip", Point(), ("world", (0, 0, HEIGHT)), Plane()), plane=(0, 1, 0))
    motion = ContactMotion(table)
    move = OperationalSpace(arm, "tip", _approach, kp=100.0, kd=20.0, rows=POSITION[jnp.array([0, 2])])
    press = HybridPositionForce(arm, "tip", _wipe, _height, force=FORCE, kp=100.0, kd=20.0)
    system = jd.System(arm, (ContactFeedback(motion, "table", move, press),), motion)
    ts = jnp.linspace(0.0, 2.5, 26)
    run = jd.simulate(system, START, jnp.zeros(2), ts)
    assert run.status == SimulationStatus.FINISHED and run.phases.count == 2
    touch = run.phases.time[1]
    np.testing.assert_array_equal(run.modes.closed[:, 0], ts > touch)
    assert run.phases.impulse[1, 0] > 0.05  # N s
    place = lambda q: jd.frame_pose(arm, q, "tip").translation
    position, velocity = jax.vmap(lambda q, v: jax.jvp(place, (q,), (v,)))(run.q, run.v)
    pressed = np.asarray(run.contacts.normal_force[:, 0])[ts > touch]
    np.testing.assert_allclose(pressed, FORCE, rtol=1e-6)
    np.testing.assert_allclose(velocity[-1], [SPEED, 0, 0], atol=1e-6)
    np.testing.assert_allclose(position[-1], [0.5 + SPEED * 2.5, 0, HEIGHT], atol=1e-6)


# One mass and one surface, with closed forms


class Descend(eqx.Module):
    """Constant acceleration."""

    acceleration: Any

    def __call__(self, t, q, v):
        return 9.81 - self.acceleration[None]


class Press(eqx.Module):
    """A force that falls with time."""

    force: Any

    def __call__(self, t, q, v):
        return (9.81 - self.force * (1 - t))[None]


@pytest.mark.exhaustive
def test_switches_of_the_law_have_their_derivatives():
    """1 kg descends 0.1 m with acceleration a, and rests under the force `F (1 - t)`."""
    b = jd.ModelBuilder()
    probe = b.add_link("probe", "world", Prismatic((0, 0, 1)), point_mass(1.0)).build()
    motion = ContactMotion(Contact("table", Gap("probe", Point(), "world", Plane())))

    @jax.jit
    def final(a, F):
        law = ContactFeedback(motion, "table", Descend(a), Press(F))
        system = jd.System(probe, (law,), motion)
        run = jd.simulate(system, jnp.array([0.1]), jnp.zeros(1), jnp.array([0.0, 0.8]), adjoint=diffrax.ForwardMode())
        return jnp.append(run.phases.time[1], run.contacts.normal_force[-1]), run.status

    (values, status), slopes = final(0.5, 4.0), jax.jit(jax.jacfwd(lambda a, F: final(a, F)[0], (0, 1)))(0.5, 4.0)
    assert status == SimulationStatus.FINISHED
    touch = np.sqrt(2 * 0.1 / 0.5)
    np.testing.assert_allclose(values, [touch, 4.0 * 0.2], rtol=1e-7)
    np.testing.assert_allclose(slopes[0], [-touch / (2 * 0.5), 0], atol=1e-7)
    np.testing.assert_allclose(slopes[1], [0, 0.2], atol=1e-7)


def test_feedback_needs_a_contact_and_its_modes():
    probe = jd.robots.pendulum()
    motion = ContactMotion(Contact("table", Gap(probe.link_names[-1], Point(), "world", Plane())))
    law = Descend(jnp.zeros(()))
    with pytest.raises(ModelError, match=r"no contact 'floor'; expected one of \['table'\]"):
        ContactFeedback(motion, "floor", law, law)
    with pytest.raises(ModelError, match="has no modes of contact"):
        ContactFeedback(motion, "table", law, law).act(probe, 0.0, jnp.zeros(1), jnp.zeros(1), None)
