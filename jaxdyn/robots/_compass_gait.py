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


def compass_gait(a=0.5, b=0.5, leg_mass=5.0, hip_mass=10.0, leg_inertia=0.0, *, gravity=9.81, floating=False) -> Model:
    """The compass gait"""
    builder, root = ModelBuilder(gravity=-gravity * jnp.asarray(_Z), name="compass gait"), "world"
    if floating:
        builder.add_link("foot_x", "world", Prismatic(_X), joint_name="x")
        builder.add_link("foot", "foot_x", Prismatic(_Z), joint_name="z")
        root = "foot"
    leg = (a + b) * jnp.asarray(_Z)
    builder.add_link("stance_leg", root, Revolute(_AXIS), _leg(leg_mass, a, leg_inertia), joint_name="ankle")
    builder.add_link("pelvis", "stance_leg", inertia=point_mass(hip_mass), joint_name="pelvis_fixed", translation=leg)
    builder.add_link("swing_leg", "stance_leg", Revolute(_AXIS), _leg(leg_mass, -b, leg_inertia), joint_name="hip", translation=leg)
    builder.add_frame("swing_foot", "swing_leg", translation=-leg)
    return builder.build()
