"""Pendulums and chains, whose equations are in every textbook."""

from jaxdyn.joints import Revolute
from jaxdyn.model import Model, ModelBuilder
from jaxdyn.spatial import cylinder, point_mass

_Y = (0.0, 1.0, 0.0)
_X = (1.0, 0.0, 0.0)


def pendulum(length=1.0, mass=1.0, *, damping=0.0) -> Model:
    """Point mass on a massless rod that turns about the y axis and hangs along -z at `q = 0`.

    `tau = m l^2 a + damping v + m g l sin q`, where `damping` is part of the passive forces. The mass is at
    the frame "tip". Lengths in m, masses in kg, damping in N m s/rad.
    """
    builder = ModelBuilder()
    tip = (0.0, 0.0, -length)
    builder.add_link("rod", "world", Revolute(_Y), point_mass(mass).moved(tip), damping=damping)
    return builder.add_frame("tip", "rod", translation=tip).build()


def double_pendulum(lengths=(1.0, 1.0), masses=(1.0, 1.0), *, damping=(0.0, 0.0)) -> Model:
    """Two point masses on massless rods, in the plane of x and z; straight down at `q = 0`.

    The second angle is relative to the first rod. With `h = m2 l1 l2 sin q2`,

        M11 = (m1 + m2) l1^2 + m2 l2^2 + 2 m2 l1 l2 cos q2,   M12 = m2 l2^2 + m2 l1 l2 cos q2,   M22 = m2 l2^2
        c1 = -h v2 (2 v1 + v2),   c2 = h v1^2

    (e.g. Spong, Hutchinson and Vidyasagar 2006, section 7.4). Frames "elbow" and "tip" are at the masses.
    """
    builder = ModelBuilder()
    elbow, tip = (0.0, 0.0, -lengths[0]), (0.0, 0.0, -lengths[1])
    builder.add_link("upper", "world", Revolute(_Y), point_mass(masses[0]).moved(elbow), damping=damping[0])
    builder.add_link(
        "lower",
        "upper",
        Revolute(_Y),
        point_mass(masses[1]).moved(tip),
        translation=elbow,
        damping=damping[1],
    )
    builder.add_frame("elbow", "upper", translation=elbow)
    return builder.add_frame("tip", "lower", translation=tip).build()


def chain(n: int, length=0.1, mass=0.1, radius=0.01) -> Model:
    """Hanging chain of `n` equal solid cylinders; joints turn about y and x in turn.

    Every link points along its own -z axis and is `length` (m) long, `mass` (kg) heavy and `radius` (m)
    thick, so at `q = 0` the frame "tip" is `n * length` below the world's origin.
    """
    if n < 1:
        raise ValueError(f"a chain has at least one link, not {n}")
    end = (0.0, 0.0, -length)
    body = cylinder(radius, length, mass=mass).moved((0.0, 0.0, -length / 2))
    builder = ModelBuilder()
    for k in range(n):
        parent = f"link{k - 1}" if k else "world"
        start = end if k else (0.0, 0.0, 0.0)
        joint = Revolute(_X if k % 2 else _Y)
        builder.add_link(f"link{k}", parent, joint, body, joint_name=f"joint{k}", translation=start)
    return builder.add_frame("tip", f"link{n - 1}", translation=end).build()
