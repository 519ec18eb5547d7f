"""Reader of CSV files with the usual separators."""

import csv
import gzip
import io
import json
import zlib
from pathlib import Path

import numpy as np

from jaxdyn._errors import format_names
from jaxdyn.identification.logs._table import LogError, Table
from jaxdyn.io.files import read_bytes


def read_csv(path: Path, max_bytes: int) -> list[Table]:
    """A table whose first line names the columns, separated by commas, semicolons, tabs or spaces.

    Lines that begin with # are comments; the last comment before the numbers may contain the column names. Columns
    without names are called `column 1`, `column 2`, ... Empty cells are NaN. A column with text is listed in `refused`
    and raises an error only when it is used. Units come from the comment that `jaxdyn.simulation.to_csv` writes.
    """
    text = _read_lines(path, max_bytes)
    names, start, comments, separator = _parse_heading(path, text)
    body = "\n".join(text[start:])
    table = _parse_numbers(body, separator, len(names))
    refused: dict[str, str] = {}
    if table is None:
        table, refused = _parse_cells(path, text, start, separator, names)
    if not len(table):
        raise LogError(f"{path}: has no rows below the header; give a log with samples")
    columns = {name: table[:, k] for k, name in enumerate(names) if name and name not in refused}
    return [Table(str(path), columns, _parse_units(comments), refused, start + 1)]


def _read_lines(path: Path, max_bytes: int) -> list[str]:
    content = read_bytes(path, max_bytes)
    if content[:2] == b"\x1f\x8b":
        try:
            with gzip.open(io.BytesIO(content)) as file:
                content = file.read(max_bytes + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise LogError(f"{path}: is not a complete gzip file ({error}); compress it again") from None
        if len(content) > max_bytes:
            raise LogError(
                f"{path}: decompresses to more than the {max_bytes} bytes allowed; if you trust it, raise the limit"
            )
    try:
        return content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise LogError(f"{path}: byte {error.start} is not valid UTF-8; save the table as UTF-8 text") from None


def _parse_heading(path: Path, lines: list[str]) -> tuple[list[str], int, list[str], str | None]:
    """Column names, index of the first line of numbers, comments, and the separator (None for spaces)."""
    comments: list[str] = []
    for k, line in enumerate(lines):
        if not line.strip():
            continue
        if line.lstrip().startswith("#"):
            comments.append(line.lstrip()[1:].strip())
            continue
        separator = next((s for s in (",", ";", "\t") if s in line), None)
        cells = _split_cells(line, separator)
        if not all(_is_number(cell) for cell in cells):
            return _check_unique(path, cells), k + 1, comments, separator
        above = _split_cells(comments[-1], separator) if comments else []
        named = len(above) == len(cells) and not any(_is_number(cell) for cell in above)
        return (
            _check_unique(path, above) if named else [f"column {i + 1}" for i in range(len(cells))],
            k,
            comments,
            separator,
        )
    raise LogError(f"{path}: contains no table; give a log with a header line and rows of numbers")


def _check_unique(path: Path, names: list[str]) -> list[str]:
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise LogError(
            f"{path}: has several columns named {format_names(twice)}; rename them, since column names must be unique"
        )
    return names


def _split_cells(line: str, separator: str | None) -> list[str]:
    if separator is None:
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parse_numbers(body: str, separator: str | None, count: int) -> np.ndarray | None:
    """The table if every cell is a number, otherwise None."""
    if not body.strip():
        return np.zeros((0, count))
    try:
        table = np.loadtxt(io.StringIO(body), delimiter=separator, ndmin=2, comments="#")
    except ValueError:
        return None
    return table if table.shape[1] == count else None


def _parse_cells(path, lines, start, separator, names) -> tuple[np.ndarray, dict[str, str]]:
    """The table cell by cell, and for each column with text the location of its first such cell."""
    rows, refused = [], {}
    for number, line in enumerate(lines[start:], start + 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = _split_cells(line, separator)
        if len(cells) == len(names) + 1 and not cells[-1]:
            cells.pop()  # a separator at the end of each line
        if len(cells) != len(names):
            raise LogError(
                f"{path}, line {number}: has {len(cells)} cells for {len(names)} columns; remove the line if the "
                "log was truncated there"
            )
        rows.append([_parse_number(cell, name, number, refused) for cell, name in zip(cells, names, strict=True)])
    return np.array(rows, float).reshape(len(rows), len(names)), refused


def _parse_number(cell: str, name: str, line: int, refused: dict[str, str]) -> float:
    try:
        return float(cell) if cell else np.nan
    except ValueError:
        remedy = "use a point as decimal separator" if "," in cell else "write a number"
        refused.setdefault(name, f"line {line} contains {cell!r}; {remedy}, or leave the cell empty")
        return np.nan


def _parse_units(comments: list[str]) -> dict[str, str]:
    for comment in comments:
        try:
            about = json.loads(comment)
        except ValueError:
            continue
        units = about.get("units") if isinstance(about, dict) else None
        if isinstance(units, dict):
            return {str(k): str(v) for k, v in units.items()}
    return {}
