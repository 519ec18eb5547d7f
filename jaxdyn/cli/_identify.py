"""`jaxdyn fit`: from a robot file and logs to an identified model with a report."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp

from jaxdyn import identification
from jaxdyn._errors import FileAccessError, JaxdynError, ModelError
from jaxdyn.cli import _simulate
from jaxdyn.cli._identify_config import Config, read_config
from jaxdyn.cli._identify_method import method_of, prior_of, system_of
from jaxdyn.cli._report import Report
from jaxdyn.identification import (
    AbstractMethod,
    FitReport,
    FitResult,
    FitStatus,
    GeometricPrior,
    Split,
    prepare,
    report_on,
    write_checked_urdf,
)
from jaxdyn.identification._report_verdict import unphysical_links
from jaxdyn.io import save
from jaxdyn.model import Model, lock_joints, remove_link


def run(arguments: argparse.Namespace) -> FitResult:
    """Reads, prepares, fits, writes and reports; what is wrong with the input raises before anything is fitted."""
    config = read_config(arguments.config)
    method, prior = method_of(config), prior_of(config)
    model = _edited(_simulate._robot(arguments), config)
    runs = [_files(log) for log in arguments.logs]
    _check_folder(arguments.out)
    shown = Report(2 * len(runs) + 4)
    try:
        logs, preparation = prepare(runs, model, config.columns, config.preparation, progress=shown.advance)
        split = config.hold_out(logs)
        shown.advance("fitting")
        result = _fitted(model, split, config, method, prior, lambda line: _told(shown, line))
        shown.advance("writing")
        written = _saved(result, arguments.out)
        shown.advance("predicting")
        name = model.name or Path(arguments.robot).stem
        report = report_on(result, split, preparation, title=f"Identification of {name}")
        written += _reported(report, arguments.out)
    finally:
        shown.close()
    _say(report, preparation, written)
    return result


def _told(shown: Report, line: str):
    """How far the fit is: beside the bar on a terminal, otherwise on a line."""
    if shown.bar.disable:
        print(f"fit: {line}", file=sys.stderr, flush=True)
    else:
        shown.bar.set_description(f"fitting, {line}")


def _edited(model: Model, config: Config) -> Model:
    for name in config.remove:
        if name in model.link_names:
            model = remove_link(model, name)
        else:
            raise ModelError(f"robot.remove names {name!r}, which is no link of this robot")
    return lock_joints(model, config.lock) if config.lock else model


def _files(log: str) -> Any:
    """One file, or those of a run that + joins."""
    if "+" not in log or Path(log).exists():
        return log
    return tuple(log.split("+"))


def _check_folder(out: Path):
    if out.exists() and not out.is_dir():
        raise FileAccessError(f"{out}: is not a folder; name another one by --out")
    if not out.parent.is_dir():
        raise FileAccessError(f"{out}: there is no folder {out.parent}; make it first")


def _fitted(
    model: Model,
    split: Split,
    config: Config,
    method: AbstractMethod,
    prior: GeometricPrior | None,
    tell: Callable[[str], None],
) -> FitResult:
    system = system_of(model, config)
    return identification.fit(
        system,
        split.fit,
        identification.select(*config.parameters),
        method,
        held_out=split.held_out,
        prior=prior,
        bounds=config.bounds,
        weights=None if config.weights is None else jnp.asarray(config.weights, model.dtype),
        progress=tell,
    )


def _saved(result: FitResult, out: Path) -> list[str]:
    """The robot, before anything is said of it; every file whole or not at all."""
    out.mkdir(exist_ok=True)
    save(out / "identified.jaxdyn", result.system)
    written = [str(out / "identified.jaxdyn")]
    wrong = unphysical_links(result)
    if wrong:
        return [*written, f"no URDF, since no body has the inertia of {', '.join(wrong[:4])}; take the method physical"]
    try:
        check = write_checked_urdf(result.system, out / "identified.urdf")
    except ModelError as error:
        return [*written, f"no URDF: {error}"]
    return [*written, f"{out / 'identified.urdf'}, {check}"]


def _reported(report: FitReport, out: Path) -> list[str]:
    report.to_json(out / "report.json")
    report.to_html(out / "report.html")
    return [str(out / "report.json"), str(out / "report.html")]


def _say(report: FitReport, preparation: Any, written: Sequence[str]):
    result = report.result
    print(preparation)
    print()
    outside = {r.joint: r for r in report.held_out}
    for r in report.fit:
        held = f", held out {outside[r.joint].rmse:.4g}" if r.joint in outside else ""
        print(f"{r.joint}: error {r.rmse:.4g} {r.unit} ({100 * r.relative:.3g} %){held}")
    print(result)
    for line in written:
        print(f"written: {line}")
    print(f"\n{report.verdict.sentence}")


def command(arguments: argparse.Namespace) -> int:
    """The exit code: 0, 1 with one line on the standard error, or 130 when interrupted."""
    try:
        result = run(arguments)
    except JaxdynError as error:
        print(f"jaxdyn fit: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("jaxdyn fit: interrupted; nothing half-written is left", file=sys.stderr)
        return 130
    if result.status != FitStatus.CONVERGED:
        print(f"jaxdyn fit: the fit ended with {result.status.name}; the report says more", file=sys.stderr)
        return 1
    return 0
