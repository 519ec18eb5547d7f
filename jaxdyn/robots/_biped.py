"""A planar biped pinned at its stance foot."""

import jax.numpy as jnp
import numpy as np

from jaxdyn.joints import Prismatic, Revolute
from jaxdyn.model import Model, ModelBuilder
from jaxdyn.spatial import Inertia

_X, _Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
_AXIS = (0.0, -1.0, 0.0)  # anticlockwise with x to the right and z up


def _slender_link(mass, height, inertia) -> Inertia:
    """A slender link with its centre of mass `height` above its origin and the central moment `inertia`."""
    return Inertia(mass, jnp.asarray((0.0, 0.0, height), float), inertia * np.diag([1.0, 1.0, 0.0]))


def walking_biped(
    lengths=(0.4, 0.4, 0.625),
    masses=(3.2, 6.8, 20.0),
    centers=(0.128, 0.163, 0.2),
    inertias=(0.93, 1.08, 2.22),
    *,
    floating: bool = False,
) -> Model:
    """The planar five-link biped of Kelly's walking example, in the plane of x and z, pinned at its stance foot.

    Links from the ground up, with the joint below each: "stance_tibia" on "stance_ankle", "stance_femur" on
    "stance_knee", "torso" on "stance_hip", "swing_femur" on "swing_hip", "swing_tibia" on "swing_knee". Joint
    angles are relative and positive anticlockwise, with x to the right and z up; sums along the chain are Kelly's
    absolute angles, so that the effort of joint k is his torque `u_k`. At zero the torso is upright over straight legs.
    The frame "swing_foot" is the end of the swing tibia, "head" the end of the torso.

    Arguments:

    * `lengths`, `masses`: of tibia, femur and torso, m and kg.
    * `centers`: distances of the centres of mass from the upper ends of the links, m.
    * `inertias`: moments about the centres of mass, kg m^2.
    * `floating`: add prismatic joints "x" and "z" below the stance foot, as required for the impact of the swing foot
      (`jaxdyn.constraints.impulse`).

    Joints have no limits, friction or rotors. A point foot exerts no moment: leave the effort of the ankle at zero.

    Kelly, "An introduction to trajectory optimization: how to do your own direct collocation", SIAM Review 59(4), 2017,
    section 7, and its program (OptimTraj, demo "fiveLinkBiped"), with the parameters of RABBIT of Westervelt, Grizzle
    and Koditschek, "Hybrid zero dynamics of planar biped walkers", IEEE TAC 48(1), 2003. `five_link_biped` has the
    identified parameters of the same robot, with its gears.
    """
    builder, root = ModelBuilder(name="walking biped"), "world"
    if floating:
        builder.add_link("foot_x", "world", Prismatic(_X), joint_name="x")
        builder.add_link("stance_foot", "foot_x", Prismatic(_Z), joint_name="z")
        root = "stance_foot"
    up, down = [l - c for l, c in zip(lengths, centers, strict=True)], [-c for c in centers]
    for leg, joint, parent, kind, heights, at in (
        ("stance_tibia", "stance_ankle", root, 0, up, 0.0),
        ("stance_femur", "stance_knee", "stance_tibia", 1, up, lengths[0]),
        ("torso", "stance_hip", "stance_femur", 2, up, lengths[1]),
        ("swing_femur", "swing_hip", "torso", 1, down, 0.0),
        ("swing_tibia", "swing_knee", "swing_femur", 0, down, -lengths[1]),
    ):
        body = _slender_link(masses[kind], heights[kind], inertias[kind])
        builder.add_link(leg, parent, Revolute(_AXIS), body, joint_name=joint, translation=(0.0, 0.0, at))
    builder.add_frame("head", "torso", translation=(0.0, 0.0, lengths[2]))
    builder.add_frame("swing_foot", "swing_tibia", translation=(0.0, 0.0, -lengths[0]))
    return builder.build()
