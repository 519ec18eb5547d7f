"""The mapping of log columns to joint coordinates, and their conversion to SI units at the joints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from jaxdyn._errors import ModelError, format_names
from jaxdyn.identification.logs._log import Channel
from jaxdyn.identification.logs._patterns import compile_column_pattern, compile_table_pattern
from jaxdyn.identification.logs._table import LogError, Table
from jaxdyn.identification.logs._units import conversion_factor
from jaxdyn.model import Model
from jaxdyn.simulation import coordinate_names, effort_names, velocity_names

#: one number for all joints, a sequence in the order of the coordinates, or numbers by joint (default 1)
Numbers = float | int | Sequence[float | int] | Mapping[str, float | int]


@dataclass(frozen=True)
class Source:
    """The columns of one quantity (positions, velocities, accelerations or efforts) and their conversion.

    Positions, velocities and accelerations are `sign * gain * x / gear + offset`; efforts are
    `sign * gain * gear * x + offset`, with the column x in SI units, or in A, V or 1. For columns on the motor side,
    `gear` is the gear ratio and `gain` the torque constant.

    Arguments:

    * `pattern`: the column names: a string with the placeholder `{joint}`, `{index}` (from 0) or `{number}` (from 1); a
      regular expression for the whole name with a group `joint`, `index` or `number`; a sequence of names in the order
      of the coordinates; or a mapping from joint to name.
    * `unit`: unit of the columns; default: the unit stated in the file, otherwise SI.
    * `gear`, `sign`, `gain`, `offset`: one number, a sequence in the order of the coordinates, or numbers by joint.
    * `table`: regular expression for the names of the files or topics to search; default: all.
    * `missing`: value of coordinates without a column; default: a missing column is an error.

    ```python
    from jaxdyn.identification import Source

    encoder = Source("enc_{joint}", unit="deg")
    current = Source("current_{joint}", unit="mA", gain={"shoulder": 0.14, "elbow": 0.09}, gear=100.0)
    ```
    """

    pattern: str | Sequence[str] | Mapping[str, str]
    #: unit of the columns; None: the unit stated in the file, otherwise SI
    unit: str | None = None
    gear: Numbers = 1.0
    sign: Numbers = 1.0
    #: None is 1; required for readings in A, V or %
    gain: Numbers | None = None
    #: in SI units at the joint
    offset: Numbers = 0.0
    #: regular expression for the names of the files or topics to search; "" for all
    table: str = ""
    #: value of coordinates without a column; None: a missing column is an error
    missing: float | int | None = None


@dataclass(frozen=True)
class Columns:
    """The columns of a log: time, positions and efforts, optionally velocities and accelerations.

    Arguments:

    * `position`, `effort`: `Source`s of positions and efforts.
    * `velocity`, `acceleration`: `Source`s of measured velocities and accelerations, if any.
    * `time`: name of the time column; `time_unit`: its unit.
    * `valid`: name of a column that is zero in invalid rows.
    * `names`: joint names of the model by joint names in the log, where these differ.

    ```python
    import numpy as np
    import jaxdyn as jd
    from jaxdyn.identification import Columns, Source, Table, prepare

    robot = jd.robots.pendulum()
    t = np.arange(0.0, 10.0, 0.01)
    table = Table("run", {"ms": 1e3 * t, "angle": np.rad2deg(np.sin(t)), "amps": np.cos(t)})
    columns = Columns(
        position=Source(["angle"], unit="deg"),
        effort=Source(["amps"], unit="A", gain=0.5),
        time="ms",
        time_unit="ms",
    )
    logs, report = prepare([table], robot, columns)
    assert np.allclose(logs[0].effort[:, 0], 0.5 * np.cos(logs[0].t), atol=1e-3)
    ```
    """

    position: Source
    effort: Source
    velocity: Source | None = None
    acceleration: Source | None = None
    time: str = "t"
    time_unit: str = "s"
    #: a column that is zero in invalid rows
    valid: str | None = None
    #: joint names of the model by joint names in the log, where these differ
    names: Mapping[str, str] = field(default_factory=dict)


#: default mappings: columns of `jaxdyn.simulation.to_csv` and of joint states in bags
CONVENTIONS = (
    Columns(Source("q.{joint}"), Source("effort.{joint}"), Source("v.{joint}")),
    Columns(Source("position.{joint}"), Source("effort.{joint}"), Source("velocity.{joint}"), time="time"),
)
QUANTITIES = ("q", "v", "a", "effort")


class Part(NamedTuple):
    """The mapped columns of one table in SI units at the joints, by quantity and coordinate."""

    table: Table
    t: np.ndarray
    columns: dict[tuple[str, int], np.ndarray]
    rows: np.ndarray


class Recording(NamedTuple):
    """The mapped columns of all tables of one run, and the origin of each column."""

    name: str
    parts: list[Part]
    channels: tuple[Channel, ...]
    constant: dict[tuple[str, int], float]


def _coordinate_names(model: Model, quantity: str) -> tuple[tuple[str, str], ...]:
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
    """Maps the columns of a run to coordinates; raises `LogError` for missing, ambiguous or non-numeric columns."""
    columns = _choose_columns(tables, columns)
    sources = dict(
        zip(QUANTITIES, (columns.position, columns.velocity, columns.acceleration, columns.effort), strict=True)
    )
    found: dict[int, dict[tuple[str, int], tuple[str, np.ndarray]]] = {}
    channels: list[Channel] = []
    constant: dict[tuple[str, int], float] = {}
    for quantity, source in sources.items():
        if source is None:
            continue
        check_source(source)
        names = _coordinate_names(model, quantity)
        places = _find_columns(tables, source, [n for n, _ in names], columns.names, quantity, name)
        for k, (joint, unit) in enumerate(names):
            if k not in places:
                constant[quantity, k] = float(source.missing or 0.0)
                channels.append(Channel(f"{quantity}.{joint}", "", f"constant {source.missing:g}, no column"))
                continue
            index, column = places[k]
            x, given = _convert_column(tables[index], column, source, quantity, k, [n for n, _ in names], unit)
            found.setdefault(index, {})[quantity, k] = (column, x)
            channels.append(Channel(f"{quantity}.{joint}", given, f"{tables[index].name}, column {column!r}"))
    parts = [_make_part(tables[index], columns, x) for index, x in found.items()]
    return Recording(name, parts, tuple(channels), constant)


def _choose_columns(tables: Sequence[Table], columns: Columns | None) -> Columns:
    if columns is not None:
        return columns
    present = set(all_column_names(tables))
    for convention in CONVENTIONS:
        starts = tuple(str(s.pattern).partition("{")[0] for s in (convention.position, convention.effort))
        if convention.time in present and all(any(c.startswith(s) for c in present) for s in starts):
            velocity = convention.velocity
            start = str(velocity.pattern).partition("{")[0] if velocity else ""
            logged = velocity if any(c.startswith(start) for c in present) else None
            return Columns(convention.position, convention.effort, logged, time=convention.time)
    raise LogError(
        f"{tables[0].name}: has columns {format_names(all_column_names(tables))}; expected t, q.<joint> and "
        "effort.<joint>, or time, position.<joint> and effort.<joint>; for other names pass columns=Columns(...)"
    )


def all_column_names(tables: Sequence[Table]) -> list[str]:
    """All column names in the order of the tables."""
    return [column for table in tables for column in (*table.columns, *table.refused)]


def check_source(source: Source):
    """Raises `ModelError` if the pattern or the table of a source is not a valid regular expression."""
    compile_table_pattern(source.table)
    if isinstance(source.pattern, str):
        compile_column_pattern(source.pattern)


def _find_columns(tables, source: Source, joints, aliases, quantity: str, run: str) -> dict[int, tuple[int, str]]:
    """Table index and column name of each coordinate."""
    pattern = source.pattern
    if isinstance(pattern, Mapping):
        unknown = [joint for joint in pattern if joint not in joints]
        if unknown:
            raise ModelError(
                f"columns of {quantity}: this model has no joint {format_names(unknown)}; it has {format_names(joints)}"
            )
        places = {joints.index(joint): column for joint, column in pattern.items()}
        places = {k: _find_column(tables, source, column, quantity, run) for k, column in places.items()}
    elif not isinstance(pattern, str):
        if len(pattern) != len(joints):
            raise ModelError(
                f"columns of {quantity}: {len(pattern)} names for {len(joints)} coordinates; expected one for each of "
                f"{format_names(joints)}"
            )
        places = {k: _find_column(tables, source, column, quantity, run) for k, column in enumerate(pattern)}
    else:
        places = _match_pattern(tables, source, pattern, joints, aliases, quantity, run)
    absent = [joint for k, joint in enumerate(joints) if k not in places]
    if absent and source.missing is None:
        raise LogError(
            f"{run}: has no column of {quantity} for {format_names(absent)}; its columns are "
            f"{format_names(all_column_names(tables), 30)}. Change the pattern {pattern!r}, lock joints without logged "
            "positions with jaxdyn.lock_joints, or set `missing`"
        )
    return places


def _matching_tables(tables, source: Source) -> list[tuple[int, Table]]:
    expression = compile_table_pattern(source.table)
    return [(i, table) for i, table in enumerate(tables) if expression.is_in(table.name, "a table")]


def _find_column(tables, source: Source, column: str, quantity: str, run: str) -> tuple[int, str]:
    holders = [i for i, table in _matching_tables(tables, source) if column in table.columns or column in table.refused]
    if len(holders) == 1:
        return holders[0], column
    if holders:
        raise LogError(f"{run}: {len(holders)} tables have a column {column!r}; select one with `table`")
    raise LogError(
        f"{run}: has no column {column!r} for {quantity}; its columns are {format_names(all_column_names(tables), 30)}"
    )


def _match_pattern(tables, source, pattern, joints, aliases, quantity, run) -> dict[int, tuple[int, str]]:
    expression, group = compile_column_pattern(pattern)
    places: dict[int, tuple[int, str]] = {}
    for i, table in _matching_tables(tables, source):
        for column in (*table.columns, *table.refused):
            match = expression.match(column, table.name)
            text = None if match is None else match[group]  # the group may be in an alternative that did not match
            k = None if text is None else _coordinate_index(text, group, joints, aliases)
            if k is None:
                continue
            if k in places:
                raise LogError(
                    f"{run}: columns {places[k][1]!r} of {tables[places[k][0]].name} and {column!r} of {table.name} "
                    f"both match {quantity} of {joints[k]!r}; make the pattern {pattern!r} more specific, or select a "
                    "file with `table`"
                )
            places[k] = (i, column)
    return places


def _coordinate_index(text: str, group: str, joints, aliases) -> int | None:
    if group == "joint":
        text = aliases.get(text, text)
        return joints.index(text) if text in joints else None
    k = int(text) - (group == "number")
    return k if 0 <= k < len(joints) else None


def _number_of_joint(numbers: Numbers, k: int, joints, what: str) -> float:
    if isinstance(numbers, Mapping):
        unknown = [joint for joint in numbers if joint not in joints]
        if unknown:
            raise ModelError(f"{what}: this model has no joint {format_names(unknown)}; it has {format_names(joints)}")
        return float(numbers.get(joints[k], 0.0 if what.startswith("offset") else 1.0))
    if isinstance(numbers, Sequence):
        if len(numbers) != len(joints):
            raise ModelError(f"{what}: has {len(numbers)} numbers, expected one for each of {format_names(joints)}")
        return float(numbers[k])
    return float(numbers)


def _convert_column(table: Table, column: str, source: Source, quantity: str, k: int, joints, unit: str):
    """A column in SI units at its joint, and its original unit."""
    if column in table.refused:
        raise LogError(f"{table.name}, column {column!r}: {table.refused[column]}")
    where = f"{table.name}, column {column!r}"
    given = source.unit or table.units.get(column) or unit
    number = lambda name: _number_of_joint(getattr(source, name), k, joints, f"{name} of {quantity}")
    gain = 1.0 if source.gain is None else number("gain")
    scale = conversion_factor(given, unit, where, source.gain is not None) * number("sign") * gain
    gear = number("gear")
    if gear == 0 or scale == 0 or not np.isfinite([gear, scale]).all():
        raise ModelError(f"{where}: gear {gear:g} and factor {scale:g}; expected finite, nonzero numbers")
    scale = scale * gear if quantity == "effort" else scale / gear
    return table.columns[column] * scale + number("offset"), given


def _make_part(table: Table, columns: Columns, labelled: dict[tuple[str, int], tuple[str, np.ndarray]]) -> Part:
    """The valid rows of a table, checked for finite numbers and increasing time."""
    if columns.time not in table.columns:
        raise LogError(
            f"{table.name}: has no time column {columns.time!r}; its columns are {format_names(table.columns, 30)}; "
            "set Columns(time=...)"
        )
    where = f"{table.name}, column {columns.time!r}"
    t = table.columns[columns.time] * conversion_factor(columns.time_unit, "s", where, False)
    rows = np.arange(len(t))
    if columns.valid is not None:
        if columns.valid not in table.columns:
            raise LogError(
                f"{table.name}: has no column {columns.valid!r} for valid rows; its columns are "
                f"{format_names(table.columns, 30)}"
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
                f"{table.name}, column {labels[key]!r}, {table.row(int(rows[bad[0]]))}: is not a finite number "
                f"(and {len(bad) - 1} other rows); remove the rows, or mark them as invalid with Columns(valid=...)"
            )
    return Part(table, t, found, rows)


def _check_times(table: Table, column: str, t: np.ndarray, rows: np.ndarray):
    if len(t) < 2:
        raise LogError(f"{table.name}: has {len(t)} valid rows, expected two or more")
    bad = np.flatnonzero(~np.isfinite(t))
    if len(bad):
        raise LogError(
            f"{table.name}, column {column!r}, {table.row(int(rows[bad[0]]))}: time is not finite; remove the row"
        )
    decreases = np.flatnonzero(np.diff(t) < 0)
    if len(decreases):
        k = int(decreases[0]) + 1
        raise LogError(
            f"{table.name}, column {column!r}, {table.row(int(rows[k]))}: time decreases from {t[k - 1]:.9g} to "
            f"{t[k]:.9g} s (and in {len(decreases) - 1} other rows); sort the rows, or split the log where the "
            "clock was reset"
        )
