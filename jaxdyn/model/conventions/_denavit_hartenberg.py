"""Serial robots from Denavit-Hartenberg tables, in the classic and in the modified convention."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn.joints import Prismatic, Revolute
from jaxdyn.model.conventions._serial import (
    IDENTITY,
    ChainLink,
    PosePair,
    as_pose,
    axis_rotation,
    build_chain,
    check_count,
    compose,
    move_inertia,
    vector,
)
from jaxdyn.model.structure import Model
from jaxdyn.spatial import Inertia

_Z = (0.0, 0.0, 1.0)


class DHRow(NamedTuple):
    """One row of a Denavit-Hartenberg table (m, rad).

    The joint coordinate is added to `theta` or, if the joint `slides`, to `d`.
    """

    #: length along x
    a: ArrayLike = 0.0
    #: twist about x
    alpha: ArrayLike = 0.0
    #: offset along z
    d: ArrayLike = 0.0
    #: angle about z
    theta: ArrayLike = 0.0
    #: True for a prismatic joint, False for a revolute one
    slides: bool = False


def _x_displacement(row: DHRow) -> PosePair:
    """`Trans_x(a) Rot_x(alpha)`."""
    return axis_rotation(0, row.alpha), vector((row.a, 0.0, 0.0))


def _z_displacement(row: DHRow) -> PosePair:
    """`Trans_z(d) Rot_z(theta)`."""
    return axis_rotation(2, row.theta), vector((0.0, 0.0, row.d))


def _parse_table(rows, inertias, base, tool):
    table = [DHRow(*row) for row in rows]
    if not table:
        raise ModelError("the Denavit-Hartenberg table is empty; give at least one row")
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
    allow_unphysical_inertia: bool = False,
    **properties,
) -> Model:
    """Builds a serial robot from a table in the classic convention of Denavit and Hartenberg.

        T_(i-1,i) = Rot_z(theta_i) Trans_z(d_i) Trans_x(a_i) Rot_x(alpha_i),

    so joint i moves about or along the z axis of frame i - 1 (Denavit and Hartenberg, "A kinematic notation for
    lower-pair mechanisms based on matrices", 1955; Paul, "Robot Manipulators", 1981; Spong, Hutchinson and
    Vidyasagar 2006, equation 3.10).

    Arguments:

    * `rows`: `DHRow(a, alpha, d, theta, slides)` or such tuples, one per joint (m, rad).
    * `inertias`: `Inertia` of each link, in its frame 1 to n of the table (kg, m, kg m^2).
    * `base`: pose of frame 0 in the world, a `Pose` or a homogeneous matrix `(4, 4)`.
    * `tool`: pose of a frame "tool" in frame n, in the same forms.
    * `gravity`: `(3,)`, m/s^2. `name`: name of the robot.
    * `allow_unphysical_inertia`: keep inertias that no rigid body has, each with a note in `Model.report`.
    * `properties`: those of `ModelBuilder.add_link`, a number or one per joint.

    Returns a `Model` with links "link1", ..., whose frames are on the axes of their joints, and the frames "link1_dh",
    ... of the table. Any number may be traced. Raises `ModelError` for an empty table or a wrong number of entries.
    Example:

    ```python
    import jax.numpy as jnp
    from jaxdyn import frame_pose, from_denavit_hartenberg
    from jaxdyn.spatial import Inertia

    body = Inertia(1.0, [-0.1, 0.0, 0.0], 0.01 * jnp.eye(3))
    rows = [(0.4, 0.0, 0.0, 0.0), (0.3, 0.0, 0.0, 0.0)]  # a, alpha, d, theta
    arm = from_denavit_hartenberg(rows, [body, body], tool=jnp.eye(4))
    tip = frame_pose(arm, jnp.array([jnp.pi / 2, 0.0]), "tool").translation
    assert jnp.allclose(tip, jnp.array([0.0, 0.7, 0.0]), atol=1e-6)
    ```
    """
    table, before, tool = _parse_table(rows, inertias, base, tool)
    members = []
    for row, body in zip(table, inertias, strict=True):
        frame = _x_displacement(row)
        joint = Prismatic(_Z) if row.slides else Revolute(_Z)
        members.append(ChainLink(joint, compose(before, _z_displacement(row)), move_inertia(body, frame), frame))
        before = frame
    return build_chain(
        members,
        suffix="dh",
        tool=tool,
        gravity=gravity,
        name=name,
        allow_unphysical_inertia=allow_unphysical_inertia,
        properties=properties,
    )


def from_modified_denavit_hartenberg(
    rows: Sequence[Sequence[Any]],
    inertias: Sequence[Inertia],
    *,
    base=None,
    tool=None,
    gravity=(0.0, 0.0, -9.81),
    name: str = "",
    allow_unphysical_inertia: bool = False,
    **properties,
) -> Model:
    """Builds a serial robot from a table in the modified convention of Craig and of Khalil.

        T_(i-1,i) = Rot_x(alpha_(i-1)) Trans_x(a_(i-1)) Rot_z(theta_i) Trans_z(d_i),

    so joint i moves about or along the z axis of frame i itself (Craig, "Introduction to Robotics", 1986,
    equation 3.6; Khalil and Kleinfinger 1986). Row i is `a_(i-1)`, `alpha_(i-1)`, `d_i`, `theta_i` in this
    order, as in printed tables. All other arguments are those of `from_denavit_hartenberg`; the link frames are the
    frames of the table.
    """
    table, before, tool = _parse_table(rows, inertias, base, tool)
    members = []
    for row, body in zip(table, inertias, strict=True):
        placement = compose(before, compose(_x_displacement(row), _z_displacement(row)))
        joint = Prismatic(_Z) if row.slides else Revolute(_Z)
        members.append(ChainLink(joint, placement, body, IDENTITY))
        before = IDENTITY
    return build_chain(
        members,
        suffix="dh",
        tool=tool,
        gravity=gravity,
        name=name,
        allow_unphysical_inertia=allow_unphysical_inertia,
        properties=properties,
    )
