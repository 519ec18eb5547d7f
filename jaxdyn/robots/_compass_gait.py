"""The compass gait: two straight legs and a hip."""

import jax.numpy as jnp
import numpy as np

from jaxdyn.joints import Prismatic, Revolute
from jaxdyn.model import Model, ModelBuilder
from jaxdyn.spatial import Inertia, point_mass

_X, _Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
_AXIS = (0.0, -1.0, 0.0)  # anticlockwise with x to the right and z up


def _leg(mass, height, inertia) -> Inertia:
    """A slender leg with its centre of mass `height` above its origin."""
    return Inertia(mass, height * jnp.asarray(_Z), inertia * np.diag([1.0, 1.0, 0.0]))


def compass_gait(
    a=0.5, b=0.5, leg_mass=5.0, hip_mass=10.0, leg_inertia=0.0, *, gravity=9.81, floating: bool = False
) -> Model:
    """The compass gait, a planar walker of two straight legs without knees, pinned at its stance foot.

    Joints are "ankle", the angle of the link "stance_leg" from the vertical, and "hip", the angle of "swing_leg" from
    the stance leg; both are positive anticlockwise, with x to the right and z up. At zero the legs stand upright and
    coincide. The link "pelvis" is the mass at the hip, fixed to the stance leg; the frame "swing_foot" is the end of
    the swing leg. The model does not include contact; `jaxdyn.simulation.periodic_orbit` finds its gaits.

    Arguments:

    * `a`, `b`: distances of a leg's centre of mass from the foot and from the hip, m.
    * `leg_mass`, `hip_mass`: kg.
    * `leg_inertia`: moment of a leg about its centre of mass, kg m^2.
    * `gravity`: m/s^2.
    * `floating`: add prismatic joints "x" and "z" below the stance foot, as required for the impact of the swing foot
      (`jaxdyn.constraints.impulse`).

    With `a = 0`, light legs, and unit length, hip mass and gravity this is the simplest walking model of Garcia et al.
    Goswami, Espiau and Keramane, "Limit cycles and their stability in a passive bipedal gait", ICRA 1996; Garcia,
    Chatterjee, Ruina and Coleman, "The simplest walking model", J. Biomechanical Engineering 120(2), 1998.
    """
    builder, root = ModelBuilder(gravity=-gravity * jnp.asarray(_Z), name="compass gait"), "world"
    if floating:
        builder.add_link("foot_x", "world", Prismatic(_X), joint_name="x")
        builder.add_link("stance_foot", "foot_x", Prismatic(_Z), joint_name="z")
        root = "stance_foot"
    leg = (a + b) * jnp.asarray(_Z)
    builder.add_link("stance_leg", root, Revolute(_AXIS), _leg(leg_mass, a, leg_inertia), joint_name="ankle")
    builder.add_link("pelvis", "stance_leg", inertia=point_mass(hip_mass), translation=leg)
    swing = _leg(leg_mass, -b, leg_inertia)
    builder.add_link("swing_leg", "stance_leg", Revolute(_AXIS), swing, joint_name="hip", translation=leg)
    builder.add_frame("swing_foot", "swing_leg", translation=-leg)
    return builder.build()
