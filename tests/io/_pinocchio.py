"""Pinocchio's model of a URDF, in the coordinates of jaxdyn's model of the same file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pinocchio as pin

from jaxdyn import Model, bias_forces, gravity_forces, mass_matrix
from jaxdyn.joints import Free, Planar

ROBOTS = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots"


@jax.jit
def quantities(model: Model, q, v):
    """Mass matrix, bias forces and gravity forces."""
    return mass_matrix(model, q), bias_forces(model, q, v), gravity_forces(model, q)


@dataclass(frozen=True)
class PinUrdf:
    """Pinocchio's model of a URDF beside jaxdyn's, joints paired by name.

    Pinocchio orders siblings by name; its free flyer is `[linear, angular]` with the quaternion x y z w. It
    reads all joints as free to move; those that mimic others are geared here, `v_pin = P v`.
    """

    ours: Model
    model: Any

    def _pairs(self):
        mimics = {self.ours.joint_names[a]: k for k, (a, _) in enumerate(self.ours.topology.mimics)}
        for name in self.model.names[1:]:
            joint = self.model.joints[self.model.getJointId(name)]
            gear = (1.0, 0.0)
            if name in mimics:
                gear = (float(self.ours.mimic.ratio[mimics[name]]), float(self.ours.mimic.offset[mimics[name]]))
            yield self.ours.joint(name), joint, gear

    def q(self, q):
        """Configuration for Pinocchio."""
        out, q = np.zeros(self.model.nq), np.asarray(q)
        for view, joint, (ratio, offset) in self._pairs():
            x = q[view.q]
            if isinstance(view.joint, Free):
                x = np.r_[x[4:], x[1:4], x[0]]
            elif isinstance(view.joint, Planar):
                x = np.r_[x[:2], np.cos(x[2]), np.sin(x[2])]
            else:
                x = ratio * x + offset
                x = np.r_[np.cos(x), np.sin(x)] if joint.nq == 2 else x
            out[joint.idx_q : joint.idx_q + joint.nq] = x
        return out

    def tangent(self):
        """P."""
        out = np.zeros((self.model.nv, self.ours.nv))
        for view, joint, (ratio, _) in self._pairs():
            block = np.roll(np.eye(6), 3, axis=0) if isinstance(view.joint, Free) else ratio * np.eye(joint.nv)
            out[joint.idx_v : joint.idx_v + joint.nv, view.v] = block
        return out

    def quantities(self, q, v):
        """As `quantities`, by Pinocchio."""
        data, at, p = self.model.createData(), self.q(q), self.tangent()
        upper = np.triu(pin.crba(self.model, data, at))
        mass = upper + np.triu(upper, 1).T
        bias = pin.rnea(self.model, data, at, p @ np.asarray(v), np.zeros(self.model.nv))
        still = pin.rnea(self.model, data, at, np.zeros(self.model.nv), np.zeros(self.model.nv))
        return p.T @ mass @ p, p.T @ bias, p.T @ still


def pin_urdf(ours: Model, text: str | Path, *, floating: bool = False) -> PinUrdf:
    """Pinocchio's model of a URDF file or text."""
    build = pin.buildModelFromUrdf if isinstance(text, Path) else pin.buildModelFromXML
    return PinUrdf(ours, build(str(text), pin.JointModelFreeFlyer()) if floating else build(str(text)))


def some_state(model: Model, seed: int = 0):
    """Coordinates and velocities, generic; quaternions of unit length."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1, 1, model.nq)
    for name in model.joint_names:
        view = model.joint(name)
        if isinstance(view.joint, Free):
            q[view.q][:4] /= np.linalg.norm(q[view.q][:4])
    return q, rng.normal(size=model.nv)
