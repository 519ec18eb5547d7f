"""Serial chains from textbook descriptions: pose algebra, and the construction of the model.

Concrete numbers are computed with numpy; only numbers that depend on a traced one enter the trace. A pose in this
module is a pair of a rotation matrix and a translation.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._numerics import is_concrete, namespace
from jaxdyn.joints import AbstractJoint
from jaxdyn.model.assembly import ModelBuilder
from jaxdyn.model.structure import Model
from jaxdyn.spatial import Inertia, Pose, matrix_to_quaternion

PosePair = tuple[Any, Any]
IDENTITY: PosePair = (np.eye(3), np.zeros(3))


class ChainLink(NamedTuple):
    """One link of a chain: its joint, placed in the previous link, its inertia, and the link frame of the textbook."""

    joint: AbstractJoint
    placement: PosePair
    inertia: Inertia
    frame: PosePair


def float_array(x) -> Any:
    """Array of floats."""
    return namespace(x).asarray(x, float)


def vector(components) -> Any:
    """Array of components, each concrete or traced."""
    if not isinstance(components, Sequence):
        return float_array(components)
    xp = namespace(components)
    return xp.stack([xp.asarray(x, float) for x in components])


def cross(a, b) -> Any:
    """Vector product."""
    return vector((a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]))


def unit(a) -> Any:
    """`a / |a|`."""
    return a / namespace(a).sqrt(a @ a)


def axis_rotation(k: int, angle) -> Any:
    """Rotation matrix about coordinate axis k."""
    xp = namespace(angle)
    c, s, i, j = xp.cos(angle), xp.sin(angle), (k + 1) % 3, (k + 2) % 3
    entry = {(k, k): 1.0, (i, i): c, (j, j): c, (i, j): -s, (j, i): s}
    return xp.stack([vector([entry.get((a, b), 0.0) for b in range(3)]) for a in range(3)])


def compose(a: PosePair, b: PosePair) -> PosePair:
    """`T_ac = T_ab T_bc`."""
    return a[0] @ b[0], a[1] + a[0] @ b[1]


def inverse(a: PosePair) -> PosePair:
    """`T_ba` of `T_ab`."""
    back = a[0].T
    return back, -(back @ a[1])


def as_pose(value: Any, what: str) -> PosePair:
    """Pose from a `Pose`, a homogeneous matrix, or None (the identity)."""
    if value is None:
        return IDENTITY
    if isinstance(value, Pose):
        return float_array(value.rotation), float_array(value.translation)
    value = float_array(value)
    if value.shape != (4, 4):
        raise ModelError(f"{what} has shape {value.shape}; give a Pose or a homogeneous matrix (4, 4)")
    return value[:3, :3], value[:3, 3]


def quaternion(r) -> Any:
    """Unit quaternion, scalar first; of a concrete matrix by the eigenvector of Bar-Itzhack 2000, equation 4."""
    if not is_concrete(r):
        return matrix_to_quaternion(r)
    axial = np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]])
    k = np.empty((4, 4))
    k[0, 0], k[0, 1:], k[1:, 0] = np.trace(r), axial, axial
    k[1:, 1:] = r + r.T - np.trace(r) * np.eye(3)
    largest = np.linalg.eigh(k)[1][:, -1]
    return largest * (1.0 if largest[np.abs(largest).argmax()] > 0 else -1.0)


def move_inertia(body: Inertia, pose: PosePair) -> Inertia:
    """Inertia given in a frame at `pose`, expressed in the outer frame: `R c + p`, `R I R^T`.

    Computes with numpy for concrete numbers, unlike `Inertia.moved`.
    """
    r, p = pose
    return Inertia(body.mass, r @ float_array(body.com) + p, r @ float_array(body.inertia) @ r.T)


def check_count(what: str, given: Sequence, count: int):
    """Raises `ModelError` unless there is one entry per joint."""
    if len(given) != count:
        raise ModelError(f"{len(given)} {what} for {count} joints; give one per joint")


def build_chain(
    members: Sequence[ChainLink],
    *,
    suffix: str,
    tool: PosePair | None,
    gravity,
    name: str,
    allow_unphysical_inertia: bool,
    properties: dict[str, Any],
) -> Model:
    """Builds a chain of links "link1" on "joint1" etc., with the textbook's frames "link1_<suffix>" etc. and "tool"."""
    builder = ModelBuilder(gravity, name, allow_unphysical_inertia=allow_unphysical_inertia)
    for key, value in properties.items():
        if np.ndim(value):
            check_count(f"values of {key}", value, len(members))
    frames = [(f"link{k}_{suffix}", k, member.frame) for k, member in enumerate(members, 1)]
    if tool is not None:
        frames.append(("tool", len(members), compose(members[-1].frame, tool)))
    for k, member in enumerate(members):
        builder.add_link(
            f"link{k + 1}",
            f"link{k}" if k else "world",
            member.joint,
            member.inertia,
            joint_name=f"joint{k + 1}",
            translation=member.placement[1],
            quaternion=quaternion(member.placement[0]),
            **{key: value[k] if np.ndim(value) else value for key, value in properties.items()},
        )
    for title, k, (rotation, at) in frames:
        builder.add_frame(title, f"link{k}", translation=at, quaternion=quaternion(rotation))
    return builder.build()
