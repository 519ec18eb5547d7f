"""Cross-validation: the choice among models, parameters, priors and methods."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array
from jaxdyn.identification.fitting._fit import fit
from jaxdyn.identification.fitting._result import FitResult
from jaxdyn.identification.logs import Log, Split
from jaxdyn.identification.methods import AbstractMethod, FitStatus, GeometricPrior, Weights
from jaxdyn.identification.parameters import ParameterBounds, Selection
from jaxdyn.model import Model
from jaxdyn.simulation import System


@dataclass(frozen=True)
class Candidate:
    """The arguments of `fit` except the logs: one candidate of a cross-validation."""

    system: Model | System
    parameters: Selection | str | Callable[[System], Array] | Iterable[Selection | str | Callable[[System], Array]]
    method: AbstractMethod | None = None
    prior: GeometricPrior | None = None
    weights: Weights = None
    bounds: ParameterBounds | None = None

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
        """Copies of this candidate by name, one for each strength of the prior, and spread if given."""
        if spreads is None:
            return {f"strength {a:g}": replace(self, prior=GeometricPrior(float(a))) for a in strengths}
        pairs = zip(strengths, spreads, strict=True)
        return {f"strength {a:g}, spread {b:g}": replace(self, prior=GeometricPrior(a, b)) for a, b in pairs}


@dataclass(frozen=True)
class CrossValidation:
    """The errors of candidates on held-out data, as `cross_validate` returns them."""

    candidates: Mapping[str, Candidate]
    #: relative error over all folds of each candidate, infinite if a fit failed
    scores: tuple[float, ...]
    #: relative error of each fold, `(candidates, folds)`
    folds: np.ndarray

    @property
    def name(self) -> str:
        """The name of the best candidate."""
        return list(self.candidates)[int(np.argmin(self.scores))]

    @property
    def best(self) -> Candidate:
        """The candidate with the least error; fit it to all logs."""
        return self.candidates[self.name]

    def __str__(self) -> str:
        width = max(len(name) for name in self.candidates)
        lines = []
        for name, score, folds in zip(self.candidates, self.scores, self.folds, strict=True):
            mark = "*" if name == self.name else " "
            lines.append(f"{mark} {name:<{width}}  {score:.5f}  ({' '.join(f'{x:.4f}' for x in folds)})")
        return "\n".join(lines)


def cross_validate(
    candidates: Mapping[str, Candidate],
    folds: Sequence[Split],
    *,
    error: Callable[[FitResult, Sequence[Log]], tuple[float, float]] | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> CrossValidation:
    """Fits every candidate to all folds but one, in turn, and scores it by the held-out fold (Stone 1974).

    The score of a candidate is `sqrt(sum e / sum m)` over folds. Keep the logs that judge the final model out of it.

    Arguments:

    * `candidates`: by name.
    * `folds`: from `fold_runs` or `fold_blocks` of the logs to fit.
    * `error`: a function `(result, held_out) -> (e, m)`. By default these are the sums of squares of the method's
      residual and of the measurements; candidates with different residuals need a common `error`.
    * `tell`: called with a line about each fit.

    Returns a `CrossValidation`, whose `best` candidate is to be fitted to all logs. A fit that does not converge has an
    infinite score. Raises `ModelError` if every candidate has one.

    ```python
    import numpy as np
    import jaxdyn as jd
    from jaxdyn.identification import Candidate, Linear, Log, cross_validate, fold_blocks

    t = np.linspace(0, 4, 100)[:, None]
    q, v, a = np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)
    log = Log(t[:, 0], q, v, a, effort=a + 9.81 * np.sin(q) + 0.3 * v)  # m = 1 kg, l = 1 m, damping 0.3
    robot, method = jd.robots.pendulum(), Linear(reweight=0)
    candidates = {f: Candidate(robot, [f"joints[*].{f}"], method) for f in ("damping", "friction")}
    assert cross_validate(candidates, fold_blocks([log], 2, guard=0.0)).name == "damping"
    ```
    """
    if not candidates or not folds:
        raise ModelError(
            f"{len(candidates)} candidates and {len(folds)} folds were given; expected one or more of each"
        )
    score = _residual_error if error is None else error
    squares = np.full((len(candidates), len(folds), 2), np.inf)
    for row, (name, candidate) in enumerate(candidates.items()):
        for k, fold in enumerate(folds):
            result = candidate.fit(fold.fit, fold.held_out if error is None else ())
            squares[row, k] = score(result, fold.held_out) if _is_usable(result) else (np.inf, 1.0)
            tell(f"{name}, fold {k + 1} of {len(folds)}: {np.sqrt(squares[row, k, 0] / squares[row, k, 1]):.5f}")
    total = squares.sum(axis=1)
    scores = np.sqrt(total[:, 0] / total[:, 1])
    if not np.isfinite(scores).any():
        raise ModelError(
            "no candidate could be fitted to all folds; select fewer parameters, give stronger priors or longer folds"
        )
    return CrossValidation(
        dict(candidates), tuple(float(x) for x in scores), np.sqrt(squares[..., 0] / squares[..., 1])
    )


def _is_usable(result: FitResult) -> bool:
    """Whether a fit converged to a finite cost."""
    return result.status == FitStatus.CONVERGED and bool(np.isfinite(result.cost))


def _residual_error(result: FitResult, held_out: Sequence[Log]) -> tuple[float, float]:
    """Sums of squares of the method's residual and of the measurements."""
    rows = sum(log.num_samples for log in held_out)
    return (
        rows * sum(e.held_out**2 for e in result.errors),
        rows * sum(e.measured_held_out**2 for e in result.errors),
    )
