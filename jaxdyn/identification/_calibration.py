"""Kinematic calibration: geometry from measured poses of frames."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn.identification._fit_problem import Problem, stacked
from jaxdyn.identification._log import Log
from jaxdyn.identification._methods import CHUNK, AbstractMethod
from jaxdyn.identification._nonlinear import LevenbergMarquardt
from jaxdyn.kinematics import frame_pose
from jaxdyn.model import Model


class FramePoses(AbstractMethod):
    """Fits geometry to measured poses of frames or links, `log.frames`: kinematic calibration.

    The residual of a position is `p_measured - p(q)` in world axes, m, and that of a rotation is
    `length * vee(R^T R_measured - R_measured^T R) / 2`, `R^T R_measured` being a turn by t: `sin t` about its axis, and
    the `length` what turns radians into metres. A rotation that is None was not measured. Only geometry
    has an influence: joint frames, axes, `frames`, mimic ratios. Hollerbach, Khalil and Gautier 2016, chapter 6 of the
    Springer Handbook of Robotics.
    """

    length: float = 1.0
    solver: AbstractMethod = LevenbergMarquardt(reweight=0)
    chunk: int = eqx.field(static=True, default=CHUNK)

    def problem(self, parameters, logs):
        names, turned, samples = _measured(parameters.system.model, logs)
        rows, present = stacked((samples, np.full(samples[0].shape[0], self.length, samples[0].dtype)), self.chunk)
        channels = tuple(f"{name}.{axis}" for name, t in zip(names, turned, strict=True) for axis in _axes(t))
        residual = _POSES.setdefault((names, turned), _poses(names, turned))
        return Problem(parameters, rows, present, residual, channels, ("m",) * len(channels))

    def solve(self, problem, prior, weights, tell):
        return self.solver.solve(problem, prior, weights, tell)


_POSES: dict[Any, Any] = {}


def _axes(turned: bool) -> tuple[str, ...]:
    return ("x", "y", "z", *(("turn x", "turn y", "turn z") if turned else ()))


def _poses(names, turned):
    def residual(system, sample):
        (q, *measured), length = sample
        rows, at = [], 0
        for name, with_rotation in zip(names, turned, strict=True):
            pose = frame_pose(system.model, q, name)
            rows.append(measured[at] - pose.translation)
            at += 1
            if with_rotation:
                off = pose.rotation.T @ measured[at]
                skew = (off - off.T) / 2
                rows.append(length * jnp.stack([skew[2, 1], skew[0, 2], skew[1, 0]]))
                at += 1
        return jnp.concatenate(rows)[:, None]

    return residual


def _measured(model: Model, logs: Sequence[Log]):
    """Names of the frames, whether their rotations were measured, and `(q, translation, [rotation], ...)`."""
    if not logs or not logs[0].frames:
        raise ShapeError("no poses were measured; give logs whose `frames` holds (rotation or None, translation)")
    names = tuple(logs[0].frames)
    turned = tuple(logs[0].frames[name][0] is not None for name in names)
    for name in names:
        if name not in (*model.frame_names, *model.link_names):
            raise ModelError(f"poses of {name!r} were measured, which is neither a frame nor a link of this model")
    columns: list[Any] = []
    for log in logs:
        frames = log.frames or {}
        if tuple(frames) != names:
            raise ShapeError(f"log {log.name!r} measures {tuple(frames)}, the first log {names}; give the same in all")
        column = [log.q]
        for name, with_rotation in zip(names, turned, strict=True):
            rotation, translation = frames[name]
            column += [translation, rotation] if with_rotation else [translation]
        columns.append([np.asarray(x) for x in column])
    samples = tuple(np.concatenate(x).astype(model.dtype) for x in zip(*columns, strict=True))
    return names, turned, samples
