"""Fits the parameters of a robot for `jaxdyn fit` and writes the identified model with a report."""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import jax.numpy as jnp

from jaxdyn import identification
from jaxdyn._errors import ConvergenceError, FileAccessError, ModelError
from jaxdyn.cli.fit._config import Config, read_config
from jaxdyn.cli.fit._method import build_method, build_prior, build_system
from jaxdyn.cli.robots import read_robot
from jaxdyn.cli.terminal import Report
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
from jaxdyn.identification.report import unphysical_links
from jaxdyn.io import save
from jaxdyn.model import Model, lock_joints, remove_link
from jaxdyn.simulation import System


def fit_files(arguments: argparse.Namespace):
    """Reads the robot and the logs, prepares, fits, writes and reports.

    Invalid input raises before anything is fitted. A fit that did not converge raises `ConvergenceError` after all
    results have been written.
    """
    config = read_config(arguments.config)
    method, prior = build_method(config), build_prior(config)
    model = _remove_and_lock(read_robot(arguments), config)
    system = build_system(model, config)
    _check_parameters(system, config)
    runs = [_split_run(log) for log in arguments.logs]
    _check_folder(arguments.out)
    terminal = Report(2 * len(runs) + 4)
    try:
        logs, preparation = prepare(runs, system, config.columns, config.preparation, progress=terminal.advance)
        split = config.hold_out(logs)
        terminal.advance("fitting")
        result = _fit(system, split, config, method, prior, lambda line: _show_progress(terminal, line))
        terminal.advance("writing")
        written = _write_model(result, arguments.out)
        terminal.advance("predicting")
        name = model.name or Path(arguments.robot).stem
        report = report_on(result, split, preparation, title=f"Identification of {name}")
        written += _write_report(report, arguments.out)
    finally:
        terminal.close()
    _print_summary(report, preparation, written)
    if result.status != FitStatus.CONVERGED:
        raise ConvergenceError(f"the fit ended with {result.status.name}; see the report")


def _show_progress(terminal: Report, line: str):
    """Shows the progress of the fit: beside the bar on a terminal, otherwise on a line of its own."""
    if terminal.bar.disable:
        print(f"fit: {line}", file=sys.stderr, flush=True)
    else:
        terminal.bar.set_description(f"fitting, {line}")


def _remove_and_lock(model: Model, config: Config) -> Model:
    for name in config.remove:
        if name in model.link_names:
            model = remove_link(model, name)
        else:
            raise ModelError(f"robot.remove names {name!r}, which is not a link of this robot")
    model = lock_joints(model, config.lock) if config.lock else model
    if not model.nv:
        raise ModelError("robot.remove and robot.lock leave no joint that moves; remove or lock less")
    return model


def _check_parameters(system: System, config: Config):
    """Raises `ModelError` if the parameters, bounds or weights of a configuration do not fit the robot."""
    identification.collect(system, identification.select(*config.parameters), config.bounds)
    nv = system.model.nv
    # with motors, the columns of the logs determine the number of weights, which `fit` checks
    if config.weights is not None and len(config.weights) != nv and not system.num_inputs:
        raise ModelError(f"fit.weights has {len(config.weights)} numbers, expected {nv}, one for each joint velocity")


def _split_run(log: str) -> str | tuple[str, ...]:
    """The file of a run, or its files if the argument joins several by +."""
    if "+" not in log or Path(log).exists():
        return log
    return tuple(log.split("+"))


def _check_folder(out: Path):
    if out.exists() and not out.is_dir():
        raise FileAccessError(f"{out}: is not a folder; give another one by --out")
    if not out.parent.is_dir():
        raise FileAccessError(f"{out}: there is no folder {out.parent}; create it first")


def _fit(
    system: System,
    split: Split,
    config: Config,
    method: AbstractMethod,
    prior: GeometricPrior | None,
    show_progress: Callable[[str], None],
) -> FitResult:
    return identification.fit(
        system,
        split.fit,
        identification.select(*config.parameters),
        method,
        held_out=split.held_out,
        prior=prior,
        bounds=config.bounds,
        weights=None if config.weights is None else jnp.asarray(config.weights, system.model.dtype),
        progress=show_progress,
    )


def _write_model(result: FitResult, out: Path) -> list[str]:
    """Writes the identified system and its URDF, each completely or not at all; returns lines for the report."""
    out.mkdir(exist_ok=True)
    save(out / "identified.jaxdyn", result.system)
    written = [str(out / "identified.jaxdyn")]
    links = unphysical_links(result)
    if links:
        return [*written, f"no URDF, as the inertia of {', '.join(links[:4])} is not physical; use the method physical"]
    try:
        check = write_checked_urdf(result.system, out / "identified.urdf")
    except ModelError as error:
        return [*written, f"no URDF: {error}"]
    return [*written, f"{out / 'identified.urdf'}, {check}"]


def _write_report(report: FitReport, out: Path) -> list[str]:
    report.to_json(out / "report.json")
    report.to_html(out / "report.html")
    return [str(out / "report.json"), str(out / "report.html")]


def _print_summary(report: FitReport, preparation: object, written: Sequence[str]):
    result = report.result
    print(preparation)
    print()
    held_out = {r.joint: r for r in report.held_out}
    for r in report.fit:
        held = f", held out {held_out[r.joint].rmse:.4g}" if r.joint in held_out else ""
        print(f"{r.joint}: error {r.rmse:.4g} {r.unit} ({100 * r.relative:.3g} %){held}")
    for e in result.errors[result.model.nv :]:
        share = f" ({100 * e.fit / e.measured:.3g} %)" if e.measured > 0 else ""
        held = f", held out {e.held_out:.4g}" if math.isfinite(e.held_out) else ""
        print(f"{e.joint}: error {e.fit:.4g} {e.unit}{share}{held}")
    print(result)
    for line in written:
        print(f"written: {line}")
    print(f"\n{report.verdict.sentence}")
