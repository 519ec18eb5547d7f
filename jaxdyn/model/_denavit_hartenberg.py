"""Serial robots from tables of Denavit-Hartenberg parameters, in the classic and in the modified convention."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxdyn._errors import ModelError
from jaxdyn.joints import Prismatic, Revolute
from jaxdyn.model._model import Model
from jaxdyn.model._serial import (
    IDENTITY,
    Member,
    Placed,
    as_pose,
    build_chain,
    carried,
    check_count,
    compose,
    turn,
    vector,
)
from jaxdyn.spatial import Inertia

_Z = (0.0, 0.0, 1.0)


class DHRow(NamedTuple):
    """One joint of a Denavit-Hartenberg table: m and rad.

    The joint coordinate adds to `theta` or, if the joint `slides`, to `d`; what is given of that parameter here is
    its offset.
    """

    #: length along x
    a: Any = 0.0
    #: twist about x
    alpha: Any = 0.0
    #: offset along z
    d: Any = 0.0
    #: angle about z
    theta: Any = 0.0
    #: prismatic rather than revolute
    slides: bool = False


def _about_x(row: DHRow) -> Placed:
    """`Trans_x(a) Rot_x(alpha)`."""
    return turn(0, row.alpha), vector((row.a, 0.0, 0.0))


def _about_z(row: DHRow) -> Placed:
    """`Trans_z(d) Rot_z(theta)`."""
    return turn(2, row.theta), vector((0.0, 0.0, row.d))


def _table(rows, inertias, base, tool):
    table = [DHRow(*row) for row in rows]
    if not table:
        raise ModelError("a Denavit-Hartenberg table has at least one row")
    check_count("inertias", inertias, len(table))
    return table, as_pose(base, "base"), None if tool is None else as_pose(tool, "tool")


def from_denavit_hartenberg(
    rows: Sequence[Sequence[Any]],
    inertias: Sequence[Inertia],
    *,
    base=None,
    tool=None,
    gravity=(0.0, 0.0, -9.81),
    name: str = "",
    **properties,
) -> Model:
    """A serial robot from a table in the classic convention of Denavit and Hartenberg.

        T_(i-1,i) = Rot_z(theta_i) Trans_z(d_i) Trans_x(a_i) Rot_x(alpha_i),

    so joint i moves about or along the z axis of frame i - 1 (Denavit and Hartenberg, "A kinematic notation for
    lower-pair mechanisms based on matrices", 1955; Paul, "Robot Manipulators", 1981; Spong, Hutchinson and
    Vidyasagar 2006, equation 3.10). `rows` are `DHRow(a, alpha, d, theta, slides)` or tuples of these;
    `inertias` are in the axes and from the origins of the frames 1 to n. `base` places frame 0 in the world and
    `tool` a frame "tool" in frame n: a `Pose` or a matrix `(4, 4)`. `properties` are those of
    `ModelBuilder.add_link`, a number or one a joint.

    Links "link1", ... are at their joints' axes; the frames of the table are "link1_dh" and so on. Any number may
    be traced.
    """
    table, before, tool = _table(rows, inertias, base, tool)
    members = []
    for row, body in zip(table, inertias, strict=True):
        frame = _about_x(row)
        joint = Prismatic(_Z) if row.slides else Revolute(_Z)
        members.append(Member(joint, compose(before, _about_z(row)), carried(body, frame), frame))
        before = frame
    return build_chain(members, suffix="dh", tool=tool, gravity=gravity, name=name, properties=properties)


def from_modified_denavit_hartenberg(
    rows: Sequence[Sequence[Any]],
    inertias: Sequence[Inertia],
    *,
    base=None,
    tool=None,
    gravity=(0.0, 0.0, -9.81),
    name: str = "",
    **properties,
) -> Model:
    """A serial robot from a table in the modified convention of Craig and of Khalil.

        T_(i-1,i) = Rot_x(alpha_(i-1)) Trans_x(a_(i-1)) Rot_z(theta_i) Trans_z(d_i),

    so joint i moves about or along the z axis of frame i itself (Craig, "Introduction to Robotics", 1986,
    equation 3.6; Khalil and Kleinfinger 1986). Row i holds `a_(i-1)`, `alpha_(i-1)`, `d_i`, `theta_i` in this
    order, as the tables are printed. Everything else is as in `from_denavit_hartenberg`; here the link frames
    are those of the table.
    """
    table, before, tool = _table(rows, inertias, base, tool)
    members = []
    for row, body in zip(table, inertias, strict=True):
        placement = compose(before, compose(_about_x(row), _about_z(row)))
        joint = Prismatic(_Z) if row.slides else Revolute(_Z)
        members.append(Member(joint, placement, body, IDENTITY))
        before = IDENTITY
    return build_chain(members, suffix="dh", tool=tool, gravity=gravity, name=name, properties=properties)
