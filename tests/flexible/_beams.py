"""Flexible arms of the tests."""

import jax
import jax.numpy as jnp

import jaxdyn as jd
from jaxdyn.beams import Beam, Material, Profile, SectionProperties
from jaxdyn.flexible import Strains, add_flexible_link
from jaxdyn.joints import Revolute

#: the rotary inertia of a section, which most references neglect, is divided by this number
SLENDER = 1e14


def slender_beam(length, stiffness, mass):
    """A beam with the bending stiffness E I (N m^2) and the mass per length (kg/m), of negligible rotary inertia."""
    area = 1.0
    second = area / SLENDER
    modulus = stiffness / second
    numbers = SectionProperties(area, second, second, second)
    return Beam(Profile(numbers), Material(mass / area, modulus, modulus), length)


def seed_beam():
    """The steel bar of the example in section 5.2 of Celentano (2008): 2 m long, 1 cm square."""
    return slender_beam(2.0, 1e11 * 0.01**4 / 12, 7876 * 0.01**2)


def planar_arm(beam, sublinks, *, joint=None, gravity=(0.0, 0.0, 0.0), payload=None, strains=None):
    """A planar flexible arm along x: the model and its part. It is clamped, or turns in a joint about z."""
    builder = jd.ModelBuilder(gravity=gravity)
    part = add_flexible_link(
        builder, "arm", "world", joint, beam=beam, sublinks=sublinks, strains=strains or Strains.planar()
    )
    if payload is not None:
        builder.add_link("payload", part.tip, None, payload)
    return builder.build(), part


HINGE = Revolute([0, 0, 1])


@jax.jit
def frequencies(model, part):
    """Frequencies in the undeformed configuration, Hz."""
    mounted = part.mount(model)
    return jd.modes(mounted, jnp.zeros(mounted.nq), gravity=False).frequencies / (2 * jnp.pi)
