"""`report_on`: the report on a fit, as HTML page and as JSON."""

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from jax.typing import ArrayLike

from jaxdyn.identification.fitting import FitResult
from jaxdyn.identification.logs import Log, Split
from jaxdyn.identification.preparation import PreparationReport
from jaxdyn.identification.report._page import render_page
from jaxdyn.identification.report._residuals import JointResidual, joint_residuals
from jaxdyn.identification.report._series import Series, choose_comparison
from jaxdyn.identification.report._verdict import Verdict, judge
from jaxdyn.io.files import write_bytes


@dataclass(frozen=True)
class FitReport:
    """The validation of an identified model; returned by `report_on`."""

    title: str
    result: FitResult
    verdict: Verdict
    #: residuals by joint, over the logs of the fit
    fit: tuple[JointResidual, ...]
    #: residuals by joint, over the held-out logs
    held_out: tuple[JointResidual, ...]
    preparation: PreparationReport | None
    split: Split = field(repr=False)
    #: the compared quantity: `efforts`, or `motion over windows of 0.5 s`
    compared: str
    #: measured and predicted values along each log, first those of the fit
    series: tuple[Series, ...] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The report as dictionaries, lists, numbers and strings; NaN and infinity are None."""
        result = self.result
        return _to_plain(
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
                "channels": result.errors,
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
        """Writes `to_dict` as JSON, atomically."""
        write_bytes(path, json.dumps(self.to_dict(), indent=1, allow_nan=False, ensure_ascii=False).encode())

    def html(self) -> str:
        """The report as a self-contained HTML page with tables and plots, without scripts or external resources."""
        return render_page(self)

    def to_html(self, path: str | os.PathLike[str]):
        """Writes `html`, atomically."""
        write_bytes(path, self.html().encode())


def report_on(
    result: FitResult,
    split: Split | Sequence[Log],
    preparation: PreparationReport | None = None,
    *,
    predict: Callable[[Log], ArrayLike] | None = None,
    title: str = "",
) -> FitReport:
    """Validates a fit: residuals on the logs of the fit and on held-out data, their whiteness, and a verdict.

    The report compares measured and predicted efforts. After a fit by `OutputError` it compares motions over the
    windows of the method, with errors relative to the displacement since the start of each window.

    Arguments:

    * `result`: the result of `fit`.
    * `split`: the logs of the fit and the held-out logs, or the logs of the fit only.
    * `preparation`: the report of `prepare`. With its cut-off frequency, the whiteness test uses residuals that are
      independent despite the filter.
    * `predict`: function of a log that returns the predicted efforts `(n, nv)`, N m or N; default: `predicted_effort`
      of the fitted system.
    * `title`: title of the page.

    Returns a `FitReport`. Raises `ModelError` after a fit of frame poses, unless `predict` is given.

    ```python
    import jax
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.identification import Linear, Log, Split, fit, report_on

    robot = jd.robots.pendulum()
    t = jnp.linspace(0.0, 5.0, 200)
    q, v, a = (x[:, None] for x in (jnp.sin(2 * t), 2 * jnp.cos(2 * t), -4 * jnp.sin(2 * t)))
    effort = jax.vmap(lambda *x: jd.rnea(robot, *x))(q, v, a) + 0.1 * v
    log = Log(t, q, v, a, effort)
    split = Split([log.rows(slice(0, 150))], [log.rows(slice(150, None))])
    result = fit(robot, split.fit, "joints[*].damping", Linear(), held_out=split.held_out)
    report = report_on(result, split)
    page = report.html()
    print(report.verdict.sentence)
    ```
    """
    split = split if isinstance(split, Split) else Split(list(split), [])
    filters = [(run.cutoff, run.order) for run in preparation.runs if run.cutoff is not None] if preparation else []
    cutoff, order = min(filters) if filters else (None, 4)
    comparison = choose_comparison(result, predict)
    first, second = ([comparison.series(log) for log in logs] for logs in (split.fit, split.held_out))
    steps = lambda logs: [float(log.dt) for log in logs] if comparison.is_tested else None
    fitted = joint_residuals(first, comparison.channels, steps(split.fit), (cutoff, order))
    held_out = joint_residuals(second, comparison.channels, steps(split.held_out), (cutoff, order))
    return FitReport(
        title=title or f"Identification of {result.model.name or 'a robot'}",
        result=result,
        verdict=judge(result, fitted, held_out),
        fit=fitted,
        held_out=held_out,
        preparation=preparation,
        split=split,
        compared=comparison.quantity,
        series=(*first, *second),
    )


def _to_plain(x: Any) -> Any:
    if is_dataclass(x):
        return {f.name: _to_plain(getattr(x, f.name)) for f in fields(x)}
    if isinstance(x, dict):
        return {str(k): _to_plain(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [_to_plain(v) for v in x]
    if isinstance(x, np.ndarray):
        return _to_plain(x.tolist())
    if isinstance(x, bool | str) or x is None or isinstance(x, int):
        return x
    number = float(x)  # pyright: ignore[reportArgumentType]
    return number if math.isfinite(number) else None
