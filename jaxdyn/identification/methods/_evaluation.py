"""Evaluation of normal equations: once for linear residuals, otherwise at each point; checks of sensitivity."""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array
from jaxdyn.identification.parameters import Grouping, Parameters, grouping
from jaxdyn.identification.residuals import (
    AbstractLoss,
    LeastSquaresProblem,
    NormalEquations,
    is_linear,
    sum_away_from,
    sum_normal_equations,
)

#: chunks of samples that decide whether a residual is linear
_LINEARITY_CHUNKS = 4


class Evaluator:
    """Evaluates the normal equations of a problem: by extrapolation where the residual is linear.

    A selected parameter without influence on the residual is a `ModelError` before anything is solved. Whether the
    residual is linear is decided by samples drawn at random, or by all samples if a parameter has no influence on
    these.
    """

    def __init__(self, problem: LeastSquaresProblem, x0: Array | np.ndarray, tell: Callable[[str], None]):
        self.problem, self.tell = problem, tell
        x = jnp.asarray(x0, problem.parameters.read().dtype)
        self.first = sum_normal_equations(problem, x)
        self.is_finite = all(bool(np.isfinite(np.asarray(x)).all()) for x in self.first)
        self.is_linear = False
        if self.is_finite:
            subset = problem.draw_chunks(_LINEARITY_CHUNKS)
            near = self.first if subset is problem else sum_normal_equations(subset, x)
            far = sum_away_from(subset, x)
            if subset is not problem and insensitive_parameters(problem.parameters, (self.first, far)):
                near, far = self.first, sum_away_from(problem, x)
            self.is_linear = is_linear(near, far)
            check_sensitivity(problem.parameters, (self.first, far))
        self._host = NormalEquations(*(np.asarray(x, float) for x in self.first))

    def at(
        self, x: np.ndarray, weights: Array | np.ndarray | None = None, loss: AbstractLoss | None = None
    ) -> NormalEquations:
        """The normal equations at x, in float64."""
        if self.is_linear and loss is None:
            return self._host.at(np.asarray(x, float))
        dtype = self.first.x.dtype
        weights = None if weights is None else jnp.asarray(weights, dtype)
        sums = sum_normal_equations(self.problem, jnp.asarray(x, dtype), weights, loss)
        return NormalEquations(*(np.asarray(y, float) for y in sums))

    def groups(self, sums: NormalEquations, weights: np.ndarray) -> Grouping:
        """The base parameters at these sums, to the precision of the data."""
        hessian = np.asarray(sums.weighted(weights)[0])
        return grouping(self.problem.parameters.names, hessian.astype(self.first.x.dtype))


def insensitive_parameters(parameters: Parameters, points: Sequence[NormalEquations]) -> list[str]:
    """Selected parameters without influence on the residual at any of the points; links, frames and axes as a whole."""
    scaled = np.zeros(len(parameters.names))
    for sums in points:
        diagonal = np.einsum("cii->i", np.nan_to_num(np.asarray(sums.hessian, float)))
        size = np.maximum(np.abs(np.asarray(sums.x, float)), parameters.scale)
        share = np.sqrt(np.maximum(diagonal, 0)) * size
        scaled = np.maximum(scaled, share / max(share.max(initial=0), 1e-300))
    at, names = 0, []
    for slot in parameters.slots:
        count = len(slot.names)
        if not scaled[at : at + count].max(initial=0) > 1e-12:
            names.append(slot.names[0] if count == 1 else f"{slot.names[0]} to {slot.names[-1]}")
        at += count
    return names


def check_sensitivity(parameters: Parameters, points: Sequence[NormalEquations]):
    """Raises `ModelError` for selected parameters without influence on the residual at any of some points.

    Some of a link's ten parameters are never identifiable; these are unobservable directions, which the result names.
    """
    names = insensitive_parameters(parameters, points)
    if names:
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        raise ModelError(
            f"{', '.join(names[:5])}{more}: no influence on the residual, selected by "
            f"{', '.join(repr(path) for path, _ in parameters.paths[:8])}; leave it out of the selection, or give logs "
            "with motion that excites it"
        )
