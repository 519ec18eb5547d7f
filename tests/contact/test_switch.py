"""Impacts, forces and modes of contacts at single instants, against reference values of a double pendulum at a wall.

Double pendulum of unit rods and point masses at `q = (-0.9, 1.084369656580)`, whose tip meets the wall `x = 0.6`.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.contact import Contact, ContactMotion, Gap, Newton, Plane, Point

pytestmark = pytest.mark.slow

Q, V = jnp.array([-0.9, 1.084369656580]), jnp.array([-1.5, 0.4])


def wall(friction=None, restitution: Any = 0.0, plane=(0.0, 1.0, 0.0)) -> Contact:
    surface = Plane((-1.0, 0.0, 0.0))
    return Contact("wall", Gap("tip", Point(), ("world", (0.6, 0.0, 0.0)), surface), friction, restitution, plane)


def touch(contact: Contact, v=V, tau=(0.0, 0.0)):
    """What happens at the wall: the result of the motion's switch, and the motion in the modes after it."""
    model = jd.robots.double_pendulum()
    motion = ContactMotion(contact)
    motion = motion.in_modes(motion.initial_modes(model, 0.0, Q, V))
    fired = jnp.zeros(motion.num_guards).at[0].set(1)
    forces = lambda motion, v: (jnp.asarray(tau), None)
    return jax.jit(lambda v: motion.switch(model, jnp.zeros(()), jnp.asarray(Q), v, fired, forces))(jnp.asarray(v))


@pytest.mark.parametrize(
    ("friction", "restitution", "impulse", "after"),
    [
        (None, 0.0, (2.052493943047,), (-1.313282164480, 2.143705459056)),
        (None, 0.5, (1.5 * 2.052493943047,), (-1.219923246720, 3.015558188584)),
        (0.1, 0.0, (2.073877423820, -0.207387742382), (-1.210170254423, 1.975393141671)),
        (0.3, 0.0, (2.118009505863, -0.635402851759), (-0.997363774375, 1.628023455751)),
        (1.2, 0.0, None, (0.0, 0.0)),
    ],
)
@pytest.mark.parametrize("plane", [(0.0, 1.0, 0.0), None], ids=["planar", "spatial"])
def test_an_impact_has_the_impulses_and_velocities_of_the_reference(friction, restitution, impulse, after, plane):
    out = touch(wall(friction, Newton(restitution), plane))
    np.testing.assert_allclose(out.v, after, atol=1e-9)
    if impulse is not None:
        np.testing.assert_allclose(out.impulse[0], impulse[0], atol=1e-9)
        np.testing.assert_allclose(jnp.linalg.norm(out.impulse[1:]), abs(sum(impulse[1:])), atol=1e-9)
    assert out.failure == 0


def test_a_plastic_impact_loses_the_energy_of_the_normal_motion():
    model = jd.robots.double_pendulum()
    out = touch(wall())
    lost = jd.kinetic_energy(model, Q, out.v) - jd.kinetic_energy(model, Q, V)
    np.testing.assert_allclose(lost, -2.066627578201, atol=1e-9)


@pytest.mark.parametrize(
    ("friction", "force", "acceleration"),
    [
        (None, 1.909505488271, (13.346456934330, -23.031478331011)),
        (0.3, 1.970456862665, (13.640366644414, -23.511234979672)),
    ],
)
def test_forces_after_the_plastic_impact_are_those_of_the_reference(friction, force, acceleration):
    """At the velocity after the plastic impact without friction, under the torques (3, -2)."""
    model, v = jd.robots.double_pendulum(), jnp.array([-1.313282164480, 2.143705459056])
    tau = jnp.array([3.0, -2.0])
    modes = touch(wall(friction), v, tau).modes
    motion = ContactMotion(wall(friction)).in_modes(modes)
    assert modes.closed[0] == 1 and (friction is None or modes.sliding[0] == 1)
    a = jax.jit(lambda v: motion.acceleration(model, jnp.zeros(()), jnp.asarray(Q), v, tau, None))(jnp.asarray(v))
    np.testing.assert_allclose(a, acceleration, atol=1e-7)
    normal = motion.guards(model, jnp.zeros(()), jnp.asarray(Q), jnp.asarray(v), lambda motion, v: (tau, None))[0]
    np.testing.assert_allclose(normal, force, atol=1e-7)
