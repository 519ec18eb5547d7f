"""Industrial and historical arms, from their Denavit-Hartenberg tables."""

import math

import numpy as np

from jaxdyn.model import DHRow, Model, from_denavit_hartenberg, from_modified_denavit_hartenberg
from jaxdyn.spatial import Inertia, cylinder

_QUARTER = math.pi / 2

# Armstrong, Khatib and Burdick 1986: mass, centre of mass, diagonal of the inertia about it; for the changes of links 1
# and 3 see the docstring.
_PUMA = (
    (0.0, (0.0, 0.0, 0.0), (0.175, 0.175, 0.35)),
    (17.40, (0.068, 0.006, -0.016), (0.130, 0.524, 0.539)),
    (4.80, (0.0, -0.070, 0.014), (0.0735, 0.0125, 0.086)),
    (0.82, (0.0, 0.0, -0.019), (1.8e-3, 1.8e-3, 1.3e-3)),
    (0.34, (0.0, 0.0, 0.0), (0.3e-3, 0.3e-3, 0.4e-3)),
    (0.09, (0.0, 0.0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3)),
)
# moments of the paper that no rigid body has, by link
_PUMA_PUBLISHED = {0: (0.0, 0.0, 0.35), 2: (0.066, 0.0125, 0.086)}
_PUMA_MOTORS = (1.14, 4.71, 0.827, 0.200, 0.179, 0.193)  # effective inertia at the joint, kg m^2
_PUMA_EFFORT = (97.6, 186.4, 89.4, 24.2, 20.1, 21.3)  # N m


def puma560(*, a2=0.4318, a3=-0.0203, d2=0.2435, d3=-0.0934, d4=0.4331, published_inertia: bool = False) -> Model:
    """The 6-joint arm Unimation PUMA 560, from the shoulder on, with the inertia of its motors.

    Geometry (modified Denavit-Hartenberg convention, arguments in m), masses, inertias, effective motor inertias and
    torque limits are those of Armstrong, Khatib and Burdick, "The explicit dynamic model and inertial
    parameters of the PUMA 560 arm", ICRA 1986. Frame 0 is at the shoulder with z up along the first axis; at
    `q = 0` the upper arm points along x and the forearm along z.

    Some moments of inertia differ from the paper, because no rigid body has them. For the first link the paper gives
    only the inertia about the joint axis, the only one with an effect: here the other two are half of it, and the mass
    is zero. For the third link the paper gives the measured (0.066, 0.0125, 0.086) kg m^2, which violate the triangle
    inequality; here the first is 0.0735, which adds at most 0.0075 kg m^2 to M11. `published_inertia` keeps the numbers
    of the paper, with zero where it gives none, and a note in `Model.report`. The paper gives no friction and no
    joint ranges. Frame "link6_dh" is frame 6, at the centre of the wrist.
    """
    rows = (
        DHRow(),
        DHRow(0.0, -_QUARTER, d2),
        DHRow(a2, 0.0, d3),
        DHRow(a3, _QUARTER, d4),
        DHRow(0.0, -_QUARTER),
        DHRow(0.0, _QUARTER),
    )
    moments = [_PUMA_PUBLISHED.get(k, i) if published_inertia else i for k, (_, _, i) in enumerate(_PUMA)]
    bodies = [Inertia(m, np.array(c), np.diag(i)) for (m, c, _), i in zip(_PUMA, moments, strict=True)]
    return from_modified_denavit_hartenberg(
        rows,
        bodies,
        name="PUMA 560",
        allow_unphysical_inertia=published_inertia,
        armature=_PUMA_MOTORS,
        effort=_PUMA_EFFORT,
    )


# Paul 1981, tables 6.4 and 6.6, in the reading of Corke's Robotics Toolbox: mass, centre of mass, diagonal of
# the inertia about the origin of the link's frame.
_STANFORD = (
    (9.29, (0.0, 0.0175, -0.1105), (0.276, 0.255, 0.071)),
    (5.01, (0.0, -0.1054, 0.0), (0.108, 0.018, 0.100)),
    (4.25, (0.0, 0.0, -0.6447), (2.51, 2.51, 0.006)),
    (1.08, (0.0, 0.0092, -0.0054), (0.002, 0.001, 0.001)),
    (0.63, (0.0, 0.0, 0.0566), (0.003, 0.003, 0.0004)),
    (0.51, (0.0, 0.0, 0.1554), (0.013, 0.013, 0.0003)),
)
_STANFORD_MOTORS = (0.953, 2.193, 0.782, 0.106, 0.097, 0.020)  # reflected, kg m^2; kg for the third
_INCH = 0.0254


def stanford_arm(*, d1=0.412, d2=0.154, d6=0.263) -> Model:
    """The Stanford arm of Scheinman: two revolute joints, a prismatic joint, and a wrist of three revolute joints.

    Geometry in the classic Denavit-Hartenberg convention (m) after Paul, "Modelling, trajectory calculation and
    servoing of a computer controlled arm", Stanford AIM-177, 1972; masses and inertias after Paul, "Robot
    Manipulators", 1981, tables 6.4 and 6.6; ranges after Dobrotin and Scheinman 1973. The numbers are taken from
    Corke's Robotics Toolbox for MATLAB, whose centres of mass of links 2 to 6 are ten times too large (6.4 m for
    the boom); here they are in m. Its inertias cannot be about the centres of mass: a bar with 2.51 kg m^2 and
    4.25 kg would be 2.7 m long. They are interpreted as inertias about the origins of the link frames, as in the
    book's pseudo-inertia matrices. The last body is given in a frame at the wrist, where the book places its last
    frame, and not at `d6`. With this interpretation the table gives the effective inertias of joints 1 to 5 that are
    quoted from Bejczy, "Robot arm dynamics and control", JPL TM 33-669, 1974, and 0.020 kg m^2 for joint 6, half of the
    quoted value. The report of Bejczy itself was not available for comparison.

    With the prismatic coordinate `q_3` the centre of the wrist is at

        (cos q1 sin q2 q3 - sin q1 d2, sin q1 sin q2 q3 + cos q1 d2, cos q2 q3 + d1).
    """
    rows = (
        DHRow(0.0, -_QUARTER, d1),
        DHRow(0.0, _QUARTER, d2),
        DHRow(0.0, 0.0, 0.0, -_QUARTER, slides=True),
        DHRow(0.0, -_QUARTER),
        DHRow(0.0, _QUARTER),
        DHRow(0.0, 0.0, d6),
    )
    bodies = []
    for m, c, about_origin in _STANFORD:
        com = np.array(c)
        bodies.append(Inertia(m, com, np.diag(about_origin) - m * (com @ com * np.eye(3) - np.outer(com, com))))
    bodies[-1] = bodies[-1].moved((0.0, 0.0, -d6))  # given in a frame at the wrist
    angle = math.radians(170)
    upper = (angle, angle, 50 * _INCH, angle, math.radians(90), angle)
    lower = (-angle, -angle, 12 * _INCH, -angle, -math.radians(90), -angle)
    return from_denavit_hartenberg(
        rows, bodies, name="Stanford arm", armature=_STANFORD_MOTORS, lower=lower, upper=upper
    )


# Mass and centre of mass in the frames of the table (Universal Robots); radius, length and axis of the cylinder that
# approximates the link in the package ur_description.
_UR5 = (
    (3.7000, (0.0, -0.02561, 0.00193), 0.075, 0.178, 1),
    (8.3930, (0.2125, 0.0, 0.11336), 0.06, 0.425, 0),
    (2.3300, (0.15, 0.0, 0.0265), 0.06, 0.39225, 0),
    (1.2190, (0.0, -0.0018, 0.01634), 0.06, 0.095, 1),
    (1.2190, (0.0, 0.0018, 0.01634), 0.06, 0.085, 1),
    (0.1879, (0.0, 0.0, -0.001159), 0.0375, 0.0305, 2),
)


def _cylinder_inertia(mass, radius, length, axis: int) -> np.ndarray:
    """Inertia of a solid cylinder along a coordinate axis."""
    across = mass * (3 * radius**2 + length**2) / 12
    diagonal = np.full(3, across)
    diagonal[axis] = mass * radius**2 / 2
    return np.diag(diagonal)


def ur5(*, d1=0.089159, a2=-0.425, a3=-0.39225, d4=0.10915, d5=0.09465, d6=0.0823) -> Model:
    """The 6-joint arm Universal Robots UR5 (of the CB series), without a tool.

    Denavit-Hartenberg parameters (classic, arguments in m), masses and centres of mass are those of Universal Robots,
    "Parameters for calculations of kinematics and dynamics". The manufacturer gives no inertias for this arm; as in the
    package ur_description (ROS-Industrial), which is also the source of the torque and speed limits, inertias are those
    of solid cylinders, here about the manufacturer's centres of mass. The world frame is the controller's "Base"; the
    frame "tool" is the flange. Example:

    ```python
    import jax.numpy as jnp
    from jaxdyn import robots

    arm = robots.ur5()
    assert arm.nv == 6 and arm.frame_names[-1] == "tool"
    assert jnp.all(arm.limits.effort[:3] == 150.0)  # N m
    ```
    """
    rows = (
        DHRow(0.0, _QUARTER, d1),
        DHRow(a2),
        DHRow(a3),
        DHRow(0.0, _QUARTER, d4),
        DHRow(0.0, -_QUARTER, d5),
        DHRow(0.0, 0.0, d6),
    )
    bodies = [Inertia(m, np.array(c), _cylinder_inertia(m, r, length, axis)) for m, c, r, length, axis in _UR5]
    return from_denavit_hartenberg(
        rows,
        bodies,
        tool=np.eye(4),
        name="UR5",
        effort=(150.0, 150.0, 150.0, 28.0, 28.0, 28.0),
        velocity=(3.15, 3.15, 3.15, 3.2, 3.2, 3.2),
        lower=-2 * math.pi,
        upper=2 * math.pi,
    )


def scara(
    lengths=(0.325, 0.275), height=0.387, masses=(6.0, 4.0, 1.0), *, radius=0.05, stroke=0.21, quill=0.3
) -> Model:
    """A SCARA arm: two horizontal links, then a quill that translates downwards and rotates.

    With `l1, l2 = lengths` (m) the frame "tool" at the lower end of the quill is at

        (l1 cos q1 + l2 cos(q1 + q2), l1 sin q1 + l2 sin(q1 + q2), height - q3),   rotated by q1 + q2 - q4,

    and gravity acts on the prismatic joint alone. Lengths, `height` and `stroke` (m) are those of the Adept Cobra 600
    (Corke, Robotics Toolbox for MATLAB). Its masses are not published: the links are solid bars of `radius` (m) with
    the given `masses` (kg), and the quill is a bar of length `quill` (m) above the tool.
    """
    rows = (
        DHRow(lengths[0], 0.0, height),
        DHRow(lengths[1], math.pi),
        DHRow(slides=True),
        DHRow(),
    )
    z_to_x = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    bars = [
        cylinder(radius, length, mass=mass).moved((-length / 2, 0.0, 0.0), z_to_x)
        for length, mass in zip(lengths, masses[:2], strict=True)
    ]
    rod = cylinder(radius / 3, quill, mass=masses[2]).moved((0.0, 0.0, -quill / 2))
    bodies = [*bars, Inertia(0.0, np.zeros(3), np.zeros((3, 3))), rod]
    return from_denavit_hartenberg(
        rows,
        bodies,
        tool=np.eye(4),
        name="SCARA",
        lower=(-math.radians(50), -math.radians(88), 0.0, -np.inf),
        upper=(math.radians(50), math.radians(88), stroke, np.inf),
    )
