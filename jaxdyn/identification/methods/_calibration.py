"""Kinematic calibration: geometric parameters from measured poses of frames."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn._types import Array, PyTree
from jaxdyn.identification.logs import Log
from jaxdyn.identification.methods._contract import CHUNK, AbstractMethod
from jaxdyn.identification.methods._levenberg_marquardt import LevenbergMarquardt
from jaxdyn.identification.residuals import LeastSquaresProblem, stack_chunks
from jaxdyn.kinematics import frame_pose
from jaxdyn.model import Model
from jaxdyn.simulation import System


class FramePoses(AbstractMethod):
    """Kinematic calibration: fits geometric parameters to measured poses of frames or links, `log.frames`.

    The residual of a position is `p_measured - p(q)` in world axes, m. That of a rotation is
    `length * vee(R^T R_measured - R_measured^T R) / 2`: for a rotation error by the angle t, `length sin t` along its
    axis. Geometric parameters are joint frames, axes, `frames` and mimic ratios; others have no influence. Hollerbach,
    Khalil and Gautier 2016, chapter 6 of the Springer Handbook of Robotics.

    Arguments:

    * `length`: weight of rotations relative to positions, m/rad.
    * `solver`: the method that minimises the residual.
    * `chunk`: number of samples whose derivatives are in memory at once.

    `log.frames` maps names to pairs of rotations `(n, 3, 3)`, or None where they were not measured, and translations
    `(n, 3)`.

    ```python
    import numpy as np
    import jaxdyn as jd
    from jaxdyn.identification import FramePoses, Log, fit

    q = np.linspace(-1, 1, 20)[:, None]
    tip = 0.9 * np.concatenate([-np.sin(q), 0 * q, -np.cos(q)], axis=1)  # of a rod of 0.9 m
    log = Log(np.arange(20.0), q, 0 * q, 0 * q, 0 * q, frames={"tip": (None, tip)})
    result = fit(jd.robots.pendulum(length=1.0), log, ["frames[tip].translation"], FramePoses())
    assert np.allclose(result.model.frames.translation[0], [0, 0, -0.9], atol=1e-3)
    ```
    """

    length: float = 1.0
    solver: AbstractMethod = LevenbergMarquardt(reweight=0)
    chunk: int = eqx.field(static=True, default=CHUNK)

    def problem(self, parameters, logs):
        names, has_rotation, samples = _measured_poses(parameters.system.model, logs)
        rows, present = stack_chunks((samples, np.full(samples[0].shape[0], self.length, samples[0].dtype)), self.chunk)
        channels = tuple(f"{name}.{axis}" for name, r in zip(names, has_rotation, strict=True) for axis in _axes(r))
        residual = _RESIDUALS.setdefault((names, has_rotation), _pose_residual(names, has_rotation))
        return LeastSquaresProblem(parameters, rows, present, residual, channels, ("m",) * len(channels))

    def solve(self, problem, prior, weights, tell):
        return self.solver.solve(problem, prior, weights, tell)


#: one function for equal frames, so that compiled programs are reused
_RESIDUALS: dict[tuple[tuple[str, ...], tuple[bool, ...]], Callable[[System, PyTree], Array]] = {}


def _axes(has_rotation: bool) -> tuple[str, ...]:
    return ("x", "y", "z", *(("turn x", "turn y", "turn z") if has_rotation else ()))


def _pose_residual(names: tuple[str, ...], has_rotation: tuple[bool, ...]) -> Callable[[System, PyTree], Array]:
    def residual(system, sample):
        (q, *measured), length = sample
        rows, at = [], 0
        for name, with_rotation in zip(names, has_rotation, strict=True):
            pose = frame_pose(system.mounted_model, q, name)
            rows.append(measured[at] - pose.translation)
            at += 1
            if with_rotation:
                error = pose.rotation.T @ measured[at]
                skew = (error - error.T) / 2
                rows.append(length * jnp.stack([skew[2, 1], skew[0, 2], skew[1, 0]]))
                at += 1
        return jnp.concatenate(rows)[:, None]

    return residual


def _measured_poses(
    model: Model, logs: Sequence[Log]
) -> tuple[tuple[str, ...], tuple[bool, ...], tuple[np.ndarray, ...]]:
    """Names of the frames, whether their rotations were measured, and `(q, translation, [rotation], ...)`."""
    if not logs or not logs[0].frames:
        raise ShapeError("no poses were measured; expected logs whose `frames` holds (rotation or None, translation)")
    names = tuple(logs[0].frames)
    has_rotation = tuple(logs[0].frames[name][0] is not None for name in names)
    for name in names:
        if name not in (*model.frame_names, *model.link_names):
            raise ModelError(f"poses of {name!r} were measured; expected the name of a frame or link of the model")
    columns: list[list[np.ndarray]] = []
    for log in logs:
        frames = log.frames or {}
        if tuple(frames) != names:
            raise ShapeError(
                f"log {log.name!r} measures {tuple(frames)}, the first log {names}; expected the same frames"
            )
        column = [log.q]
        for name, with_rotation in zip(names, has_rotation, strict=True):
            rotation, translation = frames[name]
            column += [translation, rotation] if with_rotation else [translation]
        columns.append([np.asarray(x) for x in column])
    samples = tuple(np.concatenate(x).astype(model.dtype) for x in zip(*columns, strict=True))
    return names, has_rotation, samples
