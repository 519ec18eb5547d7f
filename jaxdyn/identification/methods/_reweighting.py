"""Iteratively reweighted least squares: weights of the channels, and robust losses."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from jaxdyn._numerics import floats_as_arrays
from jaxdyn.identification.methods._contract import Estimate, Weights
from jaxdyn.identification.methods._evaluation import Evaluator
from jaxdyn.identification.methods._status import FitStatus
from jaxdyn.identification.residuals import AbstractLoss, NormalEquations, residuals

#: a minimisation with fixed weights: `(sums, x, weights, loss) -> (x, status, steps, costs)`
Minimise = Callable[
    [NormalEquations, np.ndarray, np.ndarray, AbstractLoss | None], tuple[np.ndarray, FitStatus, int, list[float]]
]


def solve_reweighted(
    evaluator: Evaluator,
    minimise: Minimise,
    x: np.ndarray,
    weights: Weights,
    passes: int,
    loss: AbstractLoss | None,
) -> Estimate:
    """Minimises repeatedly, each time with the standard deviations of the channels from the residuals before.

    Given weights are kept. A robust loss needs standard deviations, so that the first pass is without it; with a loss
    they are those of the median, `1.4826 median |r|`, which is insensitive to outliers (Huber 1981, section 5.1).
    """
    loss = floats_as_arrays(loss, evaluator.first.x.dtype)
    given = None if weights is None else np.asarray(weights, float)
    channels = len(evaluator.problem.channels)
    count = len(evaluator.problem.parameters.names)
    current = np.ones(channels) if given is None else given
    total, history, status = 0, [], FitStatus.CONVERGED
    runs = 1 + (passes if given is None or loss is not None else 0)
    for run in range(runs):
        run_loss = loss if run else None
        x, status, steps, history = minimise(evaluator.at(x, current, run_loss), x, current, run_loss)
        total += steps
        evaluator.tell(f"pass {run + 1} of {runs}: cost {history[-1]:.6g} after {total} steps")
        if run < runs - 1 and given is None:
            least = _least_deviations(evaluator)
            if loss is None:
                current = channel_weights(evaluator.at(x, current), count, least)
            else:
                current = 1 / np.maximum(_median_deviations(evaluator, x), least)
    sums = evaluator.at(x, current, loss if runs > 1 else None)
    return Estimate(x, status, total, tuple(history), current, sums, evaluator.groups(sums, current))


def channel_weights(sums: NormalEquations, parameters: int, least: np.ndarray) -> np.ndarray:
    """Inverse standard deviations of the channels, which are at least `least`."""
    count = np.maximum(sums.count - parameters / len(sums.count), 1)
    return 1 / np.maximum(np.sqrt(np.maximum(sums.square, 0) / count), least)


def _least_deviations(evaluator: Evaluator) -> np.ndarray:
    """The standard deviations that sums in the precision of the data can resolve."""
    first = np.sqrt(np.asarray(evaluator.first.square, float) / np.maximum(np.asarray(evaluator.first.count, float), 1))
    size = np.maximum(first, np.nan_to_num(evaluator.problem.measured_rms()))
    size = np.where(size > 0, size, max(size.max(initial=0), 1e-30))
    return np.sqrt(float(np.finfo(evaluator.first.x.dtype).eps)) * size


def _median_deviations(evaluator: Evaluator, x: np.ndarray) -> np.ndarray:
    """The standard deviation of a normal distribution with the same median magnitude, of each channel."""
    r = residuals(evaluator.problem, jnp.asarray(x, evaluator.first.x.dtype))
    return 1.4826 * np.median(np.abs(r), axis=1)
