"""Serial robots from link vectors: the geometry of Vukobratovic and Potkonjak, with Rodrigues' rotation."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._numerics import is_concrete, namespace
from jaxdyn.joints import Prismatic, Revolute
from jaxdyn.model.conventions._serial import (
    ChainLink,
    as_pose,
    build_chain,
    check_count,
    cross,
    move_inertia,
    unit,
    vector,
)
from jaxdyn.model.structure import Model
from jaxdyn.spatial import Inertia

Vector = ArrayLike | Sequence[Any]
_PARALLEL = 1e-9  # sine of the angle below which a vector counts as parallel to the axis


class JointVectors(NamedTuple):
    """Joint j between links j - 1 and j; frames are at the centres of mass C, vectors in m.

    `r_before` and `r_after` start at the joint S_j. An auxiliary vector (r* in the source) replaces one that is
    parallel to the axis in the definition of the zero of the coordinate; it may have any non-zero length.
    """

    #: axis e_j in frame j - 1
    e_before: Vector
    #: the same axis in frame j
    e_after: Vector
    #: from S_j to C_(j-1), in frame j - 1: r_(j-1,j)
    r_before: Vector
    #: from S_j to C_j, in frame j: r_jj
    r_after: Vector
    #: the indicator s_j: True for a linear (prismatic) joint
    linear: bool = False
    #: auxiliary vector r*_(j-1,j), in frame j - 1
    star_before: Vector | None = None
    #: auxiliary vector r*_jj, in frame j
    star_after: Vector | None = None
    #: fixed angle alpha_j of a linear joint, rad
    alpha: ArrayLike = 0.0


def from_link_vectors(
    joints: Sequence[JointVectors],
    inertias: Sequence[Inertia],
    *,
    tool=None,
    gravity=(0.0, 0.0, -9.81),
    name: str = "",
    allow_unphysical_inertia: bool = False,
    **properties,
) -> Model:
    """Builds a serial robot from its link vectors and joint axes.

    With the frames of the links at their centres of mass C_j, the joints at S_j and

        a_j = -e x (r_(j-1,j) x e) / |...|  in frame j - 1,    a_j = e x (r_jj x e) / |...|  in frame j,
        b_j = e_j x a_j,    A0_(j-1,j) = [e a b]_(j-1) [e a b]_j^-1,

    the matrix `A_(j-1,j)` turns A0 about e_j by q_j with Rodrigues' formula; so `q_j = 0` is the extended
    position, where C_(j-1), S_j and C_j are in line when seen along the axis. A linear joint turns by its fixed
    angle `alpha_j` instead and slides by q_j along e_j. Centres of mass follow from

        r_Cj = r_C(j-1) - r_(j-1,j) + r_jj + s_j q_j e_j.

    If `r_(j-1,j)` or `r_jj` is parallel to the axis (a "specificity" at the upper end of link j - 1 or the
    lower end of link j), an auxiliary vector takes its place in `a_j`. Frame 0 is the world, C_0 its origin.

    Vukobratovic and Potkonjak, "Robot Dynamics" (in Kurfess, ed., "Robotics and Automation Handbook", 2005,
    chapter 20), equations 20.2 to 20.12, 20.25 and the appendix, 20.100 to 20.111. Equation 20.108 is misprinted:
    the middle term of Rodrigues' formula is `(1 - cos q)(e . V) e`, not with the vector product.

    Arguments:

    * `joints`: `JointVectors`, or such tuples, one per joint.
    * `inertias`: `Inertia` of each link in its frame at the centre of mass.
    * `tool`: pose of a frame "tool" in the last frame, a `Pose` or a matrix `(4, 4)`.
    * `gravity`: `(3,)`, m/s^2. `name`: name of the robot.
    * `allow_unphysical_inertia`: keep inertias that no rigid body has, each with a note in `Model.report`.
    * `properties`: those of `ModelBuilder.add_link`, a number or one per joint.

    Returns a `Model` with links "link1", ..., parallel to the frames with their origins at S_j, and the frames
    "link1_com", .... Any number may be traced. Raises `ModelError` if an axis is zero, or parallel to its vector.
    """
    joints = [JointVectors(*joint) for joint in joints]
    if not joints:
        raise ModelError("no joints are given; give at least one")
    check_count("inertias", inertias, len(joints))
    members, center = [], np.zeros(3)
    for k, (joint, body) in enumerate(zip(joints, inertias, strict=True), 1):
        at = center - vector(joint.r_before)
        center = vector(joint.r_after)
        frame = (np.eye(3), center)
        kind = Prismatic if joint.linear else Revolute
        rotation = _zero_rotation(joint, k)
        members.append(ChainLink(kind(vector(joint.e_after)), (rotation, at), move_inertia(body, frame), frame))
    tool_pose = None if tool is None else as_pose(tool, "tool")
    return build_chain(
        members,
        suffix="com",
        tool=tool_pose,
        gravity=gravity,
        name=name,
        allow_unphysical_inertia=allow_unphysical_inertia,
        properties=properties,
    )


def _zero_rotation(joint: JointVectors, k: int):
    """`A0_(j-1,j)`, rotated by alpha if the joint is linear."""
    before = _triad(joint.e_before, joint.r_before, joint.star_before, k, "before")
    after = _triad(joint.e_after, joint.r_after, joint.star_after, k, "after")
    before = tuple(-a if i else a for i, a in enumerate(before))  # r_(j-1,j) points backwards
    if joint.linear:
        before = _rotate_triad(before, joint.alpha)
    xp = namespace((before, after))
    return xp.stack(before, 1) @ xp.stack(after, 0)


def _triad(axis, arm, star, k: int, where: str):
    """`e`, `a` and `b`, the triad that both links share; `a` is along the component of the arm normal to the axis."""
    e, r = vector(axis), vector(arm if star is None else star)
    if is_concrete(e) and not np.any(e):
        raise ModelError(f"e_{where} of joint {k} is zero; give the direction of the axis")
    e = unit(e)
    normal = cross(e, cross(r, e))
    if is_concrete((e, r)) and np.linalg.norm(normal) <= _PARALLEL * np.linalg.norm(r):
        raise ModelError(
            f"{'r' if star is None else 'star'}_{where} of joint {k} is {np.asarray(r)}, parallel to the axis "
            f"{np.asarray(e)}, so it defines no zero of the coordinate; give a star_{where} that is not parallel"
        )
    a = unit(normal)
    return e, a, cross(e, a)


def _rotate_triad(triad, angle):
    """Rodrigues' formula about `e`, which rotates `a` and `b`."""
    e, a, b = triad
    xp = namespace(angle)
    c, s = xp.cos(angle), xp.sin(angle)
    return e, c * a + s * b, c * b - s * a
