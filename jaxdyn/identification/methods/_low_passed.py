"""Fits of low-pass filtered efforts: the same filter for measured and predicted ones."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn._types import Array
from jaxdyn.identification.logs import Log
from jaxdyn.identification.methods._contract import CHUNK, AbstractMethod
from jaxdyn.identification.methods._physical import Physical
from jaxdyn.identification.parameters import Parameters
from jaxdyn.identification.residuals import (
    EffortSample,
    LeastSquaresProblem,
    check_parts,
    effort_channels,
    effort_residual,
    effort_samples,
    measured_values,
    stack_chunks,
)
from jaxdyn.simulation import System


class _FilterWindow(NamedTuple):
    """The rows of one window of the filter with their weights, or of several along a leading axis."""

    weights: Array | np.ndarray
    rows: EffortSample


def _filtered_residual(system: System, sample: _FilterWindow) -> Array:
    """`sum_k h_k (measured_k - predicted_k)` over the rows of one window of the filter."""
    rows = jax.vmap(lambda row: effort_residual(system, row))(sample.rows)
    return jnp.einsum("l,lck->ck", sample.weights, rows)


class LowPassed(AbstractMethod):
    """Fits low-pass filtered efforts: measured and predicted efforts pass the same filter.

    Noise and flexibility above the frequencies of the motion are attenuated as by a filter of the log, but without its
    bias: the discontinuity of Coulomb friction is smoothed in the prediction as well, and products of velocities are
    filtered as products. Prepare the log with a high cut-off frequency, and give the low one here (Gautier 1997,
    "parallel decimation"). The filter is a Hann window of duration `1 / cutoff` without phase shift,

        gain(f) = sin(pi f / c) / (pi f / c) / (1 - (f / c)^2),     1/2 at the cut-off c, next to 0 beyond 2 c

    At the ends of a log the window is truncated and normalised, so that no samples are lost and none of held-out rows
    are used.

    Arguments:

    * `cutoff`: cut-off frequency c, Hz.
    * `solver`: a method for efforts: `Physical()`, `Linear()`, `LevenbergMarquardt()` or `FirstOrder(...)`.
    * `overlap`: number of residuals for each duration of the window.
    * `chunk`: number of rows whose derivatives are in memory at once.

    ```python
    import numpy as np
    import jaxdyn as jd
    from jaxdyn.identification import Linear, Log, LowPassed, fit

    t = np.linspace(0, 4, 401)[:, None]
    q, v, a = np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)
    noise = 0.1 * np.sin(100 * t)  # far above the motion, with m = 1 kg, l = 1 m, damping 0.3
    log = Log(t[:, 0], q, v, a, effort=a + 9.81 * np.sin(q) + 0.3 * v + noise)
    result = fit(jd.robots.pendulum(), log, ["joints[*].damping"], LowPassed(4.0, Linear(reweight=0)))
    assert abs(result.value("joints[rod_joint].damping") - 0.3) < 1e-2
    ```
    """

    cutoff: float = eqx.field(static=True)
    solver: AbstractMethod = Physical()
    overlap: int = eqx.field(static=True, default=4)
    chunk: int = eqx.field(static=True, default=CHUNK)

    def __check_init__(self):
        if not self.cutoff > 0 or self.overlap < 1:
            raise ModelError(f"cutoff is {self.cutoff} Hz and overlap {self.overlap}; expected positive numbers")

    def problem(self, parameters: Parameters, logs: Sequence[Log]) -> LeastSquaresProblem:
        system = parameters.system
        check_parts(system, logs)
        windows, measured = self._windows(system, logs)
        samples, present = stack_chunks(windows, max(1, self.chunk // windows.weights.shape[1]))
        rms = jnp.asarray(np.sqrt(np.mean(measured**2, axis=0)))
        channels = effort_channels(system, windows.rows)
        return LeastSquaresProblem(parameters, samples, present, _filtered_residual, *channels, False, rms)

    def solve(self, problem, prior, weights, tell):
        return self.solver.solve(problem, prior, weights, tell)

    def _windows(self, system: System, logs: Sequence[Log]) -> tuple[_FilterWindow, np.ndarray]:
        """All windows of the filter, and the filtered measurements `(windows, channels)`."""
        if not logs:
            raise ShapeError("no logs were given; expected at least one")
        lengths = sorted({self._length(log) for log in logs})
        if len(lengths) > 1:
            raise ShapeError(
                f"the logs have different time steps: a window of {1 / self.cutoff:.4g} s has "
                f"{', '.join(map(str, lengths))} rows; prepare all logs with the same rate"
            )
        windows, filtered, length = [], [], lengths[0]
        for log in logs:
            last = log.num_samples - 1
            centres = np.linspace(0, last, 1 + -(-last * self.overlap // length)).round().astype(int)
            at = centres[:, None] + np.arange(length) - length // 2
            weights = np.hanning(length + 2)[1:-1] * ((at >= 0) & (at <= last))
            weights /= weights.sum(axis=1, keepdims=True)
            at, rows = np.clip(at, 0, last), effort_samples(system, [log])
            filtered.append(np.einsum("wl,wlc->wc", weights, measured_values(system, rows)[at]))
            taken = jax.tree.map(lambda x, at=at: x[at], rows)
            windows.append(_FilterWindow(weights.astype(system.model.dtype), taken))
        return jax.tree.map(lambda *x: np.concatenate(x), *windows), np.concatenate(filtered)

    def _length(self, log: Log) -> int:
        if log.num_samples < 2:
            raise ShapeError(f"log {log.name!r} has {log.num_samples} rows; expected two or more")
        dt = float(log.dt)
        if np.abs(np.diff(np.asarray(log.t)) - dt).max() > 1e-3 * dt:
            raise ShapeError(f"log {log.name!r} has uneven time steps; prepare the log, which resamples it")
        length = 2 * round(0.5 / (self.cutoff * dt)) - 1
        if length < 3:
            raise ModelError(
                f"cutoff {self.cutoff} Hz is above a quarter of the rate of log {log.name!r}, {1 / dt:.4g} Hz; give a "
                "lower one, or fit without LowPassed"
            )
        return length
