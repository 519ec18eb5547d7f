"""Fits of efforts behind a low-pass that measured and predicted efforts both go through."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn.identification._fit_problem import Problem, stacked
from jaxdyn.identification._fit_residual import check_parts, coordinate_channels, effort_residual, effort_samples
from jaxdyn.identification._log import Log
from jaxdyn.identification._methods import CHUNK, AbstractMethod
from jaxdyn.identification._parameters import Parameters
from jaxdyn.identification._physical_fit import Physical
from jaxdyn.model import Model


def _residual(system, sample):
    """`sum_k h_k (measured_k - predicted_k)` over the rows of one window."""
    weights, *row = sample
    rows = jax.vmap(lambda *one: effort_residual(system, one))(*row)
    return jnp.einsum("l,lck->ck", weights, rows)


class LowPassed(AbstractMethod):
    """Fits efforts after a low-pass, through which what was measured goes and what is predicted too.

    Noise and flexibility above the motion's frequencies are left out as by a filter of the log, but without its bias:
    the jumps of Coulomb friction are rounded on both sides, and products of motions are filtered as products. So
    prepare the log with a high cut-off, and give the low one here (Gautier 1997, "parallel decimation").
    The filter is a Hann window of duration `1 / cutoff`,

        gain(f) = sin(pi f / c) / (pi f / c) / (1 - (f / c)^2),     1/2 at the cut-off c, nothing beyond 2 c

    which has no phase. Where it reaches over the ends of a log it is what is left of it, of sum one, so that nothing is
    lost there and nothing is seen of rows that were held out. `overlap` residuals are kept in each duration.
    `solver` is any method for efforts: `Physical()`, `Linear()`, `LevenbergMarquardt()`.
    """

    #: Hz
    cutoff: float = eqx.field(static=True)
    solver: AbstractMethod = Physical()
    overlap: int = eqx.field(static=True, default=4)
    #: rows whose derivatives are in memory at once
    chunk: int = eqx.field(static=True, default=CHUNK)

    def __check_init__(self):
        if not self.cutoff > 0 or self.overlap < 1:
            raise ModelError(f"cutoff {self.cutoff} Hz and overlap {self.overlap}: expected positive numbers")

    def problem(self, parameters: Parameters, logs: Sequence[Log]) -> Problem:
        model = parameters.system.model
        check_parts(parameters.system)
        windows = self._windows(model, logs)
        samples, present = stacked(windows, max(1, self.chunk // windows[0].shape[1]))
        measured = np.einsum("wl,wlc->wc", windows[0], windows[5])
        size = jnp.asarray(np.sqrt(np.mean(measured**2, axis=0)))
        return Problem(parameters, samples, present, _residual, *coordinate_channels(model), False, size)

    def solve(self, problem, prior, weights, tell):
        return self.solver.solve(problem, prior, weights, tell)

    def _windows(self, model: Model, logs: Sequence[Log]) -> tuple[Any, ...]:
        """Weights and rows of each window, `(windows, length, ...)`."""
        if not logs:
            raise ShapeError("there is no log to fit; give at least one")
        lengths = sorted({self._length(log) for log in logs})
        if len(lengths) > 1:
            raise ShapeError(
                f"the logs have different time steps, of which a low-pass at {self.cutoff} Hz takes "
                f"{', '.join(map(str, lengths))} rows; prepare them with one rate"
            )
        columns, length = [], lengths[0]
        for log in logs:
            last = log.num_samples - 1
            middle = np.linspace(0, last, 1 + -(-last * self.overlap // length)).round().astype(int)
            at = middle[:, None] + np.arange(length) - length // 2
            weights = np.hanning(length + 2)[1:-1] * ((at >= 0) & (at <= last))
            weights /= weights.sum(axis=1, keepdims=True)
            rows = effort_samples(model, [log])
            columns.append([weights.astype(model.dtype), *(x[np.clip(at, 0, last)] for x in rows)])
        return tuple(np.concatenate(x) for x in zip(*columns, strict=True))

    def _length(self, log: Log) -> int:
        if log.num_samples < 2:
            raise ShapeError(f"log {log.name!r} has {log.num_samples} rows; expected two or more")
        dt = float(log.dt)
        if np.abs(np.diff(np.asarray(log.t)) - dt).max() > 1e-3 * dt:
            raise ShapeError(f"log {log.name!r} has uneven time steps; prepare it, which resamples it")
        length = 2 * round(0.5 / (self.cutoff * dt)) - 1
        if length < 3:
            raise ModelError(
                f"cutoff {self.cutoff} Hz of the low-pass is above a quarter of the rate of log {log.name!r}, "
                f"{1 / dt:.4g} Hz; give a lower one, or fit without LowPassed"
            )
        return length
