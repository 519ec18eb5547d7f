"""The configuration of `jaxdyn fit`: a TOML file, validated before anything is computed."""

import dataclasses
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxdyn._errors import FileFormatError
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
from jaxdyn.io.files import read_bytes

#: classes of jaxdyn.identification by the names of the methods in a configuration
METHODS = {
    "linear": "Linear",
    "physical": "Physical",
    "levenberg-marquardt": "LevenbergMarquardt",
    "first-order": "FirstOrder",
    "output-error": "OutputError",
    "low-passed": "LowPassed",
}
_MAX_BYTES = 1_000_000
_SOURCES = ("position", "velocity", "acceleration", "effort")
_NUMBER, _TEXT, _LIST, _TABLE = (int, float), str, list, dict
#: types of the entries of [fit]
_FIT = {
    "parameters": _LIST,
    "method": _TEXT,
    "options": _TABLE,
    "friction": _TABLE,
    "drive": _TABLE,
    "weights": _LIST,
    "bounds": _TABLE,
    "prior": _TABLE,
    "loss": (_TEXT, _TABLE),
    "optimiser": (_TEXT, _TABLE),
    "windows": _TABLE,
    "start": (_TEXT, _TABLE),
    "solver": _TABLE,
}


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
    weights: Sequence[float | int] | None = None
    #: lower and upper bounds by path or name of a parameter
    bounds: Mapping[str, tuple[float, float]] | None = None
    prior: Mapping[str, Any] | None = None
    #: names and numbers from which the method is built
    loss: str | Mapping[str, Any] | None = None
    optimiser: str | Mapping[str, Any] | None = None
    windows: Mapping[str, Any] | None = None
    start: str | Mapping[str, Any] | None = None
    solver: Mapping[str, Any] | None = None


def read_config(path: Path | None) -> Config:
    """The configuration in a file; unknown entries and wrong types raise `FileFormatError` with their names."""
    if path is None:
        return Config()
    try:
        content = tomllib.loads(read_bytes(path, _MAX_BYTES).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path}: is not valid TOML ({error}); correct it there") from None
    reader = _Reader(path)
    known = ("robot", "columns", "preparation", "hold_out", "fit")
    top = reader.table(content, "", dict.fromkeys(known, _TABLE))
    robot = reader.table(top.get("robot", {}), "robot", {"lock": (_LIST, _TABLE), "remove": _LIST})
    fit = reader.table(top.get("fit", {}), "fit", _FIT)
    if "bounds" in fit:
        pairs = fit["bounds"].items()
        fit["bounds"] = {key: _pair(reader, f"fit.bounds.{key!r}", x, "[lower, upper]") for key, x in pairs}
    if fit.get("method", "linear") not in METHODS:
        raise FileFormatError(f"{path}, fit.method: {fit['method']!r} is unknown; expected one of {', '.join(METHODS)}")
    lock = robot.get("lock", {})
    return Config(
        lock=lock if isinstance(lock, dict) else dict.fromkeys(lock),
        remove=robot.get("remove", ()),
        columns=_columns(reader, top["columns"]) if "columns" in top else None,
        preparation=_preparation(reader, top.get("preparation", {})),
        **({"hold_out": _hold_out(reader, top["hold_out"])} if "hold_out" in top else {}),
        **fit,
    )


@dataclass(frozen=True)
class _Reader:
    path: Path

    def table(self, given: Mapping[str, Any], where: str, known: Mapping[str, Any]) -> dict[str, Any]:
        """The entries of a table, after a check of their names and types."""
        for key, value in given.items():
            name = f"{where}.{key}" if where else key
            if key not in known:
                raise FileFormatError(f"{self.path}: has an entry {name!r}; expected some of {', '.join(known)}")
            kinds = known[key] if isinstance(known[key], tuple) else (known[key],)
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                expected = " or ".join(kind.__name__ for kind in kinds)
                raise FileFormatError(f"{self.path}: {name} is {value!r}, expected {expected}")
        return dict(given)


def _columns(reader: _Reader, given: Mapping[str, Any]) -> Columns:
    number = (*_NUMBER, _LIST, _TABLE)
    keys = {"pattern": (_TEXT, _LIST, _TABLE), "unit": _TEXT, "table": _TEXT, "missing": _NUMBER}
    keys |= dict.fromkeys(("gear", "sign", "gain", "offset"), number)
    head = {"time": _TEXT, "time_unit": _TEXT, "valid": _TEXT, "names": _TABLE}
    top = reader.table(given, "columns", head | dict.fromkeys(_SOURCES, (_TEXT, _TABLE)))
    for needed in ("position", "effort"):
        if needed not in top:
            raise FileFormatError(
                f"{reader.path}: columns has no {needed!r}; give the pattern of its column names, such as 'q.{{joint}}'"
            )
    sources = {}
    for name in _SOURCES:
        if name in top:
            value = top.pop(name)
            entry: dict[str, Any] = (
                {"pattern": value} if isinstance(value, str) else reader.table(value, f"columns.{name}", keys)
            )
            if "pattern" not in entry:
                raise FileFormatError(
                    f"{reader.path}: columns.{name} has no 'pattern'; give the pattern of the column names"
                )
            sources[name] = Source(**entry)
    return Columns(**sources, **top)


def _preparation(reader: _Reader, given: Mapping[str, Any]) -> Preparation:
    known: dict[str, Any] = {f.name: _NUMBER for f in dataclasses.fields(Preparation)}
    known |= {"low_pass": bool, "differentiate": bool, "window": _LIST, "order": int}
    known |= {"effort_delay": (*_NUMBER, _TABLE, _TEXT)}
    options = reader.table(given, "preparation", known)
    if isinstance(options.get("effort_delay"), str):
        if options["effort_delay"] != "estimate":
            raise FileFormatError(
                f"{reader.path}: preparation.effort_delay must be a number of s, a table by joint, or 'estimate'"
            )
        options["effort_delay"] = None
    if "window" in options:
        options["window"] = _pair(reader, "preparation.window", options["window"])
    return Preparation(**options)


def _hold_out(reader: _Reader, given: Mapping[str, Any]) -> Callable[[Sequence[Log]], Split]:
    known = {"runs": _LIST, "times": _LIST, "share": _NUMBER, "blocks": int, "guard": _NUMBER}
    x = reader.table(given, "hold_out", known)
    choices = {"runs", "times", "share"} & x.keys()
    if len(choices) != 1:
        raise FileFormatError(
            f"{reader.path}: hold_out has {sorted(choices) or 'nothing'}; give one of runs, times, share"
        )
    guard = {"guard": x["guard"]} if "guard" in x else {}
    if "runs" in x:
        return lambda logs: hold_out_runs(logs, [str(name) for name in x["runs"]])
    if "times" in x:
        times = [_pair(reader, "hold_out.times", pair) for pair in x["times"]]
        return lambda logs: hold_out_times(logs, times, **guard)
    return lambda logs: hold_out_share(logs, float(x["share"]), x.get("blocks", 4), **guard)


def _pair(reader: _Reader, where: str, given: Any, meaning: str = "[from, to] in s") -> tuple[float, float]:
    is_pair = isinstance(given, list) and len(given) == 2 and all(isinstance(x, _NUMBER) for x in given)
    if not is_pair:
        raise FileFormatError(f"{reader.path}: {where} has {given!r}, expected a pair of numbers {meaning}")
    return float(given[0]), float(given[1])
