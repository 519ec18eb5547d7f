"""Fits of simulated motion to measured motion, by multiple shooting."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ShapeError
from jaxdyn.identification._fit_problem import Problem, stacked
from jaxdyn.identification._fit_residual import coordinate_channels
from jaxdyn.identification._log import Log
from jaxdyn.identification._methods import AbstractMethod
from jaxdyn.identification._parameters import Parameters
from jaxdyn.identification._physical_fit import Physical
from jaxdyn.identification._window_starts import AbstractStart, MeasuredStart
from jaxdyn.identification._windows import Windows, check_delays
from jaxdyn.model import Model
from jaxdyn.simulation import System
from jaxdyn.simulation._system import as_system


class OutputError(AbstractMethod):
    """Fits the motion that `simulate` gives under the measured efforts to the measured motion.

    The log is cut into windows, and each one is simulated from a state of its own (multiple shooting), so that neither
    noise of accelerations nor an unstable robot spoils the fit, and so that drives may have a delay and parts a
    state. `start` says which state: `MeasuredStart()`, or `FreeStart()`, which fits it with the parameters and is the
    choice for noisy and for unstable robots. The residual is that of the coordinates, rad or m, with derivatives
    by forward mode through the steps. `solver` is a method for nonlinear residuals: `Physical()` or
    `LevenbergMarquardt()`. A delay that outgrows the `lead` of the windows is a `ModelError`.
    """

    windows: Windows = Windows()
    solver: AbstractMethod = Physical()
    start: AbstractStart = MeasuredStart()
    #: windows whose derivatives are in memory at once
    chunk: int = eqx.field(static=True, default=16)
    _residual: Callable[..., Any] = eqx.field(static=True, init=False)

    def __post_init__(self):
        self._residual = _residual_of(self.windows, self.start)

    def problem(self, parameters: Parameters, logs: Sequence[Log]) -> Problem:
        model = parameters.system.model
        samples, present = _chunked(model, self.windows, logs, self.chunk)
        check_delays(parameters.system, _lead(samples))
        seen = samples[0].shape[2]
        if seen <= self.start.spent:
            raise ShapeError(
                f"windows compare {seen} samples of each coordinate, of which their free starts take "
                f"{self.start.spent}; take longer windows or a smaller `every`"
            )
        channels, units = coordinate_channels(model)
        units = tuple("m" if unit == "N" else "rad" for unit in units)
        spread = np.concatenate([np.asarray(log.q) for log in logs])
        measured = jnp.asarray(np.sqrt(np.mean(spread**2, axis=0))) if model.nq == model.nv else None
        return Problem(parameters, samples, present, self._residual, channels, units, True, measured, self.start.spent)

    def solve(self, problem, prior, weights, tell):
        found = self.solver.solve(problem, prior, weights, tell)
        check_delays(problem.parameters.insert(jnp.asarray(found.x)), _lead(problem.samples))
        return found


def _lead(samples) -> float:
    """How far efforts reach back before the windows, s."""
    return -float(np.max(np.asarray(samples[3])))


_RESIDUALS: dict[Any, Callable[..., Any]] = {}


def _residual_of(windows: Windows, start: AbstractStart) -> Callable[..., Any]:
    """One function for each choice of windows and starts, so that compiled code is found again."""
    key = (jax.tree.structure((windows, start)), *jax.tree.leaves((windows, start)))
    return _RESIDUALS.setdefault(key, lambda system, sample: start.residual(system, windows, sample))


def simulation_error(
    system: Model | System,
    logs: Sequence[Log],
    windows: Windows | None = None,
    start: AbstractStart | None = None,
) -> np.ndarray:
    """Root mean square of simulated against measured coordinates over windows of the logs, `(nv,)`, rad or m.

    Windows start in the measured state, unless `start` says otherwise.
    """
    system = as_system(system)
    windows = Windows() if windows is None else windows
    start = MeasuredStart() if start is None else start
    samples, present = _chunked(system.model, windows, logs, 16)
    check_delays(system, _lead(samples))
    found = [np.asarray(_window_errors(windows, start, system, rows)) for rows in _each(samples)]
    kept = np.concatenate(found)[np.asarray(present).reshape(-1) > 0]
    return np.sqrt(np.mean(kept**2, axis=(0, 2)))


@eqx.filter_jit
def _window_errors(windows: Windows, start: AbstractStart, system: System, rows):
    return jax.vmap(lambda row: _residual_of(windows, start)(system, row))(rows)


def _each(samples):
    for k in range(jax.tree.leaves(samples)[0].shape[0]):
        yield jax.tree.map(lambda x, k=k: x[k], samples)


def _chunked(model: Model, windows: Windows, logs: Sequence[Log], chunk: int):
    """The windows of all logs, in chunks."""
    if not logs:
        raise ShapeError("there is no log to simulate; give at least one")
    cut = [windows.cut(model, log) for log in logs]
    short = min(c[5].shape[1] for c in cut)
    rows = [(*c[:3], c[3] + c[4] * (c[5].shape[1] - short), c[4], c[5][:, -short:]) for c in cut]
    sample = tuple(np.concatenate(x).astype(model.dtype) for x in zip(*rows, strict=True))
    many = sample[0].shape[0]
    if many < chunk:
        sample = tuple(np.concatenate([x, np.repeat(x[-1:], chunk - many, 0)]) for x in sample)
    samples, present = stacked(sample, chunk)
    return samples, present * (np.arange(present.size).reshape(present.shape) < many)
