"""A tool on a vertical guide over a floor, and the jitted simulation of its impacts."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

import jaxdyn as jd
from jaxdyn.contact import CompliantContact, Gap, Plane, Point
from jaxdyn.joints import Prismatic
from jaxdyn.simulation import switching_events
from jaxdyn.spatial import point_mass

GRAVITY = 9.81
#: models (b), (c) and (d) of a dynamic environment: mass of the tool, kg, and speed at touch-down after 0.1 m, m/s
TOOL_MASS = 2.0
TOUCH_SPEED = (2 * GRAVITY * 0.1) ** 0.5
FLOOR = Gap("tool", Point(), "world", Plane())


def tool(mass=TOOL_MASS, gravity=GRAVITY):
    """A point mass on a vertical guide; q is its height."""
    b = jd.ModelBuilder(gravity=(0.0, 0.0, -1.0))
    model = b.add_link("tool", "world", Prismatic([0, 0, 1]), point_mass(1.0)).build()
    return eqx.tree_at(lambda m: (m.links.mass, m.gravity), model, (jnp.array([mass]), jnp.array([0, 0, -gravity])))


def turning(model, t, q, v):
    """The velocity: the tool is deepest where it becomes positive."""
    return v[0]


@eqx.filter_jit
def drop(law, mass, gravity, height, velocity, ts, adjoint=None):
    """The trajectory of the tool with events where it is deepest (0) and where the contact switches."""
    system = jd.System(tool(mass, gravity), (CompliantContact(FLOOR, law),))
    return jd.simulate(
        system,
        jnp.reshape(height, (1,)),
        jnp.reshape(velocity, (1,)),
        ts,
        events=(jd.Event(turning, direction=1), *switching_events(system)),
        rtol=1e-11,
        atol=1e-13,
        adjoint=adjoint,
    )


@eqx.filter_jit
def impacts(laws, mass, speeds, ts):
    """Impacts without gravity from just above the floor, for a batch of laws and speeds."""
    one = lambda law, speed: drop(law, mass, 0.0, 1e-3, -speed, ts)
    return jax.vmap(one)(laws, speeds)


def total_energy(system, path):
    """Energy of robot and contact at all times of a trajectory, J."""
    model, contact = system.model, system.parts[0]
    energy = lambda q, v: (
        jd.kinetic_energy(model, q, v) + jd.potential_energy(model, q) + contact.potential_energy(model, q)
    )
    return jax.jit(jax.vmap(energy))(path.q, path.v)


FORWARD = diffrax.ForwardMode()
