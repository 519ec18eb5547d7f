"""Models in Pinocchio, from the public leaves of a model."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from jaxdyn.joints import (
    Continuous,
    Free,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    SphericalZYX,
    Universal,
)
from jaxdyn.model import Model


def swap(six):
    """Exchanges angular-first and linear-first order along the last axis."""
    six = np.asarray(six)
    return np.concatenate([six[..., 3:], six[..., :3]], axis=-1)


def se3(quaternion, translation) -> pin.SE3:
    """A pose from a quaternion (scalar first, of any norm) and a position."""
    w, x, y, z = np.asarray(quaternion, float) / np.linalg.norm(quaternion)
    return pin.SE3(pin.Quaternion(w, x, y, z).toRotationMatrix(), np.asarray(translation, float))


def _unit(axis):
    axis = np.asarray(axis, float)
    return axis / np.linalg.norm(axis)


def _joint_model(joint):
    match joint:
        case Revolute() | Continuous():
            return pin.JointModelRevoluteUnaligned(_unit(joint.axis))
        case Prismatic():
            return pin.JointModelPrismaticUnaligned(_unit(joint.axis))
        case Helical():
            return pin.JointModelHelicalUnaligned(_unit(joint.axis), float(joint.pitch))
        case Universal():
            first, second = _unit(joint.axis1), _unit(joint.axis2)
            if abs(first @ second) > 1e-12:
                raise ValueError("Pinocchio's universal joint has perpendicular axes only")
            return pin.JointModelUniversal(first, second)
        case Planar():
            return pin.JointModelPlanar()
        case Spherical():
            return pin.JointModelSpherical()
        case SphericalZYX():
            return pin.JointModelSphericalZYX()
        case Free():
            return pin.JointModelFreeFlyer()
    raise ValueError(f"Pinocchio has no joint like {type(joint).__name__}")


@dataclass(frozen=True)
class PinOracle:
    """Pinocchio's model of a robot, its data, and the conversions of states and vectors.

    `tangent` is the matrix P with `v_pin = P v`; it is orthogonal, so `tau_pin = P tau`.
    """

    source: Model
    model: Any
    data: Any
    tangent: np.ndarray
    #: Pinocchio's joint and the pose in it, a link
    carriers: tuple[tuple[int, Any], ...]

    def q(self, q) -> np.ndarray:
        """Configuration for Pinocchio."""
        out = np.zeros(self.model.nq)
        for view, joint in self._joints():
            x = np.asarray(q, float)[view.q]
            match view.joint:
                case Free():
                    quat = x[:4] / np.linalg.norm(x[:4])
                    x = np.r_[x[4:], quat[1:], quat[0]]
                case Spherical():
                    x = x / np.linalg.norm(x)
                    x = np.r_[x[1:], x[0]]
                case Planar():
                    x = np.r_[x[:2], np.cos(x[2]), np.sin(x[2])]
            out[joint.idx_q : joint.idx_q + joint.nq] = x
        return out

    def v(self, v) -> np.ndarray:
        """Velocity, acceleration or effort for Pinocchio."""
        return self.tangent @ np.asarray(v, float)

    def v_back(self, v) -> np.ndarray:
        """Velocity, acceleration or effort from Pinocchio."""
        return self.tangent.T @ v

    def rows_back(self, matrix) -> np.ndarray:
        """A matrix from Pinocchio whose rows are efforts or velocities."""
        return self.tangent.T @ matrix

    def columns_back(self, matrix) -> np.ndarray:
        """A matrix from Pinocchio whose columns belong to velocities."""
        return matrix @ self.tangent

    def matrix_back(self, matrix) -> np.ndarray:
        """A square matrix over the velocity space from Pinocchio."""
        return self.tangent.T @ matrix @ self.tangent

    def mass_matrix(self, q) -> np.ndarray:
        """The full symmetric mass matrix."""
        upper = np.triu(pin.crba(self.model, self.data, self.q(q)))
        return self.matrix_back(upper + np.triu(upper, 1).T)

    def external(self, wrenches):
        """Wrenches on links, angular first in link axes, as Pinocchio's forces on joints."""
        total = [np.zeros(6) for _ in range(self.model.njoints)]
        for (joint, placement), wrench in zip(self.carriers, np.asarray(wrenches, float), strict=True):
            force = pin.Force(wrench[3:], wrench[:3])
            total[joint] = total[joint] + placement.act(force).vector
        out = pin.StdVec_Force()
        for x in total:
            out.append(pin.Force(x))
        return out

    def frame_id(self, name: str) -> int:
        """Pinocchio's frame of a link, or of a named frame."""
        links = self.source.link_names
        return self.model.getFrameId(f"link:{name}" if name in links else f"frame:{name}")

    def _joints(self):
        for name in self.model.names[1:]:
            yield self.source.joint(name), self.model.joints[self.model.getJointId(name)]


def to_pinocchio(model: Model) -> PinOracle:
    """The same robot in Pinocchio: links behind fixed joints are merged, and every link is also a frame."""
    t = model.topology
    if t.mimics:
        raise ValueError("mimicking joints are not converted")
    m = pin.Model()
    m.gravity = pin.Motion(np.asarray(model.gravity, float), np.zeros(3))
    carriers: list[tuple[int, Any]] = []
    for i, name in enumerate(model.link_names):
        view = model.joint(model.joint_names[i])
        above, offset = carriers[t.parents[i]] if t.parents[i] >= 0 else (0, pin.SE3.Identity())
        pose = offset * se3(model.placements.rotation[i], model.placements.translation[i])
        if t.groups[i] >= 0:
            above = m.addJoint(above, _joint_model(view.joint), pose, view.name)
            pose = pin.SE3.Identity()
        carriers.append((above, pose))
        body = pin.Inertia(float(model.links.mass[i]), np.asarray(model.links.com[i], float),
                           np.asarray(model.links.inertia[i], float))  # fmt: skip
        m.appendBodyToJoint(above, body, pose)
        m.addFrame(pin.Frame(f"link:{name}", above, 0, pose, pin.FrameType.OP_FRAME))
    for k, name in enumerate(model.frame_names):
        joint, placed = carriers[t.frame_links[k]]
        pose = placed * se3(model.frames.rotation[k], model.frames.translation[k])
        m.addFrame(pin.Frame(f"frame:{name}", joint, 0, pose, pin.FrameType.OP_FRAME))
    tangent = np.zeros((m.nv, model.nv))
    for name in m.names[1:]:
        view, joint = model.joint(name), m.joints[m.getJointId(name)]
        block = np.roll(np.eye(6), 3, axis=0) if isinstance(view.joint, Free) else np.eye(joint.nv)
        tangent[joint.idx_v : joint.idx_v + joint.nv, view.v] = block
    m.armature = tangent @ np.asarray(model.properties.armature, float)
    return PinOracle(model, m, m.createData(), tangent, tuple(carriers))
