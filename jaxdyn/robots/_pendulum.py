"""Pendulums, the cart-pole and serial chains."""

import numpy as np

from jaxdyn.joints import Prismatic, Revolute
from jaxdyn.model import Model, ModelBuilder
from jaxdyn.spatial import cylinder, point_mass, rod

_Y = (0.0, 1.0, 0.0)
_X = (1.0, 0.0, 0.0)


def pendulum(length=1.0, mass=1.0, *, damping=0.0) -> Model:
    """Point mass on a massless rod that rotates about the y axis and hangs along -z at `q = 0`.

    `tau = m l^2 a + damping v + m g l sin q`, where `damping` is part of the passive forces: Lagrange's equation of
    the energies `m l^2 v^2 / 2` and `-m g l cos q`. The mass is at the frame "tip".

    Arguments: `length` (m), `mass` (kg), `damping` (N m s/rad). Example:

    ```python
    import jax.numpy as jnp
    from jaxdyn import gravity_forces, robots

    model = robots.pendulum(length=0.5, mass=2.0)
    torque = gravity_forces(model, jnp.array([jnp.pi / 2]))
    assert jnp.allclose(torque, 2.0 * 9.81 * 0.5)
    ```
    """
    builder = ModelBuilder(name="pendulum")
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
    builder = ModelBuilder(name="double pendulum")
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


def acrobot(lengths=(1.0, 2.0), masses=(1.0, 1.0), *, damping=(0.0, 0.0)) -> Model:
    """Two uniform rods with a motor at the elbow only, hanging along -z at `q = 0`.

    With `lc = l / 2`, `I = m l^2 / 12` and `h = m2 l1 lc2 sin q2`,

        M11 = m1 lc1^2 + I1 + m2 (l1^2 + lc2^2 + 2 l1 lc2 cos q2) + I2
        M12 = m2 (lc2^2 + l1 lc2 cos q2) + I2,   M22 = m2 lc2^2 + I2
        c1 = -h v2 (2 v1 + v2),   c2 = h v1^2
        g1 = (m1 lc1 + m2 l1) g sin q1 + g2,   g2 = m2 lc2 g sin(q1 + q2).

    Spong, "The swing up control problem for the acrobot", IEEE Control Systems Magazine 15(1), 1995, whose
    first angle is measured from the horizontal and whose inertias, 0.083 and 0.33 kg m^2, are rounded.
    The motor is the actuator "motor"; frames "elbow" and "tip" are at the ends of the rods.
    """
    builder = ModelBuilder(name="acrobot")
    elbow, tip = (0.0, 0.0, -lengths[0]), (0.0, 0.0, -lengths[1])
    for k, (name, end) in enumerate((("upper", elbow), ("lower", tip))):
        builder.add_link(
            name,
            "upper" if k else "world",
            Revolute(_Y),
            rod(lengths[k], mass=masses[k]).moved((0.0, 0.0, -lengths[k] / 2)),
            joint_name="elbow" if k else "shoulder",
            translation=elbow if k else (0.0, 0.0, 0.0),
            damping=damping[k],
        )
        builder.add_frame("tip" if k else "elbow", name, translation=end)
    return builder.add_actuator("motor", "elbow").build()


def cart_pole(masses=(1.0, 0.3), length=0.5, *, force=20.0, track=np.inf) -> Model:
    """A cart on a horizontal track along x with a point mass on a massless rod that hangs at `q = 0`.

    With the angle positive from the hanging position towards +x,

        (m1 + m2) a1 + m2 l (a2 cos q2 - v2^2 sin q2) = u,   m2 l cos q2 a1 + m2 l^2 a2 + m2 g l sin q2 = 0

    (Kelly, "An introduction to trajectory optimization: how to do your own direct collocation", SIAM Review 59(4),
    2017, also the source of the parameters). The actuator "push" pushes the cart within `force` (N); `track` (m) is the
    limit of its joint on either side. The mass is at the frame "tip".
    """
    builder = ModelBuilder(name="cart-pole")
    builder.add_link(
        "cart",
        "world",
        Prismatic(_X),
        point_mass(masses[0]),
        joint_name="slide",
        lower=-track,
        upper=track,
        effort=force,
    )
    tip = (0.0, 0.0, -length)
    pivot = Revolute((0.0, -1.0, 0.0))
    builder.add_link("pole", "cart", pivot, point_mass(masses[1]).moved(tip), joint_name="pivot")
    builder.add_frame("tip", "pole", translation=tip)
    return builder.add_actuator("push", "slide", range=(-force, force)).build()


def chain(n: int, length=0.1, mass=0.1, radius=0.01) -> Model:
    """Hanging chain of `n` equal solid cylinders in space, with joint axes alternating between y and x.

    Every link points along its own -z axis and is `length` (m) long, `mass` (kg) heavy and `radius` (m)
    thick, so that at `q = 0` the frame "tip" is `n * length` below the world's origin. The robot serves to scale
    computations: a cylinder has `m r^2 / 2` about its axis and `m (3 r^2 + l^2) / 12` normal to it. Example:

    ```python
    from jaxdyn import robots

    model = robots.chain(3)
    assert model.link_names == ("link0", "link1", "link2")
    ```
    """
    return _build_chain(n, length, mass, radius, (_Y, _X), "chain")


def planar_chain(n: int, length=0.1, mass=0.1, radius=0.01) -> Model:
    """Hanging chain of `n` equal solid cylinders in the plane of x and z: as `chain`, with all joints about y."""
    return _build_chain(n, length, mass, radius, (_Y, _Y), "planar chain")


def _build_chain(n: int, length, mass, radius, axes, name: str) -> Model:
    if n < 1:
        raise ValueError(f"n is {n}, expected at least 1 link")
    end = (0.0, 0.0, -length)
    body = cylinder(radius, length, mass=mass).moved((0.0, 0.0, -length / 2))
    builder = ModelBuilder(name=name)
    for k in range(n):
        parent = f"link{k - 1}" if k else "world"
        start = end if k else (0.0, 0.0, 0.0)
        joint = Revolute(axes[k % 2])
        builder.add_link(f"link{k}", parent, joint, body, joint_name=f"joint{k}", translation=start)
    return builder.add_frame("tip", f"link{n - 1}", translation=end).build()
