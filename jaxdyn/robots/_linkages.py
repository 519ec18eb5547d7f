"""Closed mechanisms: a tree with `q = 0` in an assembled pose, and the closures that tie it up.

The planar ones lie in the plane of x and y, with joints about z and gravity along -y. Bars are thin and uniform
along the x axis of their link, which points from the joint that carries it to the next one. At `q = 0` the
closures hold for all dimensions that can be assembled, so dimensions may be traced.
"""

import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.joints import Prismatic, Revolute
from jaxdyn.model import Model, ModelBuilder
from jaxdyn.model._arrays import namespace
from jaxdyn.spatial import Inertia, box, point_mass, rod

_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
_DOWN = (0.0, -9.81, 0.0)
_Z_TO_X = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
_Z_TO_Y = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])


def _bar(length, mass) -> Inertia:
    """Uniform bar from the origin along x."""
    return rod(length, mass=mass).moved((length / 2, 0.0, 0.0), _Z_TO_X)


def _add_bar(builder: ModelBuilder, name: str, parent: str, length, mass, at, angle):
    """A bar on a joint about z at `at` in its parent, which points at `angle` to the parent's x axis at zero."""
    joint = Revolute(_Z)
    spot = (at[0], at[1], 0.0)
    builder.add_link(
        name, parent, joint, _bar(length, mass), joint_name=f"{name}_joint", translation=spot, rpy=(0.0, 0.0, angle)
    )


def _end(length):
    return (length, 0.0, 0.0)


def _meeting(first, second, lengths):
    """Angles at which bars of two lengths reach from two points to one, on the left of the way from first to second."""
    xp = namespace((first, second, lengths))
    dx, dy = second[0] - first[0], second[1] - first[1]
    square = dx * dx + dy * dy
    inner = (square + lengths[0] ** 2 - lengths[1] ** 2) / (2 * lengths[0] * xp.sqrt(square))
    one = xp.arctan2(dy, dx) + xp.arccos(inner)
    meet = (first[0] + lengths[0] * xp.cos(one), first[1] + lengths[0] * xp.sin(one))
    return one, xp.arctan2(meet[1] - second[1], meet[0] - second[0])


def _tip(length, angle):
    """End of a bar from the origin."""
    xp = namespace((length, angle))
    return length * xp.cos(angle), length * xp.sin(angle)


def _check_reach(what: str, span, least, most):
    """Whether bars can be assembled across a known distance."""
    if namespace((span, least, most)) is np and not least < span < most:
        raise ModelError(
            f"{what} cannot be assembled: two of its bars reach from {float(least):.4g} to {float(most):.4g} m, but "
            f"have to span {float(span):.4g} m; change the lengths or the angle"
        )


def four_bar(lengths=(1.10, 0.5, 1.20, 0.75), masses=(1.0, 2.0, 1.5), *, crank=1.0) -> Model:
    """A four-bar linkage: crank and rocker on the ground, and the coupler between their ends.

    `lengths` are those of ground, crank, coupler and rocker (m), `masses` of the last three (kg); by default a
    crank-rocker. At `q = 0` the crank is at the angle `crank` to the ground (rad), which runs from the origin along x,
    and the linkage open, not crossed; angles of crank and rocker count from there, that of the coupler is relative to
    the crank. The closure "pin" joins the coupler's end to the rocker's. Freudenstein 1955 has its closed form.
    """
    ground, a, b, c = lengths
    first, second = _tip(a, crank), (ground, 0.0)
    gap = namespace((first, ground)).hypot(first[0] - ground, first[1])
    _check_reach("the four-bar linkage", gap, abs(b - c), b + c)
    coupler, rocker = _meeting(first, second, (b, c))
    builder = ModelBuilder(_DOWN, "four-bar")
    _add_bar(builder, "crank", "world", a, masses[0], (0.0, 0.0), crank)
    _add_bar(builder, "coupler", "crank", b, masses[1], (a, 0.0), coupler - crank)
    _add_bar(builder, "rocker", "world", c, masses[2], second, rocker)
    builder.add_closure("pin", "point", ("coupler", _end(b)), ("rocker", _end(c)))
    return builder.build()


def slider_crank(lengths=(0.2, 0.5), masses=(1.0, 1.0, 2.0), *, crank=1.0) -> Model:
    """A crank, a connecting rod and a slider along the x axis.

    `lengths` of crank and rod (m), `masses` of crank, rod and slider (kg). At `q = 0` the crank is at the angle
    `crank` (rad), from which its angle counts; the rod's is relative to the crank. At the angle t of the crank the
    slider is at

        x = r cos t + sqrt(l^2 - r^2 sin^2 t)

    since the rod closes the triangle `(x - r cos t)^2 + (r sin t)^2 = l^2`, and its coordinate is the way from where
    it is at `q = 0`. The closure "pin" joins the rod's end to the slider.
    """
    r, l = lengths
    b = _tip(r, crank)
    xp = namespace((b, l))
    _check_reach("the slider-crank", abs(b[1]), -l, l)
    reach = xp.sqrt(l * l - b[1] * b[1])
    builder = ModelBuilder(_DOWN, "slider-crank")
    _add_bar(builder, "crank", "world", r, masses[0], (0.0, 0.0), crank)
    _add_bar(builder, "rod", "crank", l, masses[1], (r, 0.0), xp.arctan2(-b[1], reach) - crank)
    at = (b[0] + reach, 0.0, 0.0)
    builder.add_link("slider", "world", Prismatic(_X), point_mass(masses[2]), joint_name="slider_joint", translation=at)
    builder.add_closure("pin", "point", ("rod", _end(l)), ("slider", (0.0, 0.0, 0.0)))
    return builder.build()


def five_bar(lengths=(0.3, 0.25, 0.4), masses=(0.5, 0.4), *, cranks=(2 * np.pi / 3, np.pi / 3), gravity=_DOWN) -> Model:
    """A five-bar linkage: two cranks on the ground and two rods whose ends meet at the tool; 2 degrees of freedom.

    `lengths` of ground, cranks and rods (m), `masses` of a crank and a rod (kg). The ground runs from the origin
    along x; at `q = 0` the cranks "left" and "right" are at the angles `cranks` to it (rad) and the rods meet above,
    where the circles about the ends of the cranks, of the rods' length, intersect.
    Angles of cranks count from there, those of the rods are relative to their cranks. The closure "pin" joins the
    ends of "left_rod" and "right_rod", the frame "tool".
    """
    ground, a, b = lengths
    left, right = _tip(a, cranks[0]), _tip(a, cranks[1])
    right = (right[0] + ground, right[1])
    xp = namespace((left, right))
    _check_reach("the five-bar linkage", xp.hypot(right[0] - left[0], right[1] - left[1]), 0.0 * b, 2 * b)
    angles = _meeting(left, right, (b, b))
    builder = ModelBuilder(gravity, "five-bar")
    for k, side in enumerate(("left", "right")):
        at = (ground if k else 0.0, 0.0)
        _add_bar(builder, side, "world", a, masses[0], at, cranks[k])
        _add_bar(builder, f"{side}_rod", side, b, masses[1], (a, 0.0), angles[k] - cranks[k])
    builder.add_closure("pin", "point", ("left_rod", _end(b)), ("right_rod", _end(b)))
    return builder.add_frame("tool", "left_rod", translation=_end(b)).build()


def n_four_bar(n: int = 2) -> Model:
    """The N-four-bar mechanism: n squares in a row, of 2 n + 1 bars of 1 m and 1 kg, standing on the ground.

    Upright bars "bar0" to "bar<n>" stand on (k, 0); bars "top1" to "top<n>" lie on them, top k carried by bar k - 1
    and pinned to bar k by the closure "pin<k>". The frames "B0" to "B<n>" are the upper ends of the upright bars.
    It has one degree of freedom, and n + 1 where all bars are in line. In the benchmark it starts upright, B0 moving
    at 1 m/s along x: all upright bars turn at -1 rad/s, and the tops, carried along, at 1 rad/s relative to them.

    Bayo and Avello, "Singularity-free augmented Lagrangian algorithms for constrained multibody dynamics", Nonlinear
    Dynamics 5, 1994; problem A02 of the IFToMM library of benchmarks (Gonzalez, Dopico, Lugris and Cuadrado 2006).
    """
    if n < 1:
        raise ValueError(f"an N-four-bar mechanism has at least one loop, not {n}")
    builder = ModelBuilder(_DOWN, f"{n}-four-bar")
    for k in range(n + 1):
        _add_bar(builder, f"bar{k}", "world", 1.0, 1.0, (float(k), 0.0), np.pi / 2)
        builder.add_frame(f"B{k}", f"bar{k}", translation=_end(1.0))
        if k < n:
            _add_bar(builder, f"top{k + 1}", f"bar{k}", 1.0, 1.0, (1.0, 0.0), -np.pi / 2)
    for k in range(1, n + 1):
        builder.add_closure(f"pin{k}", "point", (f"top{k}", _end(1.0)), (f"bar{k}", _end(1.0)))
    return builder.build()


def bricard(length=1.0, mass=1.0, thickness=0.1) -> Model:
    """Bricard's mechanism: six bars of a cube's edges and six joints, with one degree of freedom despite the count.

    Joints are at (0,0,0), (1,0,0), (1,-1,0), (1,-1,1), (0,-1,1), (0,0,1) times `length`, with axes along y, z, x, y,
    z, x; the sixth bar, from the last joint to the first, is the ground. "bar1" to "bar5" are solid bars of square
    section, `thickness` wide; their frames are parallel to the world at `q = 0`. The closure "loop" is the sixth
    joint; its rank is 4 of 5 in every position. Gravity is along -y. Frame "P3" is the third joint.

    Bricard 1897; problem A04 of the IFToMM library of benchmarks (Gonzalez, Dopico, Lugris and Cuadrado 2006).
    """
    corners = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], float)
    solid = box((thickness, thickness, length), mass=mass)  # along z
    turned = {0: _Z_TO_X, 1: _Z_TO_Y, 2: np.eye(3)}
    builder = ModelBuilder(_DOWN, "Bricard")
    for k, axis in enumerate((_Y, _Z, _X, _Y, _Z)):
        way = corners[k + 1] - corners[k]
        middle = tuple(x * length / 2 for x in way)
        body = solid.moved(middle, turned[int(np.abs(way).argmax())])
        start = tuple(x * length for x in corners[k] - corners[max(k - 1, 0)])
        parent = f"bar{k}" if k else "world"
        builder.add_link(f"bar{k + 1}", parent, Revolute(axis), body, joint_name=f"joint{k + 1}", translation=start)
    end = tuple(x * length for x in corners[5] - corners[4])
    about_x = np.array([np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0])  # turns z to x
    loop = ("world", (about_x, (0.0, 0.0, length)))
    builder.add_closure("loop", "revolute", ("bar5", (about_x, end)), loop)
    builder.add_frame("P3", "bar3")
    return builder.build()


def delta(radii=(0.2, 0.05), lengths=(0.3, 0.8), masses=(1.0, 0.3, 0.5), *, angle=0.5) -> Model:
    """A delta robot: three arms turning at the corners of a base carry a platform that keeps its attitude.

    `radii` of base and platform, `lengths` of the upper arms and of the parallelograms below them (m), `masses` of
    an upper arm, of a parallelogram (both its rods) and of the platform (kg). z is up; at `q = 0` all arms point
    outwards, `angle` (rad) below the horizontal, from which their angles count downwards, and the platform is on the
    axis. The parallelograms only keep a distance and the attitude: so the platform has three slides "x", "y", "z"
    from where it is at zero, each parallelogram is a closure "rod<k>" of kind "distance", and its ends share its mass.

    Clavel, "DELTA, a fast robot with parallel geometry", 1988; the shared masses are those of Codourey, "Dynamic
    modeling of parallel robots for computed-torque control implementation", IJRR 17(12), 1998. The default
    dimensions and masses are round numbers of a table-top size, not those of a built robot.
    """
    base, platform = radii
    upper, lower = lengths
    out, below = _tip(upper, angle)
    across = base + out - platform
    xp = namespace((across, lower))
    _check_reach("the delta robot", abs(across), -lower, lower)
    height = below + xp.sqrt(lower * lower - across * across)
    builder = ModelBuilder(name="delta")
    for k in range(3):
        turn = 2 * np.pi * k / 3
        c, s = np.cos(turn), np.sin(turn)
        arm = _bar(upper, masses[0]) + point_mass(masses[1] / 2).moved(_end(upper))
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
        builder.add_closure(f"rod{k + 1}", "distance", (f"arm{k + 1}", _end(upper)), ("platform", corner), length=lower)
    return builder.build()
