"""Poses of frames and residuals of closures by Pinocchio."""

import numpy as np
import pinocchio as pin

from jaxdyn.model import Closure, Model
from tests.oracles._pinocchio import se3, to_pinocchio


class PoseOracle:
    """Poses of frames of one robot as homogeneous matrices."""

    def __init__(self, model: Model):
        self.model, self.oracle = model, to_pinocchio(model)
        self.closures = [self._ends(closure) for closure in model.closures]

    def __call__(self, q, name: str) -> np.ndarray:
        """A link or frame by name."""
        self._update(q)
        return self.oracle.data.oMf[self.oracle.frame_id(name)].homogeneous

    def residuals(self, q) -> np.ndarray:
        """Residuals of all closures, by their kinds."""
        self._update(q)
        return np.concatenate([self._residual(*closure) for closure in self.closures])

    def rank(self, q, step=1e-6) -> int:
        """Rank of the closures' Jacobian, by central differences."""
        columns = []
        for shift in step * np.eye(self.model.nq):
            columns.append((self.residuals(q + shift) - self.residuals(q - shift)) / (2 * step))
        return int(np.linalg.matrix_rank(np.array(columns).T, tol=1e-6))

    def _update(self, q):
        pin.framesForwardKinematics(self.oracle.model, self.oracle.data, self.oracle.q(q))

    def _ends(self, closure: Closure):
        ends = zip(closure.links, np.asarray(closure.rotations), np.asarray(closure.translations), strict=True)
        frames = [(None if link == "world" else self.oracle.frame_id(link), se3(r, p)) for link, r, p in ends]
        return closure.kind, frames, float(closure.length)

    def _residual(self, kind: str, frames, length: float) -> np.ndarray:
        first, second = (pose if k is None else self.oracle.data.oMf[k] * pose for k, pose in frames)
        way = second.translation - first.translation
        match kind:
            case "point":
                return way
            case "distance":
                return np.array([np.linalg.norm(way) - length])
            case "revolute":  # the second z axis has no components normal to the first
                return np.concatenate([way, first.rotation[:, :2].T @ second.rotation[:, 2]])
        raise ValueError(kind)
