"""Choices of a fit made by what its own logs say about motion that was left out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.identification._fit import fit
from jaxdyn.identification._log import Log
from jaxdyn.identification._methods import AbstractMethod
from jaxdyn.identification._physical import GeometricPrior
from jaxdyn.identification._result import FitResult, FitStatus
from jaxdyn.identification._split import Split


@dataclass(frozen=True)
class Candidate:
    """One way to fit: the arguments of `fit` but for the logs."""

    system: Any
    parameters: Any
    method: AbstractMethod | None = None
    prior: GeometricPrior | None = None
    weights: Any = None
    bounds: Mapping[str, tuple[float | int, float | int]] | None = None

    def fit(self, logs: Sequence[Log], held_out: Sequence[Log] = (), **options: Any) -> FitResult:
        """`jaxdyn.identification.fit` with these arguments."""
        return fit(
            self.system,
            logs,
            self.parameters,
            self.method,
            held_out=held_out,
            prior=self.prior,
            weights=self.weights,
            bounds=self.bounds,
            **options,
        )

    def with_priors(self, strengths: Sequence[float], spreads: Sequence[float] | None = None) -> "dict[str, Candidate]":
        """This candidate with each of several strengths of the prior, and a spread with each if given."""
        if spreads is None:
            return {f"strength {a:g}": replace(self, prior=GeometricPrior(float(a))) for a in strengths}
        pairs = zip(strengths, spreads, strict=True)
        return {f"strength {a:g}, spread {b:g}": replace(self, prior=GeometricPrior(a, b)) for a, b in pairs}


@dataclass(frozen=True)
class CrossValidation:
    """How well each candidate predicts what it was not fitted to."""

    candidates: Mapping[str, Candidate]
    #: relative error over all folds, one for each candidate, infinite where a fit failed
    scores: tuple[float, ...]
    #: the same of each fold, `(candidates, folds)`
    folds: np.ndarray

    @property
    def name(self) -> str:
        """What the best candidate is called."""
        return list(self.candidates)[int(np.argmin(self.scores))]

    @property
    def best(self) -> Candidate:
        """The candidate with the least error, to be fitted to all logs."""
        return self.candidates[self.name]

    def __str__(self) -> str:
        width = max(len(name) for name in self.candidates)
        lines = []
        for name, score, folds in zip(self.candidates, self.scores, self.folds, strict=True):
            mark = "*" if name == self.name else " "
            lines.append(f"{mark} {name:<{width}}  {score:.5f}  ({' '.join(f'{x:.4f}' for x in folds)})")
        return "\n".join(lines)


def cross_validated(
    candidates: Mapping[str, Candidate],
    folds: Sequence[Split],
    *,
    error: Callable[[FitResult, Sequence[Log]], tuple[float, float]] | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> CrossValidation:
    """Fits every candidate without each fold in turn, and judges it by the fold that was left out (Stone 1974).

    `folds` come from `fold_runs` or `fold_blocks` of the logs for fitting; the logs that judge the final model have no
    part in it. The score of a candidate is `sqrt(sum e / sum m)` over folds, of `error(result, held_out) = (e, m)`: by
    default the sums of squares of the method's residual and of what was measured, so that candidates which are judged
    by different residuals need an `error` of their own. A fit that does not converge counts as infinite.
    `tell` is called with a line about each fit.
    """
    if not candidates or not folds:
        raise ModelError(f"{len(candidates)} candidates and {len(folds)} folds; expected one or more of each")
    judge = _own_residual if error is None else error
    squares = np.full((len(candidates), len(folds), 2), np.inf)
    for row, (name, candidate) in enumerate(candidates.items()):
        for k, fold in enumerate(folds):
            result = candidate.fit(fold.fit, fold.held_out if error is None else ())
            squares[row, k] = judge(result, fold.held_out) if _usable(result) else (np.inf, 1.0)
            tell(f"{name}, fold {k + 1} of {len(folds)}: {np.sqrt(squares[row, k, 0] / squares[row, k, 1]):.5f}")
    total = squares.sum(axis=1)
    scores = np.sqrt(total[:, 0] / total[:, 1])
    if not np.isfinite(scores).any():
        raise ModelError(
            "no candidate could be fitted to all folds; give fewer parameters, stronger priors or longer folds"
        )
    return CrossValidation(
        dict(candidates), tuple(float(x) for x in scores), np.sqrt(squares[..., 0] / squares[..., 1])
    )


def _usable(result: FitResult) -> bool:
    """Whether a fit ended at a minimum with finite numbers."""
    return result.status == FitStatus.CONVERGED and bool(np.isfinite(result.cost))


def _own_residual(result: FitResult, held_out: Sequence[Log]) -> tuple[float, float]:
    rows = sum(log.num_samples for log in held_out)
    return (
        rows * sum(e.held_out**2 for e in result.errors),
        rows * sum(e.measured_held_out**2 for e in result.errors),
    )
