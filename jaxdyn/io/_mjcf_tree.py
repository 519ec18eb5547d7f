"""Bodies and joints of a compiled MuJoCo model as links.

MuJoCo composes the joints of a body in the body's frame, each about an anchor of its own (`mj_kinematics`):

    T_parent,body = T_0 J_1(q_1) J_2(q_2) ...,    J = Trans(p) Rot(a, q - ref) Trans(-p)   for a hinge,

with a translation by `a (q - ref)` for a slide. Every J becomes a joint of ours whose frame is at the anchor, turned
back by `ref`, so that q is MuJoCo's qpos; what is left behind the last joint, `Trans(-p)`, is a fixed link.
"""

from typing import Any

import numpy as np

from jaxdyn.io._known import known
from jaxdyn.io._mjcf_compiled import IDENTITY, Compiled, Placing, rotation_matrix
from jaxdyn.joints import AbstractJoint, Free, Prismatic, Revolute, Spherical
from jaxdyn.spatial import Inertia

_AXES = (("x", (1.0, 0.0, 0.0)), ("y", (0.0, 1.0, 0.0)), ("z", (0.0, 0.0, 1.0)))


def add_bodies(source: Compiled):
    """Adds all bodies in MuJoCo's order, which is depth first, like ours."""
    m = source.m
    for body in range(1, m.nbody):
        chain = _Chain(source, source.links[m.body_parentid[body]], _body_placing(m, body))
        first, count = int(m.body_jntadr[body]), int(m.body_jntnum[body])
        for joint in range(first, first + count):
            _add_joint(source, chain, joint)
        chain.close(source.links[body], _inertia(source, body))
        if m.body_mocapid[body] >= 0:
            source.note(f"body {source.links[body]!r}", "is moved by command in MuJoCo (mocap); here it is fixed")


class _Chain:
    """Joints of one body in a row; the body's own link comes last."""

    def __init__(self, source: Compiled, parent: str, placing: Placing):
        self.source, self.parent, self.pending = source, parent, placing
        self.last: tuple[str, AbstractJoint, Placing, dict[str, Any]] | None = None

    def add(self, name: str, joint: AbstractJoint, before: Placing, after: Placing, properties):
        """Appends a joint at `before`, seen from the body's frame so far; `after` leads back to that frame."""
        self._flush()
        self.last = (name, joint, self.pending @ before, properties)
        self.pending = after

    def close(self, link: str, inertia: Inertia):
        """Puts the body on the last joint, or behind it if the joint is not at the body's origin."""
        if self.last is not None and self.pending.is_identity:
            name, joint, placing, properties = self.last
            self._link(link, name, joint, inertia, placing, properties)
            return
        self._flush()
        self._link(link, self.source.new_joint(f"{link}_fixed"), None, inertia, self.pending, {})

    def _flush(self):
        if self.last is not None:
            name, joint, placing, properties = self.last
            carrier = self.source.new_link(f"{name}_carrier")
            self._link(carrier, name, joint, None, placing, properties)
            self.parent, self.last = carrier, None

    def _link(self, link, name, joint, inertia, placing: Placing, properties):
        self.source.builder.add_link(
            link,
            self.parent,
            joint,
            inertia,
            joint_name=name,
            quaternion=placing.quaternion,
            translation=placing.translation,
            **properties,
        )


def _body_placing(m, body: int) -> Placing:
    """Pose in the parent; a free joint's coordinates are the pose in the world instead."""
    first = int(m.body_jntadr[body])
    if first >= 0 and m.jnt_type[first] == 0:
        return Placing()
    return Placing(np.array(m.body_quat[body]), np.array(m.body_pos[body]))


def _inertia(source: Compiled, body: int) -> Inertia:
    """About the centre of mass, from principal moments in the axes `iquat`: `R diag(I) R^T`.

    Where both frames are the same but for rounding, MuJoCo computes with the body's, and so do we.
    """
    m, same = source.m, source.mujoco.mjtSameFrame
    frame = same(m.body_sameframe[body])
    com = np.zeros(3) if frame == same.mjSAMEFRAME_BODY else np.array(m.body_ipos[body])
    turned = frame not in (same.mjSAMEFRAME_BODY, same.mjSAMEFRAME_BODYROT)
    axes = rotation_matrix(m.body_iquat[body]) if turned else np.eye(3)
    return known(Inertia, np.array(m.body_mass[body]), com, (axes * m.body_inertia[body]) @ axes.T)


def _add_joint(source: Compiled, chain: _Chain, joint: int):
    m, kinds = source.m, source.mujoco.mjtJoint
    kind, name = kinds(m.jnt_type[joint]), source.joints[joint]
    axis, anchor, start = np.array(m.jnt_axis[joint]), np.array(m.jnt_pos[joint]), int(m.jnt_qposadr[joint])
    back = Placing(IDENTITY, -anchor)
    if kind == kinds.mjJNT_HINGE:
        half = -float(m.qpos0[start]) / 2
        turned = np.r_[np.cos(half), np.sin(half) * axis]
        chain.add(name, known(Revolute, axis), Placing(turned, anchor), back, _properties(source, joint))
    elif kind == kinds.mjJNT_SLIDE:
        shifted = Placing(IDENTITY, -float(m.qpos0[start]) * axis)
        chain.add(name, known(Prismatic, axis), shifted, Placing(), _properties(source, joint))
    elif kind == kinds.mjJNT_BALL:
        chain.add(name, Spherical(), Placing(IDENTITY, anchor), back, _properties(source, joint))
    elif _tied_to_world_axes(source, joint):
        _add_split(source, chain, joint)
    else:
        chain.add(name, Free(), Placing(), Placing(), _properties(source, joint))


def _tied_to_world_axes(source: Compiled, joint: int) -> bool:
    """Whether a free joint has what MuJoCo applies along world axes and no leaf of ours in body axes can be."""
    m, dof = source.m, int(source.m.jnt_dofadr[joint])
    friction = m.dof_frictionloss[dof] and not source.disabled("FRICTIONLOSS", "CONSTRAINT")
    spring = m.jnt_stiffness[joint] and not source.disabled("SPRING", "PASSIVE")
    return bool(m.dof_armature[dof] or friction or spring)


def _add_split(source: Compiled, chain: _Chain, joint: int):
    """A free joint as three slides along the world's axes and a ball, whose coordinates are MuJoCo's own."""
    name = source.joints[joint]
    whole = _properties(source, joint)
    part = lambda q, v: {k: x[q if k in ("rest", "lower", "upper") else v] for k, x in whole.items()}
    for k, (letter, axis) in enumerate(_AXES):
        rows = slice(k, k + 1)
        chain.add(
            source.new_joint(f"{name}_{letter}"),
            known(Prismatic, np.array(axis)),
            Placing(),
            Placing(),
            part(rows, rows),
        )
    chain.add(name, Spherical(), Placing(), Placing(), part(slice(3, 7), slice(3, 6)))
    source.split.add(joint)
    source.note(
        f"joint {name!r}",
        "has armature, friction or a spring along world axes, so the free joint became three slides and a ball, "
        "with MuJoCo's own order of coordinates",
    )


def _properties(source: Compiled, joint: int) -> dict[str, Any]:
    """Properties and limits in MuJoCo's coordinates, without what the file switches off."""
    m, kinds = source.m, source.mujoco.mjtJoint
    nq, nv = {kinds.mjJNT_FREE: (7, 6), kinds.mjJNT_BALL: (4, 3)}.get(kinds(m.jnt_type[joint]), (1, 1))
    q, v = int(m.jnt_qposadr[joint]), int(m.jnt_dofadr[joint])
    armature, damping = source.actuator_inertia(joint)
    damped, sprung = not source.disabled("DAMPER", "PASSIVE"), not source.disabled("SPRING", "PASSIVE")
    rubs = not source.disabled("FRICTIONLOSS", "CONSTRAINT")
    out: dict[str, Any] = {
        "armature": m.dof_armature[v : v + nv] + armature,
        "damping": damped * (m.dof_damping[v : v + nv] + damping),
        "friction": rubs * m.dof_frictionloss[v : v + nv],
        "stiffness": np.full(nv, sprung * m.jnt_stiffness[joint]),
    }
    if m.jnt_stiffness[joint] and sprung:
        out["rest"] = np.array(m.qpos_spring[q : q + nq])
    if nq == 1 and m.jnt_limited[joint] and not source.disabled("LIMIT", "CONSTRAINT"):
        lower, upper = m.jnt_range[joint]
        out |= {"lower": np.full(1, lower), "upper": np.full(1, upper)}
    if m.jnt_actfrclimited[joint]:
        out["effort"] = np.full(nv, np.abs(m.jnt_actfrcrange[joint]).max())
    return out
