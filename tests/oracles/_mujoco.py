"""Models in MuJoCo, by an MJCF text from the public leaves of a model."""

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from jaxdyn.joints import (
    Continuous,
    Cylindrical,
    Free,
    Prismatic,
    Revolute,
    Spherical,
    SphericalZYX,
    Universal,
)
from jaxdyn.model import Model


def _text(x) -> str:
    return " ".join(repr(float(y)) for y in np.ravel(np.asarray(x, float)))


def _joints_of(joint, name: str) -> list[str]:
    """MJCF joints of one joint; MuJoCo composes the joints of one body in order: a universal joint is two hinges."""
    hinge = lambda k, axis: f'<joint name="{name}_{k}" type="hinge" axis="{_text(axis)}"/>'
    slide = lambda k, axis: f'<joint name="{name}_{k}" type="slide" axis="{_text(axis)}"/>'
    match joint:
        case Revolute() | Continuous():
            return [hinge(0, joint.axis)]
        case Prismatic():
            return [slide(0, joint.axis)]
        case Cylindrical():
            return [hinge(0, joint.axis), slide(1, joint.axis)]
        case Universal():
            return [hinge(0, joint.axis1), hinge(1, joint.axis2)]
        case SphericalZYX():
            return [hinge(k, np.eye(3)[2 - k]) for k in range(3)]
        case Spherical():
            return [f'<joint name="{name}_0" type="ball"/>']
        case Free():
            return [f'<joint name="{name}_0" type="free"/>']
    raise ValueError(f"MuJoCo has no joint like {type(joint).__name__}")


def _mjcf(model: Model) -> str:
    t = model.topology
    children: dict[int, list[int]] = {}
    for i, parent in enumerate(t.parents):
        children.setdefault(parent, []).append(i)

    def body(i: int) -> str:
        view = model.joint(model.joint_names[i])
        if isinstance(view.joint, Free) and t.parents[i] >= 0:
            raise ValueError("MuJoCo has free joints at the root only")
        inertia = np.asarray(model.links.inertia[i], float)
        six = [inertia[0, 0], inertia[1, 1], inertia[2, 2], inertia[0, 1], inertia[0, 2], inertia[1, 2]]
        joints = _joints_of(view.joint, view.name) if t.groups[i] >= 0 else []
        return "".join(
            [
                f'<body name="{model.link_names[i]}" pos="{_text(model.placements.translation[i])}" ',
                f'quat="{_text(model.placements.rotation[i])}">',
                f'<inertial pos="{_text(model.links.com[i])}" mass="{_text(model.links.mass[i])}" ',
                f'fullinertia="{_text(six)}"/>',
                *joints,
                *(body(k) for k in children.get(i, [])),
                "</body>",
            ]
        )

    return (
        '<mujoco><compiler angle="radian" inertiafromgeom="false" balanceinertia="false" autolimits="true"/>'
        f'<option gravity="{_text(model.gravity)}"><flag contact="disable" constraint="disable"/></option>'
        f"<worldbody>{''.join(body(i) for i in children.get(-1, []))}</worldbody></mujoco>"
    )


def _rotation(quaternion) -> np.ndarray:
    out = np.zeros(9)
    quaternion = np.asarray(quaternion, float)
    mujoco.mju_quat2Mat(out, quaternion / np.linalg.norm(quaternion))
    return out.reshape(3, 3)


@dataclass(frozen=True)
class MujocoOracle:
    """MuJoCo's model of a robot and the conversions of its states.

    MuJoCo's free joint has the position first and its linear velocity in world axes:
    `v_mj = P(q) v`, `a_mj = P a + (R (w x v), 0)`, and P is orthogonal.
    """

    source: Model
    model: Any
    data: Any

    def _free(self):
        for i, name in enumerate(self.source.joint_names):
            view = self.source.joint(name)
            if isinstance(view.joint, Free):
                yield view, self.source.placements.rotation[i], self.source.placements.translation[i]

    def q(self, q) -> np.ndarray:
        """Configuration for MuJoCo."""
        out = np.array(q, float)
        for view, rotation, translation in self._free():
            x = out[view.q].copy()
            rotation = np.asarray(rotation, float) / np.linalg.norm(rotation)
            product = np.zeros(4)
            mujoco.mju_mulQuat(product, rotation, x[:4])
            out[view.q] = np.r_[np.asarray(translation) + _rotation(rotation) @ x[4:], product]
        return out

    def tangent(self, q) -> np.ndarray:
        """The matrix P(q)."""
        out = np.eye(self.source.nv)
        for view, rotation, _ in self._free():
            world = _rotation(rotation) @ _rotation(np.asarray(q)[view.q][:4])
            block = np.zeros((6, 6))
            block[:3, 3:] = world
            block[3:, :3] = np.eye(3)
            out[view.v, view.v] = block
        return out

    def a(self, q, v, a) -> np.ndarray:
        """Acceleration for MuJoCo."""
        out = self.tangent(q) @ np.asarray(a, float)
        for view, rotation, _ in self._free():
            world = _rotation(rotation) @ _rotation(np.asarray(q)[view.q][:4])
            w, u = np.asarray(v)[view.v][:3], np.asarray(v)[view.v][3:]
            out[view.v][:3] += world @ np.cross(w, u)
        return out

    def a_back(self, q, v, a) -> np.ndarray:
        """Acceleration from MuJoCo."""
        shift = self.a(q, v, np.zeros(self.source.nv))
        return self.tangent(q).T @ (a - shift)

    def set(self, q, v):
        """Sets the state of MuJoCo and evaluates it."""
        self.data.qpos[:] = self.q(q)
        self.data.qvel[:] = self.tangent(q) @ np.asarray(v, float)
        mujoco.mj_forward(self.model, self.data)
        return self.data

    def mass_matrix(self, q) -> np.ndarray:
        """The mass matrix in our coordinates, after `set`."""
        dense = np.zeros((self.model.nv, self.model.nv))
        for k, unit in enumerate(np.eye(self.model.nv)):
            mujoco.mj_mulM(self.model, self.data, dense[k], unit)
        p = self.tangent(q)
        return p.T @ dense @ p


def to_mujoco(model: Model) -> MujocoOracle:
    """The same robot in MuJoCo, without contacts, limits, Coulomb friction and springs of spherical joints."""
    if model.topology.mimics:
        raise ValueError("mimic joints are not converted")
    m = mujoco.MjModel.from_xml_string(_mjcf(model))
    ours = model.properties
    oracle = MujocoOracle(model, m, mujoco.MjData(m))
    armature, damping = np.array(ours.armature), np.array(ours.damping)
    for view, *_ in oracle._free():
        if armature[view.v][3:].any() or np.ptp(damping[view.v][3:]) > 0:
            raise ValueError("MuJoCo's free joint moves along world axes: no armature, and one damping")
        for x in (armature, damping):
            x[view.v] = np.roll(x[view.v], 3)
    m.dof_armature[:] = armature
    m.dof_damping[:] = damping
    for name in model.joint_names:
        view = model.joint(name)
        if view.joint.nv == view.joint.nq:
            for k in range(view.joint.nv):
                j = m.joint(f"{name}_{k}").id
                m.jnt_stiffness[j] = ours.stiffness[view.v][k]
                m.qpos_spring[m.jnt_qposadr[j]] = ours.rest[view.q][k]
    return oracle
