"""By how much measured efforts trail the motion."""

import jax
import numpy as np

from jaxdyn.dynamics import inertial_regressor
from jaxdyn.identification._log import Log
from jaxdyn.identification._prepare_signals import interpolate
from jaxdyn.model import Model

_MOST_ROWS = 3000


def effort_delays(model: Model, logs: list[Log], longest: float) -> tuple[np.ndarray, np.ndarray]:
    """How much the measured efforts of each joint trail the motion, s, within `longest`; no prior numbers enter.

    Also whether the best of all lags is at an end of the search, so that nothing is known of the delay, which is zero.

    Row j of `[Y(q, v, a), v, tanh(v/v_s), 1, a] p = effort` is linear in all that rigid links, rotors and simple
    friction may contribute, for any values p. With Q an orthonormal basis of these columns over the samples,
    `|(1 - Q Q^T) effort_j(t + d)|^2` is what no such robot explains: its minimum over d, refined by a parabola, is the
    delay. Joints whose effort says nothing have none.
    """
    dt = float(min(float(log.dt) for log in logs))
    steps = max(2, min(40, int(np.ceil(longest / dt))))
    lags = np.linspace(-longest, longest, 2 * steps + 1)
    keep = [_rows(log, longest) for log in logs]
    regressor = jax.jit(jax.vmap(lambda q, v, a: inertial_regressor(model, q, v, a)))
    share = max(1, sum(map(len, keep)) // _MOST_ROWS)
    keep = [rows[::share] for rows in keep]
    motions = [tuple(np.asarray(x)[rows] for x in (log.q, log.v, log.a)) for log, rows in zip(logs, keep, strict=True)]
    tables = np.concatenate([np.asarray(regressor(*motion)) for motion in motions])
    v, a = (np.concatenate([motion[k] for motion in motions]) for k in (1, 2))
    slow = np.maximum(0.02 * np.abs(v).max(axis=0), 1e-9)
    delays, at_bound = np.zeros(model.nv), np.zeros(model.nv, bool)
    for j in range(model.nv):
        columns = np.column_stack([tables[:, j], v[:, j], np.tanh(v[:, j] / slow[j]), np.ones(len(v)), a[:, j]])
        shifted = np.stack([_shifted(logs, keep, j, d) for d in lags])
        delays[j], at_bound[j] = _least(columns, shifted, lags)
    return delays, at_bound


def _rows(log: Log, margin: float) -> np.ndarray:
    t = np.asarray(log.t)
    return np.flatnonzero((t >= t[0] + margin) & (t <= t[-1] - margin))


def _shifted(logs: list[Log], keep: list[np.ndarray], j: int, delay: float) -> np.ndarray:
    parts = []
    for log, rows in zip(logs, keep, strict=True):
        t, effort = np.asarray(log.t), np.asarray(log.effort[:, j])
        parts.append(interpolate(t, effort, t[rows] + delay))
    return np.concatenate(parts)


def _least(columns: np.ndarray, shifted: np.ndarray, lags: np.ndarray) -> tuple[float, bool]:
    """The lag that leaves least, where it leaves clearly less than the others; and whether it is at an end."""
    scale = np.linalg.norm(columns, axis=0)
    columns = columns[:, scale > 0] / scale[scale > 0]
    values, vectors = np.linalg.eigh(columns.T @ columns)
    seen = values > 1e-10 * values[-1]
    inside = (shifted @ columns) @ vectors[:, seen]
    rest = np.sum(shifted**2, axis=1) - np.sum(inside**2 / values[seen], axis=1)
    k = int(np.argmin(rest))
    if k in (0, len(lags) - 1):
        return 0.0, bool(rest[k] < 0.98 * rest[len(lags) // 2])
    if rest[k] > 0.98 * min(rest[0], rest[-1]):
        return 0.0, False
    below, here, above = rest[k - 1 : k + 2]
    shape = below - 2 * here + above
    return float(lags[k] + (0.5 * (below - above) / shape * (lags[1] - lags[0]) if shape > 0 else 0.0)), False
