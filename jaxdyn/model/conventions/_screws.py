"""Serial robots from screw axes and home poses: the product of exponentials."""

from collections.abc import Sequence

import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._numerics import is_concrete
from jaxdyn.joints import AbstractJoint, Helical, Prismatic, Revolute
from jaxdyn.model.conventions._serial import (
    IDENTITY,
    ChainLink,
    PosePair,
    as_pose,
    build_chain,
    check_count,
    compose,
    cross,
    float_array,
    inverse,
    move_inertia,
    vector,
)
from jaxdyn.model.structure import Model
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
    allow_unphysical_inertia: bool = False,
    **properties,
) -> Model:
    """Builds a serial robot from the screw axis of each joint in the frame of its own link.

        T_(i-1,i)(q) = M_(i-1,i) exp([A_i] q_i),

    with the frames {i} at the centres of mass (Lynch and Park, "Modern Robotics", 2017, section 8.3, and the
    lecture notes "Dynamics of open chains").

    Arguments:

    * `screws`: rows `A_i = (w, v)` in {i}, `(n, 6)`, with unit `w`, or with zero `w` and unit `v`; other lengths are
      normalised. `w . v = 0` is a `Revolute` joint, a pitch `h = w . v` (m/rad) a `Helical` joint, zero `w` a
      `Prismatic` joint.
    * `homes`: poses `M_(i-1,i)` of {i} in {i-1} at zero, each a `Pose` or a matrix `(4, 4)`; {0} is the world.
    * `inertias`: spatial inertias `G_i` `(6, 6)` about the centre of mass, in axes that need not be principal, or
      `Inertia`.
    * `joints`: class of each joint, required if screws are traced.
    * `tool`: pose of a frame "tool" in {n}.
    * `gravity`: `(3,)`, m/s^2. `name`: name of the robot.
    * `allow_unphysical_inertia`: keep inertias that no rigid body has, each with a note in `Model.report`.
    * `properties`: those of `ModelBuilder.add_link`, a number or one per joint.

    Returns a `Model` with links "link1", ..., parallel to the frames {i} with their origins on the screw axes, and the
    frames {i} as "link1_com", .... Any number may be traced. Raises `ModelError` for wrong shapes or numbers of
    entries, and for traced screws without `joints`. Example:

    ```python
    import numpy as np
    import jax.numpy as jnp
    from jaxdyn import from_screws, mass_matrix

    home = np.eye(4)
    home[0, 3] = 0.5  # centre of mass at 0.5 m from the axis of the joint
    screw = [0, 0, 1, 0, 0.5, 0]  # rotation about z, seen from the centre of mass
    pendulum = from_screws([screw], [home], [np.diag([0.01, 0.01, 0.01, 2.0, 2.0, 2.0])])
    assert jnp.allclose(mass_matrix(pendulum, jnp.zeros(1)), 2.0 * 0.5**2 + 0.01)
    ```
    """
    screws, homes, bodies, kinds = _parse_arguments(screws, homes, inertias, joints, tool)
    tool = None if tool is None else as_pose(tool, "tool")
    return _build_from_screws(screws, homes, bodies, kinds, tool, gravity, name, allow_unphysical_inertia, properties)


def from_space_screws(
    screws,
    homes,
    inertias,
    *,
    joints: Sequence[type[AbstractJoint]] | None = None,
    tool=None,
    gravity=(0.0, 0.0, -9.81),
    name: str = "",
    allow_unphysical_inertia: bool = False,
    **properties,
) -> Model:
    """Builds a serial robot from the screw axis of each joint in the world, at the zero configuration.

        T_0i(q) = exp([S_1] q_1) ... exp([S_i] q_i) M_0i

    (Brockett 1984; Lynch and Park 2017, equation 4.14). These are the matrix exponentials of Negrean, Duca,
    Kacso, Mura-Cozma and Schonstein, "New formulations on serial robots dynamics", COMEC 2009: there
    `S_i = (Delta_i k_i, v_i)` with the unit vector `k_i` of the driving axis, `v_i = p_i x k_i` for a
    rotation and `v_i = k_i` for a translation, and the column `b_i` of equation 4 is the displacement of
    `exp([S_i] q_i)` (its `k k^T` is a misprint of `(k x)(k x)`). `homes` are the poses `M_0i` of the frames at
    the centres of mass in the world, and `tool` is the pose of the frame "tool" in the world, all at zero. All other
    arguments are those of `from_screws`, with `A_i = Ad(M_0i^-1) S_i`.
    """
    screws, homes, bodies, kinds = _parse_arguments(screws, homes, inertias, joints, tool)
    local_screws, steps, before = [], [], IDENTITY
    for screw, home in zip(screws, homes, strict=True):
        local_screws.append(_screw_in_frame(screw, home))
        steps.append(compose(inverse(before), home))
        before = home
    tool = None if tool is None else compose(inverse(before), as_pose(tool, "tool"))
    return _build_from_screws(
        local_screws, steps, bodies, kinds, tool, gravity, name, allow_unphysical_inertia, properties
    )


def _parse_arguments(screws, homes, inertias, joints, tool):
    """Converts the arguments to arrays and joint types, one entry per joint."""
    screws, homes, inertias = list(screws), list(homes), list(inertias)
    if not screws:
        raise ModelError("no screws are given; give at least one")
    check_count("home poses", homes, len(screws))
    check_count("inertias", inertias, len(screws))
    if joints is not None:
        check_count("joint types", joints, len(screws))
    kinds = [_joint_type(k, screw, None if joints is None else joints[k]) for k, screw in enumerate(screws)]
    bodies = [_as_inertia(k, body) for k, body in enumerate(inertias)]
    poses = [as_pose(home, f"home pose of joint {k + 1}") for k, home in enumerate(homes)]
    return [float_array(screw) for screw in screws], poses, bodies, kinds


def _joint_type(k: int, screw, given: type[AbstractJoint] | None) -> type[AbstractJoint]:
    if given is not None:
        if given not in _KINDS:
            raise ModelError(f"joint {k + 1} cannot be {given.__name__}; expected Revolute, Prismatic or Helical")
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


def _as_inertia(k: int, given) -> Inertia:
    """`Inertia` from a spatial inertia `diag(I, m 1)`."""
    if isinstance(given, Inertia):
        return given
    g = float_array(given)
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


def _screw_in_frame(screw, pose: PosePair):
    """`Ad(T^-1) S`: a screw of the outer frame, expressed in the frame at `pose`."""
    rotation, at = pose
    w, v = screw[:3], screw[3:]
    return vector([*(rotation.T @ w), *(rotation.T @ (v + cross(w, at)))])


def _build_from_screws(
    screws, steps, bodies, kinds, tool, gravity, name, allow_unphysical_inertia, properties
) -> Model:
    members, before = [], IDENTITY
    for screw, step, body, kind in zip(screws, steps, bodies, kinds, strict=True):
        joint, on_axis = _joint_and_axis_point(screw, kind)
        placement = compose(before, compose(step, (np.eye(3), on_axis)))
        frame = (np.eye(3), -on_axis)  # {i} in the link frame, whose origin is on the axis
        members.append(ChainLink(joint, placement, move_inertia(body, frame), frame))
        before = frame
    return build_chain(
        members,
        suffix="com",
        tool=tool,
        gravity=gravity,
        name=name,
        allow_unphysical_inertia=allow_unphysical_inertia,
        properties=properties,
    )


def _joint_and_axis_point(screw, kind: type[AbstractJoint]):
    """The joint of a screw, and the point of its axis nearest to the origin of the frame."""
    w, v = screw[:3], screw[3:]
    if kind is Prismatic:
        return Prismatic(v), np.zeros(3)
    square = w @ w
    point = cross(w, v) / square
    if kind is Revolute:
        return Revolute(w), point
    return Helical(w, w @ v / square), point
