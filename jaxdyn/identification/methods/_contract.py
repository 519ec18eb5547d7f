"""The contract of fit methods."""

import abc
from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import numpy as np

from jaxdyn._types import Array
from jaxdyn.identification.logs import Log
from jaxdyn.identification.methods._prior import GeometricPrior
from jaxdyn.identification.methods._status import FitStatus
from jaxdyn.identification.parameters import Grouping, Parameters
from jaxdyn.identification.residuals import LeastSquaresProblem, NormalEquations

#: inverse standard deviations of the channels, or None to estimate them
Weights = Array | np.ndarray | Sequence[float | int] | None

#: default number of samples whose derivatives are in memory at once
CHUNK = 2048


class Estimate(NamedTuple):
    """The parameters that a method found, with what `fit` needs to judge them."""

    x: np.ndarray
    status: FitStatus
    steps: int
    #: the cost at the start and after each step, with the last weights
    history: tuple[float, ...]
    #: inverse standard deviations of the channels
    weights: np.ndarray
    #: the normal equations at x, with the weights of the robust loss
    sums: NormalEquations
    groups: Grouping


class AbstractMethod(eqx.Module):
    """A fit method: a residual over logs, and the algorithm that minimises it."""

    @abc.abstractmethod
    def problem(self, parameters: Parameters, logs: Sequence[Log]) -> LeastSquaresProblem:
        """The least-squares problem of these logs."""

    @abc.abstractmethod
    def solve(
        self,
        problem: LeastSquaresProblem,
        prior: GeometricPrior,
        weights: Weights,
        tell: Callable[[str], None],
    ) -> Estimate:
        """The estimate of the parameters.

        `weights` are inverse standard deviations of the channels, or None to estimate them. `tell` is called with a
        line of text about the progress.
        """
