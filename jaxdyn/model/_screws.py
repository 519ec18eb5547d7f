"""Serial robots from screw axes and home poses: products of exponentials."""

from collections.abc import Sequence

import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.joints import AbstractJoint, Helical, Prismatic, Revolute
from jaxdyn.model._checks import is_concrete
from jaxdyn.model._model import Model
from jaxdyn.model._serial import (
    IDENTITY,
    Member,
    Placed,
    array,
    as_pose,
    build_chain,
    carried,
    check_count,
    compose,
    cross,
    inverse,
    vector,
)
from jaxdyn.spatial import Inertia

_SMALL = 1e-12
_KINDS = (Revolute, Prismatic, Helical)


def from_screws(
    screws,
    homes,
    inertias,
    *,
    joints: Sequence[type[AbstractJoint]] | None = None,
    tool=None,
    gravity=(0.0, 0.0, -9.81),
    name: str = "",
    **properties,
) -> Model:
    """A serial robot from the screw axis of each joint in the frame of its own link.

        T_(i-1,i)(q) = M_(i-1,i) exp([A_i] q_i),

    with the frames {i} at the centres of mass (Lynch and Park, "Modern Robotics", 2017, section 8.3, and the
    lecture notes "Dynamics of open chains" after it). `screws` are the rows `A_i = (w, v)` in {i}: of unit `w`,
    or of unit `v` with zero `w`; only their directions count, as with axes elsewhere. A screw with
    `w . v = 0` is a `Revolute` joint, one with a pitch `h = w . v` a `Helical` and one with zero `w` a
    `Prismatic` joint. If screws are traced, `joints` has to say which, a class a joint.

    `homes` are the poses `M_(i-1,i)` of {i} in {i-1} at zero, each a `Pose` or a matrix `(4, 4)`; {0} is the
    world. `inertias` are spatial inertias `G_i`, `(6, 6)` about the centre of mass, in axes that need not be
    principal, or `Inertia`. `tool` is the pose of a frame "tool" in {n}. `properties` are those of
    `ModelBuilder.add_link`, a number or one a joint.

    Links "link1", ... are parallel to the frames {i} with their origins on the screw axes; the frames {i} are
    "link1_com" and so on. Any number may be traced.
    """
    screws, homes, bodies, kinds = _given(screws, homes, inertias, joints, tool)
    tool = None if tool is None else as_pose(tool, "tool")
    return _chain(screws, homes, bodies, kinds, tool, gravity, name, properties)


def from_space_screws(
    screws,
    homes,
    inertias,
    *,
    joints: Sequence[type[AbstractJoint]] | None = None,
    tool=None,
    gravity=(0.0, 0.0, -9.81),
    name: str = "",
    **properties,
) -> Model:
    """A serial robot from the screw axis of each joint in the world, at the zero configuration.

        T_0i(q) = exp([S_1] q_1) ... exp([S_i] q_i) M_0i

    (Brockett 1984; Lynch and Park 2017, equation 4.14). These are the matrix exponentials of Negrean, Duca,
    Kacso, Mura-Cozma and Schonstein, "New formulations on serial robots dynamics", COMEC 2009: there
    `S_i = (Delta_i k_i, v_i)` with the unit vector `k_i` of the driving axis, `v_i = p_i x k_i` for a
    rotation and `v_i = k_i` for a translation, and the column `b_i` of equation 4 is the displacement of
    `exp([S_i] q_i)` (its `k k^T` is a misprint of `(k x)(k x)`). `homes` are the poses `M_0i` of the frames at
    the centres of mass in the world, `tool` that of the frame "tool", all at zero. Everything else is as in
    `from_screws`, with `A_i = Ad(M_0i^-1) S_i`.
    """
    screws, homes, bodies, kinds = _given(screws, homes, inertias, joints, tool)
    own, steps, before = [], [], IDENTITY
    for screw, home in zip(screws, homes, strict=True):
        own.append(_seen_from(screw, home))
        steps.append(compose(inverse(before), home))
        before = home
    tool = None if tool is None else compose(inverse(before), as_pose(tool, "tool"))
    return _chain(own, steps, bodies, kinds, tool, gravity, name, properties)


def _given(screws, homes, inertias, joints, tool):
    """Everything as arrays, with one entry a joint."""
    screws, homes, inertias = list(screws), list(homes), list(inertias)
    if not screws:
        raise ModelError("a robot of screws has at least one joint")
    check_count("home poses", homes, len(screws))
    check_count("inertias", inertias, len(screws))
    if joints is not None:
        check_count("joint types", joints, len(screws))
    kinds = [_kind(k, screw, None if joints is None else joints[k]) for k, screw in enumerate(screws)]
    bodies = [_body(k, body) for k, body in enumerate(inertias)]
    poses = [as_pose(home, f"home pose of joint {k + 1}") for k, home in enumerate(homes)]
    return [array(screw) for screw in screws], poses, bodies, kinds


def _kind(k: int, screw, given: type[AbstractJoint] | None) -> type[AbstractJoint]:
    if given is not None:
        if given not in _KINDS:
            raise ModelError(f"joint {k + 1} cannot be {given.__name__}; a screw is Revolute, Prismatic or Helical")
        return given
    if not is_concrete(screw):
        raise ModelError(
            f"the screw of joint {k + 1} is traced, so its type cannot be read from its numbers; "
            "give joints=(Revolute, ...), with a class for each joint"
        )
    screw = np.asarray(screw, float)
    if screw.shape != (6,):
        raise ModelError(f"the screw of joint {k + 1} has shape {screw.shape}, expected (6,): angular half first")
    w, v = screw[:3], screw[3:]
    if np.linalg.norm(w) < _SMALL:
        return Prismatic
    return Revolute if abs(w @ v) < _SMALL * max(1.0, float(np.linalg.norm(v))) else Helical


def _body(k: int, given) -> Inertia:
    """From a spatial inertia `diag(I, m 1)`."""
    if isinstance(given, Inertia):
        return given
    g = array(given)
    if g.shape != (6, 6):
        raise ModelError(f"the inertia of joint {k + 1} has shape {g.shape}; give an Inertia or a matrix (6, 6)")
    mass = (g[3, 3] + g[4, 4] + g[5, 5]) / 3
    if is_concrete(given):
        form = np.zeros((6, 6))
        form[:3, :3], form[3:, 3:] = g[:3, :3], mass * np.eye(3)
        if np.abs(np.asarray(g) - form).max() > 1e-9 * np.abs(np.asarray(g)).max():
            raise ModelError(
                f"the spatial inertia of joint {k + 1} is not diag(I, m 1): give it about the centre of mass, "
                "angular half first"
            )
    return Inertia(mass, np.zeros(3), g[:3, :3])


def _seen_from(screw, pose: Placed):
    """`Ad(T^-1) S`: a screw of the frame outside in the frame at `pose`."""
    rotation, at = pose
    w, v = screw[:3], screw[3:]
    return vector([*(rotation.T @ w), *(rotation.T @ (v + cross(w, at)))])


def _chain(screws, steps, bodies, kinds, tool, gravity, name, properties) -> Model:
    members, before = [], IDENTITY
    for screw, step, body, kind in zip(screws, steps, bodies, kinds, strict=True):
        joint, on_axis = _joint(screw, kind)
        placement = compose(before, compose(step, (np.eye(3), on_axis)))
        frame = (np.eye(3), -on_axis)  # {i} in the link, whose origin is on the axis
        members.append(Member(joint, placement, carried(body, frame), frame))
        before = frame
    return build_chain(members, suffix="com", tool=tool, gravity=gravity, name=name, properties=properties)


def _joint(screw, kind: type[AbstractJoint]):
    """The joint that moves along a screw, and the point of its axis that is nearest to the frame's origin."""
    w, v = screw[:3], screw[3:]
    if kind is Prismatic:
        return Prismatic(v), np.zeros(3)
    square = w @ w
    point = cross(w, v) / square
    if kind is Revolute:
        return Revolute(w), point
    return Helical(w, w @ v / square), point
