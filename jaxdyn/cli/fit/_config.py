"""The configuration of `jaxdyn fit`: a TOML file, validated before anything is computed."""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxdyn._errors import FileFormatError, ModelError
from jaxdyn.cli.fit._options import COLUMN_PATTERN, INNER_METHODS, METHOD_OPTIONS, SPECIFIC_ENTRIES, describe_file
from jaxdyn.identification import (
    Columns,
    Log,
    Preparation,
    Source,
    Split,
    hold_out_runs,
    hold_out_share,
    hold_out_times,
)
from jaxdyn.identification.logs import check_source
from jaxdyn.io.files import read_bytes

_MAX_BYTES = 50_000
_MAX_DEPTH = 8
#: characters that end a key of a table, and the dots from which a key counts as too long, in comments and texts as well
_NO_KEY = re.compile(r"""[^\w.\- \t'"]+""")
_MOST_DOTS = 32
_SOURCES = ("position", "velocity", "acceleration", "effort")
_SOURCE_TABLES = ("inputs", "measured")


@dataclass(frozen=True)
class Config:
    """The entries of a configuration; without a file, the defaults."""

    #: joints to lock, each at a coordinate or at its neutral configuration (None)
    lock: Mapping[str, Any] = field(default_factory=dict)
    #: links to remove together with their subtrees
    remove: Sequence[str] = ()
    columns: Columns | None = None
    preparation: Preparation = field(default_factory=Preparation)
    hold_out: Callable[[Sequence[Log]], Split] = lambda logs: Split(list(logs), [])
    parameters: Sequence[str] = ("links[*].inertial", "joints[*].damping", "joints[*].friction")
    method: str = "physical"
    options: Mapping[str, Any] = field(default_factory=dict)
    #: arguments of `joint_friction` and `drive`; None adds no such part
    friction: Mapping[str, Any] | None = None
    drive: Mapping[str, Any] | None = None
    #: motors by joint, and arguments of `LoggedInputs`
    motors: Mapping[str, Mapping[str, Any]] | None = None
    synchronous_motors: Mapping[str, Mapping[str, Any]] | None = None
    inputs: Mapping[str, Any] | None = None
    weights: Sequence[float] | None = None
    #: lower and upper bounds by path or name of a parameter
    bounds: Mapping[str, tuple[float, float]] | None = None
    prior: Mapping[str, Any] | None = None
    #: names with their numbers, from which the method is built
    loss: tuple[str, Mapping[str, Any]] | None = None
    optimiser: str | Mapping[str, Any] | None = None
    windows: Mapping[str, Any] | None = None
    start: tuple[str, Mapping[str, Any]] | None = None
    solver: Mapping[str, Any] | None = None


def read_config(path: Path | None) -> Config:
    """The configuration in a file; entries that do not fit the description of `_options.py` raise `FileFormatError`."""
    if path is None:
        return Config()
    content = _parse_toml(path)
    method, inner = _chosen_methods(content)
    try:
        entries = describe_file(method, inner).read(content, "")
        return _make_config(entries)
    except ModelError as error:
        raise FileFormatError(f"{path}: {error}") from None


def _parse_toml(path: Path) -> dict[str, Any]:
    try:
        text = read_bytes(path, _MAX_BYTES).decode()
        if any(key.count(".") > _MOST_DOTS for key in _NO_KEY.split(text)):  # they take the parser quadratic time
            raise _too_deep(path)
        content = tomllib.loads(text)
    except RecursionError:
        raise _too_deep(path) from None
    except ValueError as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{path}: is not valid TOML ({error}); correct it there") from None
    level: list[Any] = [content]
    for _ in range(_MAX_DEPTH):
        level = [x for node in level for x in _children(node)]
    if level:
        raise _too_deep(path)
    return content


def _children(node: Any) -> list[Any]:
    return list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []


def _too_deep(path: Path) -> FileFormatError:
    return FileFormatError(f"{path}: tables and lists are nested deeper than {_MAX_DEPTH} levels; remove some levels")


def _chosen_methods(content: dict[str, Any]) -> tuple[str, str]:
    """The method of the fit and its inner one, on which the other entries depend; defaults stand for invalid ones."""
    fit = content.get("fit")
    solver = fit.get("solver") if isinstance(fit, dict) else None
    method = fit.get("method") if isinstance(fit, dict) else None
    inner = solver.get("method") if isinstance(solver, dict) else None
    known = lambda name, names: name if isinstance(name, str) and name in names else "physical"
    return known(method, METHOD_OPTIONS), known(inner, INNER_METHODS)


def _make_config(entries: dict[str, Any]) -> Config:
    robot, fit = entries.get("robot", {}), entries.get("fit", {})
    _check_entries_of_the_method(fit)
    has_motors = bool(fit.get("motors") or fit.get("synchronous_motors"))
    if "columns" in entries and "effort" not in entries["columns"] and not has_motors:
        raise ModelError(f"columns has no 'effort'; give {COLUMN_PATTERN}, or motors in fit.motors")
    lock = robot.get("lock", {})
    return Config(
        lock=lock if isinstance(lock, dict) else dict.fromkeys(lock),
        remove=robot.get("remove", ()),
        columns=_columns(entries["columns"]) if "columns" in entries else None,
        preparation=_preparation(entries.get("preparation", {})),
        **({"hold_out": _hold_out(entries["hold_out"])} if "hold_out" in entries else {}),
        **fit,
    )


def _check_entries_of_the_method(fit: Mapping[str, Any]):
    """Raises `ModelError` for entries that the method would ignore."""
    method = fit.get("method", Config.method)
    for entry, methods in SPECIFIC_ENTRIES.items():
        if entry in fit and method not in methods:
            raise ModelError(f"fit.{entry} applies to the method {' or '.join(methods)}, not to {method!r}")
    METHOD_OPTIONS[method].read(fit.get("options", {}), "fit.options")  # some methods require an option
    inner = fit.get("solver", {}).get("method", method)
    if "prior" in fit and inner == "linear":
        raise ModelError("fit.prior does not apply to the method 'linear', which has no prior; use 'physical'")
    if "bounds" in fit and inner == "linear":
        raise ModelError("fit.bounds does not apply to the method 'linear', which has no bounds; use 'physical'")
    if method == "first-order" and "optimiser" not in fit:
        raise ModelError(
            "the method first-order needs fit.optimiser, the name of an optax optimiser with its arguments, such as "
            '{ name = "adam", learning_rate = 0.05 }'
        )


def _columns(given: Mapping[str, Any]) -> Columns:
    sources: dict[str, Any] = {name: _source(f"columns.{name}", given[name]) for name in _SOURCES if name in given}
    for table in _SOURCE_TABLES:
        sources[table] = {name: _source(f"columns.{table}.{name}", x) for name, x in given.get(table, {}).items()}
    return Columns(**sources, **{name: value for name, value in given.items() if name not in sources})


def _source(where: str, given: str | Mapping[str, Any]) -> Source:
    entries: Mapping[str, Any] = {"pattern": given} if isinstance(given, str) else given
    try:
        source = Source(**entries)
        check_source(source)
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None
    return source


def _preparation(given: Mapping[str, Any]) -> Preparation:
    delay = {"effort_delay": None} if given.get("effort_delay") == "estimate" else {}
    return Preparation(**{**given, **delay})


def _hold_out(x: Mapping[str, Any]) -> Callable[[Sequence[Log]], Split]:
    choices = {"runs", "times", "share"} & x.keys()
    if len(choices) != 1:
        raise ModelError(f"hold_out has {sorted(choices) or 'nothing'}; give one of runs, times, share")
    guard = {"guard": x["guard"]} if "guard" in x else {}
    if "runs" in x:
        return lambda logs: hold_out_runs(logs, x["runs"])
    if "times" in x:
        return lambda logs: hold_out_times(logs, x["times"], **guard)
    return lambda logs: hold_out_share(logs, x["share"], x.get("blocks", 4), **guard)
