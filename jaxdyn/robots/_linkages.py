"""Closed-loop mechanisms: a spanning tree that is assembled at `q = 0`, and its loop closures.

Planar mechanisms lie in the plane of x and y, with joints about z and gravity along -y. Bars are thin and uniform,
along the x axis of their link, which points from its own joint to the next one. At `q = 0` the closures hold for all
dimensions that can be assembled, so that dimensions may be traced.
"""

import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._numerics import namespace
from jaxdyn.joints import Prismatic, Revolute
from jaxdyn.model import Model, ModelBuilder
from jaxdyn.spatial import Inertia, box, point_mass, rod

_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
_DOWN = (0.0, -9.81, 0.0)
_Z_TO_X = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
_Z_TO_Y = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])


def _bar(length, mass) -> Inertia:
    """Uniform bar along x, from the origin."""
    return rod(length, mass=mass).moved((length / 2, 0.0, 0.0), _Z_TO_X)


def _add_bar(builder: ModelBuilder, name: str, parent: str, length, mass, at, angle):
    """Adds a bar on a joint about z at `at` in its parent, at `angle` to the parent's x axis at zero."""
    joint = Revolute(_Z)
    position = (at[0], at[1], 0.0)
    builder.add_link(
        name, parent, joint, _bar(length, mass), joint_name=f"{name}_joint", translation=position, rpy=(0.0, 0.0, angle)
    )


def _end_point(length):
    return (length, 0.0, 0.0)


def _intersect_circles(first, second, lengths):
    """Angles of two bars from two points to their common end, to the left of the line from first to second."""
    xp = namespace((first, second, lengths))
    dx, dy = second[0] - first[0], second[1] - first[1]
    square = dx * dx + dy * dy
    inner = (square + lengths[0] ** 2 - lengths[1] ** 2) / (2 * lengths[0] * xp.sqrt(square))
    one = xp.arctan2(dy, dx) + xp.arccos(inner)
    meet = (first[0] + lengths[0] * xp.cos(one), first[1] + lengths[0] * xp.sin(one))
    return one, xp.arctan2(meet[1] - second[1], meet[0] - second[0])


def _bar_end(length, angle):
    """End of a bar that begins at the origin."""
    xp = namespace((length, angle))
    return length * xp.cos(angle), length * xp.sin(angle)


def _check_reach(what: str, span, least, most):
    """Raises `ModelError` if bars cannot be assembled across a concrete distance."""
    if namespace((span, least, most)) is np and not least < span < most:
        raise ModelError(
            f"{what} cannot be assembled: two of its bars span {float(least):.4g} to {float(most):.4g} m, but "
            f"their ends are {float(span):.4g} m apart; change the lengths or the angle"
        )


def four_bar(lengths=(1.10, 0.5, 1.20, 0.75), masses=(1.0, 2.0, 1.5), *, crank=1.0) -> Model:
    """A four-bar linkage: crank and rocker on the ground, and the coupler between their ends.

    Arguments:

    * `lengths`: of ground, crank, coupler and rocker, m; by default a crank-rocker.
    * `masses`: of crank, coupler and rocker, kg.
    * `crank`: angle of the crank to the ground at `q = 0`, rad.

    The ground lies along x from the origin. At `q = 0` the linkage is open, not crossed; the angles of crank and rocker
    are measured from there, the angle of the coupler relative to the crank. The closure "pin" connects the ends of
    coupler and rocker. Freudenstein 1955 has the closed form. Raises `ModelError` if it cannot be assembled. Example:

    ```python
    import jax.numpy as jnp
    from jaxdyn import frame_pose, robots

    model = robots.four_bar()
    assert model.nv == 3 and model.closures[0].name == "pin"
    tree = jnp.zeros(3)  # assembled
    assert frame_pose(model, tree, "rocker").translation[0] > 1.0
    ```
    """
    ground, a, b, c = lengths
    first, second = _bar_end(a, crank), (ground, 0.0)
    gap = namespace((first, ground)).hypot(first[0] - ground, first[1])
    _check_reach("the four-bar linkage", gap, abs(b - c), b + c)
    coupler, rocker = _intersect_circles(first, second, (b, c))
    builder = ModelBuilder(_DOWN, "four-bar")
    _add_bar(builder, "crank", "world", a, masses[0], (0.0, 0.0), crank)
    _add_bar(builder, "coupler", "crank", b, masses[1], (a, 0.0), coupler - crank)
    _add_bar(builder, "rocker", "world", c, masses[2], second, rocker)
    builder.add_closure("pin", "point", ("coupler", _end_point(b)), ("rocker", _end_point(c)))
    return builder.build()


def slider_crank(lengths=(0.2, 0.5), masses=(1.0, 1.0, 2.0), *, crank=1.0) -> Model:
    """A crank, a connecting rod and a slider along the x axis.

    `lengths` of crank and rod (m), `masses` of crank, rod and slider (kg). At `q = 0` the crank is at the angle `crank`
    (rad), from which its coordinate is measured; the angle of the rod is relative to the crank. At the crank angle t
    the slider is at

        x = r cos t + sqrt(l^2 - r^2 sin^2 t)

    since `(x - r cos t)^2 + (r sin t)^2 = l^2`; its coordinate is the displacement from `q = 0`. The closure "pin"
    connects the end of the rod to the slider.
    """
    r, l = lengths
    b = _bar_end(r, crank)
    xp = namespace((b, l))
    _check_reach("the slider-crank", abs(b[1]), -l, l)
    reach = xp.sqrt(l * l - b[1] * b[1])
    builder = ModelBuilder(_DOWN, "slider-crank")
    _add_bar(builder, "crank", "world", r, masses[0], (0.0, 0.0), crank)
    _add_bar(builder, "rod", "crank", l, masses[1], (r, 0.0), xp.arctan2(-b[1], reach) - crank)
    at = (b[0] + reach, 0.0, 0.0)
    builder.add_link("slider", "world", Prismatic(_X), point_mass(masses[2]), joint_name="slider_joint", translation=at)
    builder.add_closure("pin", "point", ("rod", _end_point(l)), ("slider", (0.0, 0.0, 0.0)))
    return builder.build()


def five_bar(lengths=(0.3, 0.25, 0.4), masses=(0.5, 0.4), *, cranks=(2 * np.pi / 3, np.pi / 3), gravity=_DOWN) -> Model:
    """A five-bar linkage: two cranks on the ground and two rods that meet at the tool; 2 degrees of freedom.

    `lengths` of ground, cranks and rods (m), `masses` of a crank and a rod (kg). The ground lies along x from the
    origin; at `q = 0` the cranks "left" and "right" are at the angles `cranks` to it (rad), and the rods meet above, at
    the intersection of the circles about the ends of the cranks. Crank angles are measured from there, rod angles
    relative to their cranks. The closure "pin" connects the ends of "left_rod" and "right_rod", the frame "tool".
    """
    ground, a, b = lengths
    left, right = _bar_end(a, cranks[0]), _bar_end(a, cranks[1])
    right = (right[0] + ground, right[1])
    xp = namespace((left, right))
    _check_reach("the five-bar linkage", xp.hypot(right[0] - left[0], right[1] - left[1]), 0.0 * b, 2 * b)
    angles = _intersect_circles(left, right, (b, b))
    builder = ModelBuilder(gravity, "five-bar")
    for k, side in enumerate(("left", "right")):
        at = (ground if k else 0.0, 0.0)
        _add_bar(builder, side, "world", a, masses[0], at, cranks[k])
        _add_bar(builder, f"{side}_rod", side, b, masses[1], (a, 0.0), angles[k] - cranks[k])
    builder.add_closure("pin", "point", ("left_rod", _end_point(b)), ("right_rod", _end_point(b)))
    return builder.add_frame("tool", "left_rod", translation=_end_point(b)).build()


def n_four_bar(n: int = 2) -> Model:
    """The N-four-bar mechanism: n squares in a row on the ground, with 2 n + 1 bars of 1 m and 1 kg.

    Upright bars "bar0" to "bar<n>" stand on (k, 0); bars "top1" to "top<n>" lie on them, top k jointed to bar k - 1
    and pinned to bar k by the closure "pin<k>". The frames "B0" to "B<n>" are the upper ends of the upright bars.
    It has one degree of freedom, and n + 1 where all bars are collinear. The benchmark starts upright, with B0 moving
    at 1 m/s along x: all upright bars rotate at -1 rad/s, and the tops at 1 rad/s relative to them.

    Bayo and Avello, "Singularity-free augmented Lagrangian algorithms for constrained multibody dynamics", Nonlinear
    Dynamics 5, 1994; problem A02 of the IFToMM library of benchmarks (Gonzalez, Dopico, Lugris and Cuadrado 2006).
    """
    if n < 1:
        raise ValueError(f"n is {n}, expected at least 1 loop")
    builder = ModelBuilder(_DOWN, f"{n}-four-bar")
    for k in range(n + 1):
        _add_bar(builder, f"bar{k}", "world", 1.0, 1.0, (float(k), 0.0), np.pi / 2)
        builder.add_frame(f"B{k}", f"bar{k}", translation=_end_point(1.0))
        if k < n:
            _add_bar(builder, f"top{k + 1}", f"bar{k}", 1.0, 1.0, (1.0, 0.0), -np.pi / 2)
    for k in range(1, n + 1):
        builder.add_closure(f"pin{k}", "point", (f"top{k}", _end_point(1.0)), (f"bar{k}", _end_point(1.0)))
    return builder.build()


def bricard(length=1.0, mass=1.0, thickness=0.1) -> Model:
    """Bricard's mechanism: six bars along edges of a cube and six joints, overconstrained with one degree of freedom.

    Joints are at (0,0,0), (1,0,0), (1,-1,0), (1,-1,1), (0,-1,1), (0,0,1) times `length`, with axes along y, z, x, y, z,
    x; the sixth bar, from the last joint to the first, is the ground. "bar1" to "bar5" are solid bars of square section
    with the edge `thickness` (m); their frames are parallel to the world at `q = 0`. The closure "loop" is the sixth
    joint; the rank of its 5 constraints is 4 in every configuration. Gravity is along -y. Frame "P3" is the third
    joint.

    Bricard 1897; problem A04 of the IFToMM library of benchmarks (Gonzalez, Dopico, Lugris and Cuadrado 2006).
    """
    corners = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], float)
    solid = box((thickness, thickness, length), mass=mass)  # along z
    axes = {0: _Z_TO_X, 1: _Z_TO_Y, 2: np.eye(3)}
    builder = ModelBuilder(_DOWN, "Bricard")
    for k, axis in enumerate((_Y, _Z, _X, _Y, _Z)):
        edge = corners[k + 1] - corners[k]
        middle = tuple(x * length / 2 for x in edge)
        body = solid.moved(middle, axes[int(np.abs(edge).argmax())])
        start = tuple(x * length for x in corners[k] - corners[max(k - 1, 0)])
        parent = f"bar{k}" if k else "world"
        builder.add_link(f"bar{k + 1}", parent, Revolute(axis), body, joint_name=f"joint{k + 1}", translation=start)
    end = tuple(x * length for x in corners[5] - corners[4])
    about_x = np.array([np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0])  # rotates z to x
    loop = ("world", (about_x, (0.0, 0.0, length)))
    builder.add_closure("loop", "revolute", ("bar5", (about_x, end)), loop)
    builder.add_frame("P3", "bar3")
    return builder.build()


def delta(radii=(0.2, 0.05), lengths=(0.3, 0.8), masses=(1.0, 0.3, 0.5), *, angle=0.5) -> Model:
    """A delta robot: three arms on a base move a platform in translation.

    Arguments:

    * `radii`: of base and platform, m.
    * `lengths`: of the upper arms and of the parallelograms below them, m.
    * `masses`: of an upper arm, of a parallelogram (both rods) and of the platform, kg.
    * `angle`: of the arms below the horizontal at `q = 0`, rad; arm coordinates are positive downwards from there.

    z is up; at `q = 0` the platform is on the axis. The parallelograms keep the orientation of the platform and a
    distance: the platform has prismatic joints "x", "y", "z", each parallelogram is a closure "rod<k>" of kind
    "distance", and half of its mass is at each end.

    Clavel, "DELTA, a fast robot with parallel geometry", 1988; the shared masses are those of Codourey, "Dynamic
    modeling of parallel robots for computed-torque control implementation", IJRR 17(12), 1998. Default
    dimensions and masses are round numbers for a table-top robot, not those of an existing one.
    """
    base, platform = radii
    upper, lower = lengths
    out, below = _bar_end(upper, angle)
    across = base + out - platform
    xp = namespace((across, lower))
    _check_reach("the delta robot", abs(across), -lower, lower)
    height = below + xp.sqrt(lower * lower - across * across)
    builder = ModelBuilder(name="delta")
    for k in range(3):
        turn = 2 * np.pi * k / 3
        c, s = np.cos(turn), np.sin(turn)
        arm = _bar(upper, masses[0]) + point_mass(masses[1] / 2).moved(_end_point(upper))
        at, attitude = (base * c, base * s, 0.0), (0.0, angle, turn)
        builder.add_link(
            f"arm{k + 1}", "world", Revolute(_Y), arm, joint_name=f"arm{k + 1}_joint", translation=at, rpy=attitude
        )
    home = (0.0, 0.0, -height)
    builder.add_link("slide_x", "world", Prismatic(_X), joint_name="x", translation=home)
    builder.add_link("slide_y", "slide_x", Prismatic(_Y), joint_name="y")
    load = point_mass(masses[2] + 1.5 * masses[1])
    builder.add_link("platform", "slide_y", Prismatic(_Z), load, joint_name="z")
    for k in range(3):
        turn = 2 * np.pi * k / 3
        corner = (platform * np.cos(turn), platform * np.sin(turn), 0.0)
        builder.add_closure(
            f"rod{k + 1}", "distance", (f"arm{k + 1}", _end_point(upper)), ("platform", corner), length=lower
        )
    return builder.build()
