"""`jaxdyn fit`: from a robot file and logs to an identified model with a report."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn import actuators, identification
from jaxdyn._errors import FileAccessError, JaxdynError, ModelError
from jaxdyn.cli import _simulate
from jaxdyn.cli._identify_arguments import METHODS
from jaxdyn.cli._identify_config import Config, read_config
from jaxdyn.cli._report import Report
from jaxdyn.dynamics import bias_forces, mass_matrix
from jaxdyn.identification import FitReport, FitResult, FitStatus, Split, prepare, report_on
from jaxdyn.identification._report_verdict import unphysical_links
from jaxdyn.io import parse_urdf, save, write_urdf
from jaxdyn.io._paths import write_bytes
from jaxdyn.kinematics import random_configuration
from jaxdyn.model import Model, lock_joints, remove_link
from jaxdyn.simulation import System

#: what URDF has no place for
_NOT_IN_URDF = (
    "armature",
    "stiffness",
    "friction_velocity",
    "gravity",
    "closures",
    "planar_and_free",
    "shapes",
    "actuators",
)
_AGREEMENT = 1e-9


def run(arguments: argparse.Namespace) -> FitResult:
    """Reads, prepares, fits, writes and reports; what is wrong with the input raises before anything is fitted."""
    config = read_config(arguments.config)
    model = _edited(_simulate._robot(arguments), config)
    runs = [_files(log) for log in arguments.logs]
    _check_folder(arguments.out)
    shown = Report(2 * len(runs) + 4)
    try:
        logs, preparation = prepare(runs, model, config.columns, config.preparation, progress=shown.advance)
        split = config.hold_out(logs)
        shown.advance("fitting")
        result = _fitted(model, split, config, lambda line: shown.bar.set_description(f"fitting, {line}"))
        shown.advance("predicting")
        predict = lambda log: identification.predicted_effort(result.system, log)
        name = model.name or Path(arguments.robot).stem
        report = report_on(result, split, preparation, predict=predict, title=f"Identification of {name}")
        shown.advance("writing")
        written = _written(report, arguments.out)
    finally:
        shown.close()
    _say(report, preparation, written)
    return result


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


def _fitted(model: Model, split: Split, config: Config, tell: Callable[[str], None]) -> FitResult:
    method = getattr(identification, METHODS[config.method])
    try:
        chosen = method(**config.options)
    except TypeError as error:
        raise ModelError(f"fit.options do not suit the method {config.method!r}: {error}") from None
    parts: tuple[Any, ...] = ()
    for name, make in (("friction", actuators.joint_friction), ("drive", actuators.drive)):
        given = getattr(config, name)
        if given is not None:
            try:
                parts += (make(model, **{k: jnp.asarray(x, model.dtype) for k, x in given.items()}),)
            except TypeError as error:
                raise ModelError(f"fit.{name}: {error}") from None
    weights = None if config.weights is None else jnp.asarray(config.weights, model.dtype)
    system = System(model, parts)
    selection = identification.select(*config.parameters)
    return identification.fit(
        system, split.fit, selection, chosen, held_out=split.held_out, weights=weights, progress=tell
    )


def _written(report: FitReport, out: Path) -> list[str]:
    """Every file whole or not at all, the report last."""
    out.mkdir(exist_ok=True)
    result, written = report.result, []
    save(out / "identified.jaxdyn", result.system)
    written.append(str(out / "identified.jaxdyn"))
    wrong = unphysical_links(result)
    if wrong:
        written.append(f"no URDF, since no body has the inertia of {', '.join(wrong[:4])}; take the method physical")
    else:
        text, lost = _urdf(result.model)
        write_bytes(out / "identified.urdf", text.encode())
        note = f" (without {', '.join(lost)}, for which URDF has no place)" if lost else ""
        written.append(f"{out / 'identified.urdf'}, read back and equal{note}")
    report.to_json(out / "report.json")
    report.to_html(out / "report.html")
    return [*written, str(out / "report.json"), str(out / "report.html")]


def _urdf(model: Model) -> tuple[str, list[str]]:
    """The text and what it leaves out; that which it describes has the same mass matrix and bias forces."""
    p = model.properties
    lost = [name for name in ("armature", "stiffness") if np.any(np.asarray(getattr(p, name)) != 0)]
    text = write_urdf(model, without=_NOT_IN_URDF)
    again = parse_urdf(text)
    bare = eqx.tree_at(lambda m: (m.properties.armature, m.gravity), model, (0 * p.armature, again.gravity))
    both = jax.jit(lambda m, q, v: (mass_matrix(m, q), bias_forces(m, q, v)))
    for key in jax.random.split(jax.random.key(0), 5):
        q = random_configuration(bare, key)
        v = jax.random.normal(key, (bare.nv,), bare.dtype)
        for a, b in zip(both(bare, q, v), both(again, q, v), strict=True):
            difference = float(jnp.max(jnp.abs(a - b)) / (1e-300 + jnp.max(jnp.abs(a))))
            if not difference < _AGREEMENT:
                raise ModelError(
                    f"the URDF of the identified model differs from it by {difference:.2g}; keep identified.jaxdyn"
                )
    return text, lost


def _say(report: FitReport, preparation: Any, written: Sequence[str]):
    result = report.result
    print(preparation)
    print()
    outside = {r.joint: r for r in report.held_out}
    for r in report.fit:
        held = f", held out {outside[r.joint].rmse:.4g}" if r.joint in outside else ""
        print(f"{r.joint}: error {r.rmse:.4g} {r.unit} ({100 * r.relative:.3g} %){held}")
    print(f"status: {result.status.name} after {result.steps} steps")
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
