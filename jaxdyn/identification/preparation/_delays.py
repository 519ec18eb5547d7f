"""The delay of measured efforts relative to the motion."""

import equinox as eqx
import jax
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.dynamics import inertial_regressor
from jaxdyn.identification.logs import Log
from jaxdyn.identification.preparation._signals import interpolate_cubic
from jaxdyn.model import Model

_MAX_ROWS = 3000


def estimate_effort_delays(model: Model, logs: list[Log], longest: float) -> tuple[np.ndarray, np.ndarray]:
    """The delay of each joint's measured effort relative to the motion, s, at most `longest` `(nv,)`.

    Also returns for each joint whether the best lag is at the bound of the search; its delay is then unknown, and zero.

    Row j of `[Y(q, v, a), v, tanh(v/v_s), 1, a] p = effort`, with the regressor Y, is linear in the parameters p of
    links, friction, effort offset and rotors. With Q an orthonormal basis of these columns over the samples,
    `|(1 - Q Q^T) effort_j(t + d)|^2` is the residual that no parameters explain. Its minimum over d, refined by a
    parabola, is the delay; the parameters of the model do not matter. The delay is zero if the minimum is not distinct.
    """
    dt = float(min(float(log.dt) for log in logs))
    steps = max(2, min(40, int(np.ceil(longest / dt))))
    lags = np.linspace(-longest, longest, 2 * steps + 1)
    keep = [_interior_rows(log, longest) for log in logs]
    if not any(map(len, keep)):
        spans = [float(log.t[-1] - log.t[0]) for log in logs]
        raise ModelError(
            f"longest_delay is {longest:g} s, and the longest segment of the logs lasts {max(spans):.4g} s; give less "
            "than half of this"
        )
    stride = max(1, sum(map(len, keep)) // _MAX_ROWS)
    keep = [rows[::stride] for rows in keep]
    motions = [tuple(np.asarray(x)[rows] for x in (log.q, log.v, log.a)) for log, rows in zip(logs, keep, strict=True)]
    y = np.concatenate([np.asarray(_regressors(model, *motion)) for motion in motions])
    v, a = (np.concatenate([motion[k] for motion in motions]) for k in (1, 2))
    slow = np.maximum(0.02 * np.abs(v).max(axis=0), 1e-9)
    delays, at_bound = np.zeros(model.nv), np.zeros(model.nv, bool)
    for j in range(model.nv):
        columns = np.column_stack([y[:, j], v[:, j], np.tanh(v[:, j] / slow[j]), np.ones(len(v)), a[:, j]])
        shifted = np.stack([_shift_efforts(logs, keep, j, d) for d in lags])
        delays[j], at_bound[j] = _best_lag(columns, shifted, lags)
    return delays, at_bound


@eqx.filter_jit
def _regressors(model: Model, q, v, a):
    return jax.vmap(lambda q, v, a: inertial_regressor(model, q, v, a))(q, v, a)


def _interior_rows(log: Log, margin: float) -> np.ndarray:
    t = np.asarray(log.t)
    return np.flatnonzero((t >= t[0] + margin) & (t <= t[-1] - margin))


def _shift_efforts(logs: list[Log], keep: list[np.ndarray], j: int, delay: float) -> np.ndarray:
    parts = []
    for log, rows in zip(logs, keep, strict=True):
        t, effort = np.asarray(log.t), np.asarray(log.effort[:, j])
        parts.append(interpolate_cubic(t, effort, t[rows] + delay))
    return np.concatenate(parts)


def _best_lag(columns: np.ndarray, shifted: np.ndarray, lags: np.ndarray) -> tuple[float, bool]:
    """The lag with a distinctly least residual, otherwise zero; and whether the best lag is at the bound."""
    scale = np.linalg.norm(columns, axis=0)
    columns = columns[:, scale > 0] / scale[scale > 0]
    values, vectors = np.linalg.eigh(columns.T @ columns)
    nonzero = values > 1e-10 * values[-1]
    projection = (shifted @ columns) @ vectors[:, nonzero]
    residual = np.sum(shifted**2, axis=1) - np.sum(projection**2 / values[nonzero], axis=1)
    k = int(np.argmin(residual))
    if k in (0, len(lags) - 1):
        return 0.0, bool(residual[k] < 0.98 * residual[len(lags) // 2])
    if residual[k] > 0.98 * min(residual[0], residual[-1]):
        return 0.0, False
    below, here, above = residual[k - 1 : k + 2]
    curvature = below - 2 * here + above
    return float(lags[k] + (0.5 * (below - above) / curvature * (lags[1] - lags[0]) if curvature > 0 else 0.0)), False
