"""Which column of a log is which coordinate of a robot, and what its numbers mean."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.identification._log import Channel
from jaxdyn.identification._log_units import factor_to
from jaxdyn.identification._read_table import LogError, Table, listed
from jaxdyn.model import Model
from jaxdyn.simulation import coordinate_names, effort_names, velocity_names

#: one number for all joints, numbers in the order of coordinates, or numbers by joint (1 where none is given)
Numbers = float | int | Sequence[float | int] | Mapping[str, float | int]


@dataclass(frozen=True)
class Source:
    """Where one quantity of all joints is found, and what its numbers mean.

    `pattern` names the columns: with a placeholder, `"q.{joint}"`, `"q[{index}]"` (from 0) or `"pos{number}"` (from
    1); as a regular expression that matches a whole name and has a group `joint`, `index` or `number`; column names
    in the order of coordinates; or column names by joint. Positions, velocities and accelerations become
    `sign * gain * x / gear + offset` and efforts `sign * gain * gear * x + offset`, with x in SI units or in A, V, 1:
    so `gear` is what a column on the motor's side needs, and `gain` its torque constant.
    """

    pattern: str | Sequence[str] | Mapping[str, str]
    #: unit of the columns; by default that which the file states, else SI
    unit: str | None = None
    gear: Numbers = 1.0
    sign: Numbers = 1.0
    #: None is 1, and is refused for readings in A, V or %
    gain: Numbers | None = None
    #: SI units at the joint
    offset: Numbers = 0.0
    #: a regular expression that is found in the names of the files or topics to look in; all by default
    table: str = ""
    #: what coordinates without a column are set to, or None if that is an error
    missing: float | int | None = None


@dataclass(frozen=True)
class Columns:
    """The columns of a run: time, positions and efforts, and velocities and accelerations where they were logged."""

    position: Source
    effort: Source
    velocity: Source | None = None
    acceleration: Source | None = None
    time: str = "t"
    time_unit: str = "s"
    #: a column that is zero in rows to be left out
    valid: str | None = None
    #: joints of the model by their names in the log, where these differ
    names: Mapping[str, str] = field(default_factory=dict)


#: what `jaxdyn.simulation.to_csv` writes, and what bags of joint states are read as
CONVENTIONS = (
    Columns(Source("q.{joint}"), Source("effort.{joint}"), Source("v.{joint}")),
    Columns(Source("position.{joint}"), Source("effort.{joint}"), Source("velocity.{joint}"), time="time"),
)
QUANTITIES = ("q", "v", "a", "effort")


class Part(NamedTuple):
    """What one table contributes: columns in SI units at the joints, by quantity and coordinate."""

    table: Table
    t: np.ndarray
    columns: dict[tuple[str, int], np.ndarray]
    rows: np.ndarray


class Recording(NamedTuple):
    """All parts of one run, and where each column came from."""

    name: str
    parts: list[Part]
    channels: tuple[Channel, ...]
    constant: dict[tuple[str, int], float]


def _names(model: Model, quantity: str) -> tuple[tuple[str, str], ...]:
    if quantity == "q":
        return coordinate_names(model)
    if quantity == "effort":
        return effort_names(model)
    suffix = "/s" if quantity == "a" else ""
    return tuple(
        (name, {"rad/s/s": "rad/s^2", "m/s/s": "m/s^2"}.get(unit + suffix, unit))
        for name, unit in velocity_names(model)
    )


def map_columns(tables: Sequence[Table], model: Model, columns: Columns | None, name: str) -> Recording:
    """The columns of a run by quantity and coordinate; what is missing, ambiguous or no number raises `LogError`."""
    columns = _guessed(tables, columns)
    sources = dict(
        zip(QUANTITIES, (columns.position, columns.velocity, columns.acceleration, columns.effort), strict=True)
    )
    found: dict[int, dict[tuple[str, int], tuple[str, np.ndarray]]] = {}
    channels: list[Channel] = []
    constant: dict[tuple[str, int], float] = {}
    for quantity, source in sources.items():
        if source is None:
            continue
        names = _names(model, quantity)
        places = _places(tables, source, [n for n, _ in names], columns.names, quantity, name)
        for k, (joint, unit) in enumerate(names):
            if k not in places:
                constant[quantity, k] = float(source.missing or 0.0)
                channels.append(Channel(f"{quantity}.{joint}", "", f"{source.missing:g}, since there is no column"))
                continue
            index, column = places[k]
            x, given = _values(tables[index], column, source, quantity, k, [n for n, _ in names], unit)
            found.setdefault(index, {})[quantity, k] = (column, x)
            channels.append(Channel(f"{quantity}.{joint}", given, f"{tables[index].name}, column {column!r}"))
    parts = [_part(tables[index], columns, x) for index, x in found.items()]
    return Recording(name, parts, tuple(channels), constant)


def _guessed(tables: Sequence[Table], columns: Columns | None) -> Columns:
    if columns is not None:
        return columns
    present = set(present_in_order(tables))
    for convention in CONVENTIONS:
        starts = tuple(str(s.pattern).partition("{")[0] for s in (convention.position, convention.effort))
        if convention.time in present and all(any(c.startswith(s) for c in present) for s in starts):
            velocity = convention.velocity
            start = str(velocity.pattern).partition("{")[0] if velocity else ""
            logged = velocity if any(c.startswith(start) for c in present) else None
            return Columns(convention.position, convention.effort, logged, time=convention.time)
    raise LogError(
        f"{tables[0].name}: has columns {listed(present_in_order(tables))}; without a mapping t, q.<joint> and "
        "effort.<joint> are expected, or time, position.<joint> and effort.<joint>: say which column is which"
    )


def present_in_order(tables: Sequence[Table]) -> list[str]:
    """Names of all columns in the order of the files."""
    return [column for table in tables for column in (*table.columns, *table.refused)]


def _expression(pattern: str) -> str:
    """A regular expression for a pattern with placeholders, which else is one already."""
    pieces = re.split(r"(\{joint\}|\{index\}|\{number\})", pattern)
    if len(pieces) == 1:
        return pattern
    groups = {"{joint}": "(?P<joint>.+)", "{index}": r"(?P<index>\d+)", "{number}": r"(?P<number>\d+)"}
    return "".join(groups.get(piece) or re.escape(piece) for piece in pieces)


def _places(tables, source: Source, joints, aliases, quantity: str, run: str) -> dict[int, tuple[int, str]]:
    """Table and column of each coordinate."""
    pattern = source.pattern
    if isinstance(pattern, Mapping):
        unknown = [joint for joint in pattern if joint not in joints]
        if unknown:
            raise ModelError(
                f"columns of {quantity}: {listed(unknown)} is not of this model, which has {listed(joints)}"
            )
        places = {joints.index(joint): column for joint, column in pattern.items()}
        places = {k: _located(tables, source, column, quantity, run) for k, column in places.items()}
    elif not isinstance(pattern, str):
        if len(pattern) != len(joints):
            raise ModelError(
                f"columns of {quantity}: {len(pattern)} names for {len(joints)} coordinates; expected one for each of "
                f"{listed(joints)}"
            )
        places = {k: _located(tables, source, column, quantity, run) for k, column in enumerate(pattern)}
    else:
        places = _matched(tables, source, pattern, joints, aliases, quantity, run)
    absent = [joint for k, joint in enumerate(joints) if k not in places]
    if absent and source.missing is None:
        raise LogError(
            f"{run}: has no column of {quantity} for {listed(absent)}; its columns are "
            f"{listed(present_in_order(tables), 30)}. Change the pattern {pattern!r}, lock joints that were not logged "
            "by jaxdyn.lock_joints, or say what stands for a missing column"
        )
    return places


def _looked_in(tables, source: Source) -> list[tuple[int, Table]]:
    return [(i, table) for i, table in enumerate(tables) if re.search(source.table, table.name)]


def _located(tables, source: Source, column: str, quantity: str, run: str) -> tuple[int, str]:
    holders = [i for i, table in _looked_in(tables, source) if column in table.columns or column in table.refused]
    if len(holders) == 1:
        return holders[0], column
    if holders:
        raise LogError(f"{run}: {len(holders)} of its tables have a column {column!r}; say which by `table`")
    raise LogError(
        f"{run}: has no column {column!r} for {quantity}; its columns are {listed(present_in_order(tables), 30)}"
    )


def _matched(tables, source, pattern, joints, aliases, quantity, run) -> dict[int, tuple[int, str]]:
    try:
        expression = re.compile(_expression(pattern))
    except re.error as error:
        raise ModelError(f"columns of {quantity}: {pattern!r} is not a regular expression ({error})") from None
    groups = expression.groupindex.keys() & {"joint", "index", "number"}
    if len(groups) != 1:
        raise ModelError(
            f"columns of {quantity}: {pattern!r} has no group that says which joint; write {{joint}}, {{index}} or "
            "{number} in it, or a group such as (?P<joint>.+)"
        )
    group = groups.pop()
    places: dict[int, tuple[int, str]] = {}
    for i, table in _looked_in(tables, source):
        for column in (*table.columns, *table.refused):
            match = expression.fullmatch(column)
            text = None if match is None else match[group]  # a group may be in a branch that was not taken
            k = None if text is None else _coordinate(text, group, joints, aliases)
            if k is None:
                continue
            if k in places:
                raise LogError(
                    f"{run}: columns {places[k][1]!r} of {tables[places[k][0]].name} and {column!r} of {table.name} "
                    f"are both {quantity} of {joints[k]!r}; make the pattern {pattern!r} narrower, or say which file "
                    "by `table`"
                )
            places[k] = (i, column)
    return places


def _coordinate(text: str, group: str, joints, aliases) -> int | None:
    if group == "joint":
        text = aliases.get(text, text)
        return joints.index(text) if text in joints else None
    k = int(text) - (group == "number")
    return k if 0 <= k < len(joints) else None


def _number(numbers: Numbers, k: int, joints, what: str) -> float:
    if isinstance(numbers, Mapping):
        unknown = [joint for joint in numbers if joint not in joints]
        if unknown:
            raise ModelError(
                f"{what}: names {listed(unknown)}, which this model does not have; it has {listed(joints)}"
            )
        return float(numbers.get(joints[k], 0.0 if what.startswith("offset") else 1.0))
    if isinstance(numbers, Sequence):
        if len(numbers) != len(joints):
            raise ModelError(f"{what}: has {len(numbers)} numbers, expected one for each of {listed(joints)}")
        return float(numbers[k])
    return float(numbers)


def _values(table: Table, column: str, source: Source, quantity: str, k: int, joints, unit: str):
    """A column in SI units at its joint, and the unit that it had."""
    if column in table.refused:
        raise LogError(f"{table.name}, column {column!r}: {table.refused[column]}")
    where = f"{table.name}, column {column!r}"
    given = source.unit or table.units.get(column) or unit
    of = lambda name: _number(getattr(source, name), k, joints, f"{name} of {quantity}")
    gain = 1.0 if source.gain is None else of("gain")
    scale = factor_to(given, unit, where, source.gain is not None) * of("sign") * gain
    gear = of("gear")
    if gear == 0 or scale == 0 or not np.isfinite([gear, scale]).all():
        raise ModelError(f"{where}: gear {gear:g} and factor {scale:g}; both must be finite and not zero")
    scale = scale * gear if quantity == "effort" else scale / gear
    return table.columns[column] * scale + of("offset"), given


def _part(table: Table, columns: Columns, labelled: dict[tuple[str, int], tuple[str, np.ndarray]]) -> Part:
    """Rows of a table that count, checked."""
    if columns.time not in table.columns:
        raise LogError(
            f"{table.name}: has no column {columns.time!r} of time; its columns are {listed(table.columns, 30)}: name "
            "the one that holds it"
        )
    t = table.columns[columns.time] * factor_to(columns.time_unit, "s", f"{table.name}, column {columns.time!r}", False)
    rows = np.arange(len(t))
    if columns.valid is not None:
        if columns.valid not in table.columns:
            raise LogError(
                f"{table.name}: has no column {columns.valid!r} of valid rows; its columns are "
                f"{listed(table.columns, 30)}"
            )
        rows = rows[table.columns[columns.valid] != 0]
    t = t[rows]
    _check_times(table, columns.time, t, rows)
    found = {key: x[rows] for key, (_, x) in labelled.items()}
    labels = {key: label for key, (label, _) in labelled.items()}
    for key, x in found.items():
        bad = np.flatnonzero(~np.isfinite(x))
        if len(bad):
            raise LogError(
                f"{table.name}, column {labels[key]!r}, {table.row(int(rows[bad[0]]))}: is not a finite number, and "
                f"so in {len(bad) - 1} other rows; remove the rows, or mark them by a column that `valid` names"
            )
    return Part(table, t, found, rows)


def _check_times(table: Table, column: str, t: np.ndarray, rows: np.ndarray):
    if len(t) < 2:
        raise LogError(f"{table.name}: has {len(t)} rows that count, expected two or more")
    bad = np.flatnonzero(~np.isfinite(t))
    if len(bad):
        raise LogError(
            f"{table.name}, column {column!r}, {table.row(int(rows[bad[0]]))}: time is not finite; remove the row"
        )
    back = np.flatnonzero(np.diff(t) < 0)
    if len(back):
        k = int(back[0]) + 1
        raise LogError(
            f"{table.name}, column {column!r}, {table.row(int(rows[k]))}: time goes back from {t[k - 1]:.9g} to "
            f"{t[k]:.9g} s, and so in {len(back) - 1} other rows; sort the rows, or cut the log where the "
            "clock was reset"
        )
