"""What the methods of a fit have in common."""

import abc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.identification._base_parameters import Grouping, grouping
from jaxdyn.identification._dependence import residuals
from jaxdyn.identification._fit_problem import AbstractLoss, Normal, Problem, generic, is_linear, normal
from jaxdyn.identification._fit_residual import effort_problem
from jaxdyn.identification._log import Log
from jaxdyn.identification._parameters import Parameters
from jaxdyn.identification._physical import GeometricPrior
from jaxdyn.identification._result import FitStatus

#: samples whose derivatives are in memory at once
CHUNK = 2048

#: chunks of samples that decide whether a residual is linear
_FEW = 4


class Solution(NamedTuple):
    """A vector of parameters, and how it was found."""

    x: np.ndarray
    status: FitStatus
    steps: int
    #: the cost at the start and after each step, with the last weights
    history: tuple[float, ...]
    #: inverse deviations of the channels
    weights: np.ndarray
    #: the sums at x, with the weights of the loss
    sums: Normal
    groups: Grouping


class Data:
    """The normal equations of a problem wherever a method asks: by formula where the residual is linear.

    A selected parameter that moves no residual is a `ModelError` before anything is solved. Samples drawn at random
    decide whether the residual is linear, and all of them where a parameter does not show in these.
    """

    def __init__(self, problem: Problem, x0, tell: Callable[[str], None]):
        self.problem, self.tell = problem, tell
        x = jnp.asarray(x0, problem.parameters.read().dtype)
        self.first = normal(problem, x)
        self.finite = all(bool(np.isfinite(np.asarray(x)).all()) for x in self.first)
        self.linear = False
        if self.finite:
            few = problem.some(_FEW)
            near = self.first if few is problem else normal(few, x)
            other = generic(few, x)
            if few is not problem and silent(problem.parameters, (self.first, other)):
                near, other = self.first, generic(problem, x)
            self.linear = is_linear(near, other)
            check_sensitivity(problem.parameters, (self.first, other))
        self._host = Normal(*(np.asarray(x, float) for x in self.first))

    def at(self, x, weights=None, loss: AbstractLoss | None = None) -> Normal:
        """The sums at x."""
        if self.linear and loss is None:
            return self._host.at(np.asarray(x, float))
        dtype = self.first.x.dtype
        weights = None if weights is None else jnp.asarray(weights, dtype)
        found = normal(self.problem, jnp.asarray(x, dtype), weights, loss)
        return Normal(*(np.asarray(y, float) for y in found))

    def groups(self, sums: Normal, weights) -> Grouping:
        """What is observable at these sums; precision is that of the data."""
        hessian = sums.weighted(weights)[0]
        return grouping(self.problem.parameters.names, hessian.astype(self.first.x.dtype))


def silent(parameters: Parameters, places: Sequence[Normal]) -> list[str]:
    """Selected numbers that move the residual at none of some places: links, frames and axes as a whole."""
    scaled = np.zeros(len(parameters.names))
    for sums in places:
        diagonal = np.einsum("cii->i", np.nan_to_num(np.asarray(sums.hessian, float)))
        size = np.maximum(np.abs(np.asarray(sums.x, float)), parameters.scale)
        share = np.sqrt(np.maximum(diagonal, 0)) * size
        scaled = np.maximum(scaled, share / max(share.max(initial=0), 1e-300))
    at, found = 0, []
    for slot in parameters.slots:
        many = len(slot.names)
        if not scaled[at : at + many].max(initial=0) > 1e-12:
            found.append(slot.names[0] if many == 1 else f"{slot.names[0]} to {slot.names[-1]}")
        at += many
    return found


def check_sensitivity(parameters: Parameters, places: Sequence[Normal]):
    """Every selected number must move the residual at one of some places.

    Of a link's ten numbers some never show; those are directions, which are named in the result.
    """
    names = silent(parameters, places)
    if names:
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        raise ModelError(
            f"{', '.join(names[:5])}{more}: no influence on what was measured, selected by "
            f"{', '.join(repr(path) for path, _ in parameters.paths[:8])}; leave it out, or give logs in which it acts"
        )


class AbstractMethod(eqx.Module):
    """How parameters are found: which residual, over what samples, and a solver."""

    @abc.abstractmethod
    def problem(self, parameters: Parameters, logs: Sequence[Log]) -> Problem:
        """The residual over these logs."""

    @abc.abstractmethod
    def solve(self, problem: Problem, prior: GeometricPrior, weights: Any, tell: Callable[[str], None]) -> Solution:
        """The parameters; weights are inverse deviations of the channels, or None to estimate them."""


def channel_weights(sums: Normal, parameters: int, least: np.ndarray) -> np.ndarray:
    """Inverse root mean squares of the channels, none below `least`: rounding is no measure of a channel."""
    count = np.maximum(sums.count - parameters / len(sums.count), 1)
    return 1 / np.maximum(np.sqrt(np.maximum(sums.square, 0) / count), least)


def _least_deviations(data: Data) -> np.ndarray:
    """What sums in the precision at hand can tell from zero, by the size of residuals and of what was measured."""
    first = np.sqrt(np.asarray(data.first.square, float) / np.maximum(np.asarray(data.first.count, float), 1))
    size = np.maximum(first, np.nan_to_num(data.problem.measured_rms()))
    size = np.where(size > 0, size, max(size.max(initial=0), 1e-30))
    return np.sqrt(float(np.finfo(data.first.x.dtype).eps)) * size


def _median_deviations(data: Data, x) -> np.ndarray:
    """The deviation of the normal distribution with the same middle magnitude, of each channel."""
    left = residuals(data.problem, jnp.asarray(x, data.first.x.dtype))
    return 1.4826 * np.median(np.abs(left), axis=1)


def reweighted(
    data: Data,
    step: Callable[..., tuple[np.ndarray, FitStatus, int, list[float]]],
    x: np.ndarray,
    weights: Any,
    passes: int,
    loss: AbstractLoss | None,
) -> Solution:
    """Solves again and again with the channels' deviations of the solution before, and the loss's weights there.

    Given weights are kept. A loss needs deviations, so that the first pass is without it; beside a loss, deviations
    are those of the median, `1.4826 median |r|`, which samples far off do not move (Huber 1981, section 5.1).
    """
    given = None if weights is None else np.asarray(weights, float)
    channels = len(data.problem.channels)
    count = len(data.problem.parameters.names)
    now = np.ones(channels) if given is None else given
    total, history, status = 0, [], FitStatus.CONVERGED
    runs = 1 + (passes if given is None or loss is not None else 0)
    for run in range(runs):
        used = loss if run else None
        sums = data.at(x, now, used)
        x, status, steps, history = step(sums, x, now, used)
        total += steps
        data.tell(f"pass {run + 1} of {runs}: cost {history[-1]:.6g} after {total} steps")
        if run < runs - 1 and given is None:
            least = _least_deviations(data)
            if loss is None:
                now = channel_weights(data.at(x, now), count, least)
            else:
                now = 1 / np.maximum(_median_deviations(data, x), least)
    sums = data.at(x, now, loss if runs > 1 else None)
    return Solution(x, status, total, tuple(history), now, sums, data.groups(sums, now))


def effort_rows(parameters: Parameters, logs: Sequence[Log], chunk: int) -> Problem:
    """The residual of measured efforts."""
    return effort_problem(parameters, logs, chunk)
