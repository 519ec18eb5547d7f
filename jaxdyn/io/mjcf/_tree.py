"""Bodies and joints of a compiled MuJoCo model as links.

MuJoCo composes the joints of a body in the body's frame, each about an anchor of its own (`mj_kinematics`):

    T_parent,body = T_0 J_1(q_1) J_2(q_2) ...,    J = Trans(p) Rot(a, q - ref) Trans(-p)   for a hinge,

with a translation by `a (q - ref)` for a slide. Every J becomes a joint whose frame is at the anchor and rotated by
`-ref`, so that q equals MuJoCo's qpos; the remaining `Trans(-p)` after the last joint becomes a fixed joint.
"""

from typing import Any

import numpy as np

from jaxdyn.io.files import with_numpy_leaves
from jaxdyn.io.mjcf._compiled import IDENTITY, CompiledModel, NumpyPose, rotation_matrix
from jaxdyn.joints import AbstractJoint, Free, Prismatic, Revolute, Spherical
from jaxdyn.spatial import Inertia

_AXES = (("x", (1.0, 0.0, 0.0)), ("y", (0.0, 1.0, 0.0)), ("z", (0.0, 0.0, 1.0)))


def add_bodies(source: CompiledModel):
    """Adds all bodies in MuJoCo's order, which is depth first."""
    m = source.m
    for body in range(1, m.nbody):
        chain = _Chain(source, source.links[m.body_parentid[body]], _body_pose(m, body))
        first, count = int(m.body_jntadr[body]), int(m.body_jntnum[body])
        for joint in range(first, first + count):
            _add_joint(source, chain, joint)
        chain.close(source.links[body], _inertia(source, body))
        if m.body_mocapid[body] >= 0:
            source.note(
                f"body {source.links[body]!r}", "is a mocap body, positioned by the user in MuJoCo; here it is fixed"
            )


class _Chain:
    """The joints of one body as a chain of massless links; the link of the body comes last."""

    def __init__(self, source: CompiledModel, parent: str, pose: NumpyPose):
        self.source, self.parent, self.pending = source, parent, pose
        self.last: tuple[str, AbstractJoint, NumpyPose, dict[str, Any]] | None = None

    def add(self, name: str, joint: AbstractJoint, before: NumpyPose, after: NumpyPose, properties: dict[str, Any]):
        """Appends a joint at the pose `before` in the current frame of the body; `after` leads back to that frame."""
        self._flush()
        self.last = (name, joint, self.pending @ before, properties)
        self.pending = after

    def close(self, link: str, inertia: Inertia):
        """Adds the link of the body; by a fixed joint, unless the last joint is at the origin of the body."""
        if self.last is not None and self.pending.is_identity:
            name, joint, pose, properties = self.last
            self._link(link, name, joint, inertia, pose, properties)
            return
        self._flush()
        self._link(link, self.source.new_joint(f"{link}_fixed"), None, inertia, self.pending, {})

    def _flush(self):
        if self.last is not None:
            name, joint, pose, properties = self.last
            carrier = self.source.new_link(f"{name}_carrier")
            self._link(carrier, name, joint, None, pose, properties)
            self.parent, self.last = carrier, None

    def _link(
        self,
        link: str,
        name: str,
        joint: AbstractJoint | None,
        inertia: Inertia | None,
        pose: NumpyPose,
        properties: dict[str, Any],
    ):
        self.source.builder.add_link(
            link,
            self.parent,
            joint,
            inertia,
            joint_name=name,
            quaternion=pose.quaternion,
            translation=pose.translation,
            **properties,
        )


def _body_pose(m: Any, body: int) -> NumpyPose:
    """The pose of a body in its parent; the identity for a free joint, whose coordinates are the pose in the world."""
    first = int(m.body_jntadr[body])
    if first >= 0 and m.jnt_type[first] == 0:
        return NumpyPose()
    return NumpyPose(np.array(m.body_quat[body]), np.array(m.body_pos[body]))


def _inertia(source: CompiledModel, body: int) -> Inertia:
    """The inertia about the centre of mass, from principal moments in the axes `iquat`: `R diag(I) R^T`.

    Where the inertial frame equals the body frame up to rounding, MuJoCo uses the body frame, as is done here.
    """
    m, same = source.m, source.mujoco.mjtSameFrame
    frame = same(m.body_sameframe[body])
    com = np.zeros(3) if frame == same.mjSAMEFRAME_BODY else np.array(m.body_ipos[body])
    is_rotated = frame not in (same.mjSAMEFRAME_BODY, same.mjSAMEFRAME_BODYROT)
    axes = rotation_matrix(m.body_iquat[body]) if is_rotated else np.eye(3)
    return with_numpy_leaves(Inertia, np.array(m.body_mass[body]), com, (axes * m.body_inertia[body]) @ axes.T)


def _add_joint(source: CompiledModel, chain: _Chain, joint: int):
    m, kinds = source.m, source.mujoco.mjtJoint
    kind, name = kinds(m.jnt_type[joint]), source.joints[joint]
    axis, anchor, start = np.array(m.jnt_axis[joint]), np.array(m.jnt_pos[joint]), int(m.jnt_qposadr[joint])
    inverse = NumpyPose(IDENTITY, -anchor)
    if kind == kinds.mjJNT_HINGE:
        half = -float(m.qpos0[start]) / 2
        rotation = np.r_[np.cos(half), np.sin(half) * axis]
        chain.add(
            name, with_numpy_leaves(Revolute, axis), NumpyPose(rotation, anchor), inverse, _properties(source, joint)
        )
    elif kind == kinds.mjJNT_SLIDE:
        offset = NumpyPose(IDENTITY, -float(m.qpos0[start]) * axis)
        chain.add(name, with_numpy_leaves(Prismatic, axis), offset, NumpyPose(), _properties(source, joint))
    elif kind == kinds.mjJNT_BALL:
        chain.add(name, Spherical(), NumpyPose(IDENTITY, anchor), inverse, _properties(source, joint))
    elif _acts_along_world_axes(source, joint):
        _add_split_free_joint(source, chain, joint)
    else:
        chain.add(name, Free(), NumpyPose(), NumpyPose(), _properties(source, joint))


def _acts_along_world_axes(source: CompiledModel, joint: int) -> bool:
    """True if a free joint has armature, friction or a spring, which MuJoCo applies along world axes."""
    m, dof = source.m, int(source.m.jnt_dofadr[joint])
    friction = m.dof_frictionloss[dof] and not source.is_disabled("FRICTIONLOSS", "CONSTRAINT")
    spring = m.jnt_stiffness[joint] and not source.is_disabled("SPRING", "PASSIVE")
    return bool(m.dof_armature[dof] or friction or spring)


def _add_split_free_joint(source: CompiledModel, chain: _Chain, joint: int):
    """Adds a free joint as three slides along world axes and a ball, whose coordinates equal MuJoCo's."""
    name = source.joints[joint]
    properties = _properties(source, joint)
    part = lambda q, v: {k: x[q if k in ("rest", "lower", "upper") else v] for k, x in properties.items()}
    for k, (letter, axis) in enumerate(_AXES):
        rows = slice(k, k + 1)
        chain.add(
            source.new_joint(f"{name}_{letter}"),
            with_numpy_leaves(Prismatic, np.array(axis)),
            NumpyPose(),
            NumpyPose(),
            part(rows, rows),
        )
    chain.add(name, Spherical(), NumpyPose(), NumpyPose(), part(slice(3, 7), slice(3, 6)))
    source.split.add(joint)
    source.note(
        f"joint {name!r}",
        "has armature, friction or a spring along world axes: the free joint is split into three slides and a ball, "
        "with MuJoCo's order of coordinates",
    )


def _properties(source: CompiledModel, joint: int) -> dict[str, Any]:
    """Properties and limits in MuJoCo's coordinates, without the features that the file disables."""
    m, kinds = source.m, source.mujoco.mjtJoint
    nq, nv = {kinds.mjJNT_FREE: (7, 6), kinds.mjJNT_BALL: (4, 3)}.get(kinds(m.jnt_type[joint]), (1, 1))
    q, v = int(m.jnt_qposadr[joint]), int(m.jnt_dofadr[joint])
    armature, damping = source.actuator_inertia(joint)
    has_dampers, has_springs = not source.is_disabled("DAMPER", "PASSIVE"), not source.is_disabled("SPRING", "PASSIVE")
    has_friction = not source.is_disabled("FRICTIONLOSS", "CONSTRAINT")
    out: dict[str, Any] = {
        "armature": m.dof_armature[v : v + nv] + armature,
        "damping": has_dampers * (m.dof_damping[v : v + nv] + damping),
        "friction": has_friction * m.dof_frictionloss[v : v + nv],
        "stiffness": np.full(nv, has_springs * m.jnt_stiffness[joint]),
    }
    if m.jnt_stiffness[joint] and has_springs:
        out["rest"] = np.array(m.qpos_spring[q : q + nq])
    if nq == 1 and m.jnt_limited[joint] and not source.is_disabled("LIMIT", "CONSTRAINT"):
        lower, upper = m.jnt_range[joint]
        out |= {"lower": np.full(1, lower), "upper": np.full(1, upper)}
    if m.jnt_actfrclimited[joint]:
        out["effort"] = np.full(nv, np.abs(m.jnt_actfrcrange[joint]).max())
    return out
