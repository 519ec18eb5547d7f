"""The HTML page of a report."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from jaxdyn.identification.fitting import FitResult
from jaxdyn.identification.report._series import Series
from jaxdyn.identification.report._svg import COLOURS, plot_bars, plot_curves
from jaxdyn.identification.report._verdict import Verdict

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; color: #222; background: #fff; max-width: 1120px; margin: 2em auto;
  padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin: 1.8em 0 .5em; border-bottom: 1px solid #ddd; }
table { border-collapse: collapse; margin: .4em 0; } th { text-align: left; font-weight: 600; background: #f4f4f4; }
td, th { padding: .15em .7em; border-bottom: 1px solid #e6e6e6; vertical-align: top; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
svg { font: 10px system-ui, sans-serif; margin: .3em .3em .3em 0; max-width: 100%; height: auto; }
.verdict { font-size: 1.1em; padding: .7em 1em; border-left: 6px solid; background: #f8f8f8; }
.verdict.good { border-color: #3a8f3a; }
.verdict.fair { border-color: #d9a400; } .verdict.bad { border-color: #c03030; }
td.good { color: #2c6e2c; } td.fair { color: #8a6800; } td.bad { color: #b02020; font-weight: 600; }
pre { background: #f8f8f8; padding: .7em 1em; overflow-x: auto; } .scroll { overflow-x: auto; }
"""


def render_page(report: Any) -> str:
    """The report as an HTML page."""
    result, verdict = report.result, report.verdict
    sections = [
        f"<h1>{escape(report.title)}</h1>",
        f'<p class="verdict {verdict.grade}">{escape(verdict.sentence)}</p>',
        _render_section("Rules of the verdict", _rules_table(verdict)),
        _render_section(f"Errors of the {report.compared}", _errors_table(report)),
        _render_section("Measured and predicted", _residual_plots(report)),
        _render_section("Residuals", _whiteness_section(report)),
        _render_section("Parameters", _parameters_table(result)),
        _render_section("Base parameters", _base_table(result)),
        _render_section("Unidentifiable directions", _unobservable_list(result)),
        _render_section("Physical consistency", _consistency_table(result)),
        _render_section("Fit", _fit_table(result)),
        _render_section(
            "Preparation of the logs", f"<pre>{escape(str(report.preparation))}</pre>" if report.preparation else ""
        ),
    ]
    title = escape(report.title)
    head = f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    view = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    return "\n".join([head, view, f"<style>{_STYLE}</style></head><body>", *sections, "</body></html>", ""])


def _render_section(title: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2>\n{body}" if body else ""


def _render_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table with right-aligned numbers; a cell may be a pair (text, CSS class)."""
    lines = []
    for row in rows:
        cells = []
        for cell in row:
            if isinstance(cell, tuple):
                cells.append(f'<td class="{cell[1]}">{escape(str(cell[0]))}</td>')
            elif isinstance(cell, float | int) and not isinstance(cell, bool):
                cells.append(f'<td class="n">{_format_number(cell)}</td>')
            else:
                cells.append(f"<td>{escape(str(cell))}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    head = "".join(f"<th>{escape(h)}</th>" for h in heads)
    return f'<div class="scroll"><table><tr>{head}</tr>\n{chr(10).join(lines)}</table></div>' if lines else ""


def _format_number(x: float) -> str:
    return f"{x:.5g}" if math.isfinite(x) else "–"


def _rules_table(verdict: Verdict) -> str:
    return _render_table(("rule", "grade", "finding"), [(r.name, (r.grade, r.grade), r.finding) for r in verdict.rules])


def _errors_table(report: Any) -> str:
    rows = []
    held_out = {r.joint: r for r in report.held_out}
    for r in report.fit:
        o = held_out.get(r.joint)
        more = (o.rmse, o.relative, o.bias) if o else (math.nan, math.nan, math.nan)
        rows.append((r.joint, r.unit, r.rmse, r.relative, r.bias, *more))
    heads = ("joint", "unit", "rms, fit", "relative", "mean", "rms, held out", "relative", "mean")
    return _render_table(heads, rows) + _dependence_note(report.result)


def _dependence_note(result: FitResult) -> str:
    """A note on the effective number of samples behind the standard deviations."""
    if not result.dependence:
        return ""
    least, most = min(result.dependence), max(result.dependence)
    return (
        f"<p>The residuals of the fit are autocorrelated: in the standard deviations, {least:.3g} to {most:.3g} "
        "samples (by joint) count as one independent sample.</p>"
    )


def _residual_plots(report: Any) -> str:
    count = len(report.split.fit)
    sets = (("fit", report.series[:count]), ("held out", report.series[count:]))
    drawn = []
    for k, r in enumerate(report.fit):
        for label, series in sets:
            if series:
                t, measured, computed = _concatenate_series(series, k)
                lines = (
                    ("measured", t, measured, COLOURS[0]),
                    ("predicted", t, computed, COLOURS[1]),
                    ("residual", t, measured - computed, COLOURS[2]),
                )
                drawn.append(plot_curves(f"{r.joint}, {label}", r.unit, lines))
    return "\n".join(drawn)


def _concatenate_series(series: Sequence[Series], k: int):
    """One curve over all logs, with gaps between them; logs that overlap in time are shown in sequence."""
    t, measured, computed, end = [], [], [], -math.inf
    for x in series:
        shift = max(0.0, end - float(x.t.min()))
        end = float(x.t.max()) + shift
        at = [*x.breaks, len(x.t)]
        times = x.t + shift
        t.append(np.insert(times, at, [times[min(row, len(times) - 1)] for row in at]))
        measured.append(np.insert(x.measured[:, k], at, math.nan))
        computed.append(np.insert(x.predicted[:, k], at, math.nan))
    return np.concatenate(t), np.concatenate(measured), np.concatenate(computed)


def _whiteness_section(report: Any) -> str:
    residuals = [r for r in (report.held_out or report.fit) if r.whiteness is not None]
    rows = [
        (
            r.joint,
            ("white" if r.whiteness.white else "not white", "good" if r.whiteness.white else "fair"),
            r.whiteness.statistic,
            r.whiteness.probability,
            1e3 * r.whiteness.step,
        )
        for r in residuals
    ]
    table = _render_table(("joint", "Ljung-Box", "Q", "probability", "step, ms"), rows)
    where = "held out" if report.held_out else "fit"
    drawn = [
        plot_bars(f"{r.joint}, autocorrelation, {where}", r.whiteness.autocorrelation, r.whiteness.bound)
        for r in residuals
    ]
    return "\n".join([table, *drawn]) if residuals else ""


def _parameters_table(result: FitResult) -> str:
    rows = [
        (p.name, p.unit, p.prior, p.value, p.deviation, p.relative, "yes" if p.observable else "no")
        for p in result.parameters
    ]
    return _render_table(("parameter", "unit", "before", "after", "standard deviation", "%", "identifiable"), rows)


def _base_table(result: FitResult) -> str:
    rows = [(b.name, b.prior, b.value, b.deviation, b.relative) for b in result.base]
    return _render_table(("base parameter", "before", "after", "standard deviation", "%"), rows)


def _unobservable_list(result: FitResult) -> str:
    if not result.unobservable:
        return "<p>All selected parameters are identifiable from these logs.</p>"
    items = "".join(f"<li>{escape(text)}</li>" for text in result.unobservable)
    text = (
        "These directions of the parameters have no influence on the measurements in these logs. They keep their "
        "values before the fit, except for changes that physical consistency requires:"
    )
    return f"<p>{text}</p><ul>{items}</ul>"


def _consistency_table(result: FitResult) -> str:
    rows = [
        (c.link, ("yes", "good") if c.physical else ("no", "bad"), float(c.margin), c.reason) for c in result.physical
    ]
    return _render_table(("link", "physically consistent", "margin", "reason"), rows)


def _fit_table(result: FitResult) -> str:
    rows = [
        ("method", type(result.method).__name__ if result.method is not None else "–"),
        ("status", f"{result.status.name} after {result.steps} steps"),
        ("cost before", float(result.initial_cost)),
        ("cost after", float(result.cost)),
        ("condition number", float(result.condition)),
    ]
    return _render_table(("", ""), rows)
