"""The report on a fit: as a page, and as JSON."""

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from jaxdyn.identification._log import Log
from jaxdyn.identification._prepare_report import PreparationReport
from jaxdyn.identification._report_page import page
from jaxdyn.identification._report_residuals import JointResidual, joint_residuals
from jaxdyn.identification._report_series import Series, comparison
from jaxdyn.identification._report_verdict import Verdict, judge
from jaxdyn.identification._result import FitResult
from jaxdyn.identification._split import Split
from jaxdyn.io._paths import write_bytes


@dataclass(frozen=True)
class FitReport:
    """What is to be known about an identified model before it is used; made by `report_on`."""

    title: str
    result: FitResult
    verdict: Verdict
    #: by joint, over the logs of the fit and over those held out
    fit: tuple[JointResidual, ...]
    held_out: tuple[JointResidual, ...]
    preparation: PreparationReport | None
    split: Split = field(repr=False)
    #: what is compared: `efforts`, or `motion over windows of 0.5 s`
    compared: str
    #: measured and predicted along each log, those of the fit first
    series: tuple[Series, ...] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists, numbers and texts; not-a-number and infinity are None."""
        result = self.result
        return _plain(
            {
                "format": "jaxdyn identification report",
                "version": 1,
                "title": self.title,
                "verdict": {
                    "sentence": self.verdict.sentence,
                    "grade": self.verdict.grade,
                    "rules": self.verdict.rules,
                },
                "logs": {
                    "fit": {log.name: log.num_samples for log in self.split.fit},
                    "held_out": {log.name: log.num_samples for log in self.split.held_out},
                },
                "compared": self.compared,
                "errors": {"fit": self.fit, "held_out": self.held_out},
                "status": result.status.name,
                "steps": result.steps,
                "cost": {"before": result.initial_cost, "after": result.cost},
                "condition": result.condition,
                "parameters": result.parameters,
                "base_parameters": result.base,
                "unobservable": result.unobservable,
                "dependence": result.dependence,
                "physical": result.physical,
                "preparation": self.preparation.to_dict() if self.preparation else None,
            }
        )

    def to_json(self, path: str | os.PathLike[str]):
        """Writes `to_dict` as JSON, whole or not at all."""
        write_bytes(path, json.dumps(self.to_dict(), indent=1, allow_nan=False, ensure_ascii=False).encode())

    def html(self) -> str:
        """One page with everything in it: tables and plots, without scripts, fonts or pictures from elsewhere."""
        return page(self)

    def to_html(self, path: str | os.PathLike[str]):
        """Writes `html`, whole or not at all."""
        write_bytes(path, self.html().encode())


def report_on(
    result: FitResult,
    split: Split | Sequence[Log],
    preparation: PreparationReport | None = None,
    *,
    predict: Callable[[Log], Any] | None = None,
    title: str = "",
) -> FitReport:
    """The report on a fit to the logs of `split`.

    What is compared are efforts, or, after a fit by `OutputError`, motions over its windows, with errors relative to
    the motion since the start of the window. `predict(log)` gives the efforts `(n, nv)` of the fitted robot along
    a log, by default `predicted_effort` of its system with all parts. `preparation` is what `prepare` returned; its
    cut-off makes the test of whiteness compare residuals that the filter leaves independent.
    """
    split = split if isinstance(split, Split) else Split(list(split), [])
    filters = [(run.cutoff, run.order) for run in preparation.runs if run.cutoff is not None] if preparation else []
    cutoff, order = min(filters) if filters else (None, 4)
    shown = comparison(result, predict)
    first, second = ([shown.series(log) for log in logs] for logs in (split.fit, split.held_out))
    steps = lambda logs: [float(log.dt) for log in logs] if shown.tested else None
    inside = joint_residuals(first, shown.channels, steps(split.fit), (cutoff, order))
    outside = joint_residuals(second, shown.channels, steps(split.held_out), (cutoff, order))
    return FitReport(
        title=title or f"Identification of {result.model.name or 'a robot'}",
        result=result,
        verdict=judge(result, inside, outside),
        fit=inside,
        held_out=outside,
        preparation=preparation,
        split=split,
        compared=shown.what,
        series=(*first, *second),
    )


def _plain(x: Any) -> Any:
    if is_dataclass(x):
        return {f.name: _plain(getattr(x, f.name)) for f in fields(x)}
    if isinstance(x, dict):
        return {str(k): _plain(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [_plain(v) for v in x]
    if isinstance(x, np.ndarray):
        return _plain(x.tolist())
    if isinstance(x, bool | str) or x is None or isinstance(x, int):
        return x
    number = float(x)  # pyright: ignore[reportArgumentType]
    return number if math.isfinite(number) else None
