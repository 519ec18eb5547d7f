"""The mapping of log columns to joint coordinates, and their conversion to SI units at the joints."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jaxdyn._errors import ModelError, format_names
from jaxdyn.identification.logs._columns import Columns, Numbers, Source, all_column_names, check_source
from jaxdyn.identification.logs._log import Channel
from jaxdyn.identification.logs._patterns import compile_column_pattern, compile_table_pattern
from jaxdyn.identification.logs._quantities import Quantity, choose_columns, list_quantities
from jaxdyn.identification.logs._units import conversion_factor, zero_point
from jaxdyn.identification.logs.tables import LogError, Table
from jaxdyn.model import Model
from jaxdyn.simulation import System


class Part(NamedTuple):
    """The mapped columns of one table in SI units at the joints, by array of the log and entry."""

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
    #: number of columns of each array of a log
    sizes: dict[str, int]
    #: names of the measurements of actuators, in the order of their array
    measured: tuple[str, ...]


def map_columns(tables: Sequence[Table], system: Model | System, columns: Columns | None, name: str) -> Recording:
    """Maps the columns of a run to coordinates; raises `LogError` for missing, ambiguous or non-numeric columns."""
    columns = choose_columns(tables, system) if columns is None else columns
    found: dict[int, dict[tuple[str, int], tuple[str, np.ndarray]]] = {}
    channels: list[Channel] = []
    constant: dict[tuple[str, int], float] = {}
    quantities, sizes, measured = list_quantities(system, columns)
    for quantity in quantities:
        source = quantity.source
        check_source(source)
        places = _find_columns(tables, quantity, columns.names, name)
        for k in range(len(quantity.joints)):
            key = (quantity.array, quantity.entries[k])
            if k not in places:
                constant[key] = float(source.missing or 0.0)
                channels.append(Channel(quantity.channel(k), "", f"constant {constant[key]:g}, no column"))
                continue
            index, column = places[k]
            x, given = _convert_column(tables[index], column, quantity, k)
            found.setdefault(index, {})[key] = (column, x)
            channels.append(Channel(quantity.channel(k), given, f"{tables[index].name}, column {column!r}"))
    parts = [_make_part(tables[index], columns, x) for index, x in found.items()]
    return Recording(name, parts, tuple(channels), constant, sizes, measured)


def _find_columns(tables, wanted: Quantity, aliases, run: str) -> dict[int, tuple[int, str]]:
    """Table index and column name of each coordinate."""
    source, joints, quantity = wanted.source, wanted.joints, wanted.name
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


def _convert_column(table: Table, column: str, quantity: Quantity, k: int):
    """A column in SI units at its joint, and its original unit."""
    if column in table.refused:
        raise LogError(f"{table.name}, column {column!r}: {table.refused[column]}")
    where, source, unit = f"{table.name}, column {column!r}", quantity.source, quantity.units[k]
    given = source.unit or table.units.get(column) or unit
    number = lambda name: _number_of_joint(getattr(source, name), k, quantity.joints, f"{name} of {quantity.name}")
    gain = 1.0 if source.gain is None else number("gain")
    factor, zero = conversion_factor(given, unit, where, source.gain is not None), zero_point(given, unit)
    scale, gear = number("sign") * gain, number("gear")
    if gear == 0 or factor * scale == 0 or not np.isfinite([gear, factor * scale]).all():
        raise ModelError(f"{where}: gear {gear:g} and factor {factor * scale:g}; expected finite, nonzero numbers")
    if gear != 1 and quantity.gear_power == 0:
        raise ModelError(
            f"{where}: {quantity.name} of an actuator has gear {gear:g}, but does not depend on a gear; leave it out "
            "here, and give it to the motor"
        )
    scale = scale * gear**quantity.gear_power
    return (table.columns[column] * factor + zero) * scale + number("offset"), given


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
