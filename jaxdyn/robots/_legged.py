"""Legged robots: a quadruped, a planar biped and the rimless wheel."""

import math

import jax.numpy as jnp
import numpy as np

from jaxdyn.joints import Fixed, Free, Prismatic, Revolute
from jaxdyn.model import Model, ModelBuilder
from jaxdyn.spatial import Inertia

_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)

# Links of the left front leg: mass, centre of mass, inertia about it (xx xy xz yy yz zz).
_SOLO = {
    "base": (1.16115091, (0.0, 0.0, 0.0), (5.78574e-3, 0.0, 0.0, 1.938108e-2, 0.0, 2.476124e-2)),
    "shoulder": (0.14853845, (-0.078707, 0.01, 0.0), (3.024e-5, 4.671e-5, 0.0, 4.1193e-4, 0.0, 4.1107e-4)),
    "upper": (
        0.14853845,
        (1.377e-5, 1.935853e-2, -0.078707),
        (4.1107e-4, 0.0, 0.0, 4.1193e-4, 4.671e-5, 3.024e-5),
    ),
    "lower": (0.03070001, (0.0, 7.87644e-3, -0.08928215), (1.2024e-4, 0.0, 0.0, 1.2029e-4, 3.05e-6, 2.16e-6)),
    "foot": (0.00693606, (0.0, 0.0, 3.5767e-4), (5.7e-7, 0.0, 0.0, 8.4e-7, 0.0, 5.3e-7)),
}


def _leg_link(name: str, front: float, left: float) -> Inertia:
    """A link of a leg, mirrored from the left front leg as in the source description."""
    mass, (x, y, z), (xx, xy, xz, yy, yz, zz) = _SOLO[name]
    # Shoulders differ between front and hind legs; upper legs are rotated rather than mirrored from left to right.
    x_sign = front if name == "shoulder" else left if name == "upper" else 1.0
    matrix = np.array([[xx, left * xy, xz], [left * xy, yy, left * yz], [xz, left * yz, zz]])
    return Inertia(mass, np.array([x_sign * x, left * y, z]), matrix)


def quadruped(*, hip=(0.1946, 0.0875), offsets=(0.014, 0.03745, 0.008), upper=0.16, lower=0.16) -> Model:
    """The quadruped Solo12: a floating base and four legs of three joints, 18 degrees of freedom and 2.5 kg.

    Legs are "FL", "FR", "HL", "HR" (front, hind; left, right) with the joints "FL_HAA" (abduction of the hip, about
    x), "FL_HFE" (its flexion) and "FL_KFE" (the knee, both about y) and the links "FL_shoulder", "FL_upper",
    "FL_lower" and "FL_foot"; the foot is fixed, with its frame at the centre of its ball. At `q = 0` the legs point
    straight down. x points forward, y to the left, z up.

    Arguments (m):

    * `hip`: position of the hips in the base (forward, to the side).
    * `offsets`: lateral distance of hip flexion, knee and foot from the joint before.
    * `upper`, `lower`: lengths of the two halves of a leg.

    Grimminger et al., "An open torque-controlled modular robot architecture for legged locomotion research",
    IEEE RA-L 5(2), 2020, with the numbers of solo12.urdf in example-robot-data. Example:

    ```python
    from jaxdyn import robots

    model = robots.quadruped()
    assert (model.nq, model.nv) == (19, 18)
    assert model.joint("FL_KFE").q.start == 9
    ```
    """
    builder = ModelBuilder(name="Solo12")
    builder.add_link("base", "world", Free(), _leg_link("base", 1.0, 1.0), joint_name="base_joint")
    for leg, front, left in (("FL", 1.0, 1.0), ("FR", 1.0, -1.0), ("HL", -1.0, 1.0), ("HR", -1.0, -1.0)):
        chain = (
            ("shoulder", "HAA", Revolute(_X), (front * hip[0], left * hip[1], 0.0)),
            ("upper", "HFE", Revolute(_Y), (0.0, left * offsets[0], 0.0)),
            ("lower", "KFE", Revolute(_Y), (0.0, left * offsets[1], -upper)),
            ("foot", "ankle", Fixed(), (0.0, left * offsets[2], -lower)),
        )
        parent = "base"
        for part, joint_name, joint, at in chain:
            body, name = _leg_link(part, front, left), f"{leg}_{part}"
            builder.add_link(name, parent, joint, body, joint_name=f"{leg}_{joint_name}", translation=at)
            parent = name
    return builder.build()


def _add_planar_base(builder: ModelBuilder, name: str, body: Inertia):
    """Adds a body with the coordinates x, z and the angle about y."""
    builder.add_link(f"{name}_x", "world", Prismatic(_X), joint_name="x")
    builder.add_link(f"{name}_z", f"{name}_x", Prismatic(_Z), joint_name="z")
    builder.add_link(name, f"{name}_z", Revolute(_Y), body, joint_name="pitch")


_RABBIT_MOTOR = 0.000332 * 50**2  # rotor times the square of the gear ratio, kg m^2


def _hanging_link(mass, distance, about_end) -> Inertia:
    """A slender link with its centre of mass `distance` below its origin and the moment `about_end` about it."""
    central = about_end - mass * distance**2
    return Inertia(mass, jnp.asarray((0.0, 0.0, -distance), float), central * np.diag([1.0, 1.0, 0.0]))


def five_link_biped(
    lengths=(0.63, 0.4, 0.4), masses=(12.0, 6.8, 3.2), centers=(0.24, 0.11, 0.24), inertias=(1.33, 0.47, 0.20)
) -> Model:
    """The planar biped RABBIT: torso, femurs and tibias without feet, in the plane of x and z.

    Arguments, of torso, femur and tibia:

    * `lengths`, `masses`: m and kg.
    * `centers`: distance of the centre of mass from the hip (torso, femur) or the knee (tibia), m.
    * `inertias`: moment about that joint, kg m^2.

    Coordinates are x, z and pitch of the torso at the hip, then "left_hip", "left_knee", "right_hip" and "right_knee",
    all positive about y; at zero the torso is upright and the legs point straight down. Each of these four joints has a
    motor with a reflected inertia of 0.83 kg m^2. Frames "left_foot" and "right_foot" are the ends of the tibias,
    "head" is the end of the torso.

    Chevallereau et al., "RABBIT: a testbed for advanced control theory", IEEE Control Systems Magazine 23(5), 2003;
    identified parameters as in Westervelt, Grizzle, Chevallereau, Choi and Morris, "Feedback Control of Dynamic
    Bipedal Robot Locomotion", 2007. The moments are about the joints, as in the authors' programs for the kinetic
    energy; moments about the centres of mass would be impossible for a tibia of 0.4 m.
    """
    builder = ModelBuilder(name="RABBIT")
    _add_planar_base(builder, "torso", _hanging_link(masses[0], -centers[0], inertias[0]))
    builder.add_frame("head", "torso", translation=(0.0, 0.0, lengths[0]))
    for side in ("left", "right"):
        femur, tibia = (_hanging_link(masses[k], centers[k], inertias[k]) for k in (1, 2))
        knee = (0.0, 0.0, -lengths[1])
        for part, joint, parent, body, at in (
            ("femur", "hip", "torso", femur, (0.0, 0.0, 0.0)),
            ("tibia", "knee", f"{side}_femur", tibia, knee),
        ):
            names = {"joint_name": f"{side}_{joint}", "translation": at, "armature": _RABBIT_MOTOR}
            builder.add_link(f"{side}_{part}", parent, Revolute(_Y), body, **names)
            builder.add_actuator(f"{side}_{joint}_motor", f"{side}_{joint}")
        builder.add_frame(f"{side}_foot", f"{side}_tibia", translation=(0.0, 0.0, -lengths[2]))
    return builder.build()


def rimless_wheel(spokes: int = 8, length=1.0, mass=1.0, inertia=0.1) -> Model:
    """A free rimless wheel in the plane of x and z: a hub with massless spokes, rolling towards +x.

    Coordinates are x and z of the hub and the angle about y; at zero the frame "tip0" is straight below the hub, and
    "tip1", ..., `2 pi / spokes` apart, touch down next. `length` of a spoke in m, `mass` in kg, `inertia`
    about the hub in kg m^2. The model does not include contact.

    Walking on its spokes, with `J = inertia / (mass length^2)`, the wheel keeps the fraction
    `((cos(2 pi / spokes) + J) / (1 + J))^2` of its kinetic energy at a touchdown (McGeer, "Passive dynamic walking",
    IJRR 9(2), 1990); without inertia that is `cos^2`, and the mass matrix of the free wheel is singular.
    """
    if spokes < 3:
        raise ValueError(f"spokes is {spokes}, expected at least 3")
    builder = ModelBuilder(name="rimless wheel")
    _add_planar_base(builder, "hub", Inertia(mass, np.zeros(3), inertia * np.diag([0.5, 1.0, 0.5])))
    for k in range(spokes):
        angle = 2 * math.pi * k / spokes  # forward from the bottom
        builder.add_frame(f"tip{k}", "hub", translation=(length * math.sin(angle), 0.0, -length * math.cos(angle)))
    return builder.build()
