"""Reader of CSV files with the usual separators."""

import csv
import gzip
import io
import itertools
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxdyn._errors import format_names
from jaxdyn.identification.logs.tables._budget import Budget, ExpansionError
from jaxdyn.identification.logs.tables._table import LogError, Table, parse_units
from jaxdyn.io.files import read_bytes

_GZIP = b"\x1f\x8b"


class _Heading(NamedTuple):
    """The lines above the numbers."""

    names: list[str]
    #: number of lines above the first line of numbers
    lines: int
    units: dict[str, str]
    #: None for spaces
    separator: str | None


class _BoundedFile(io.RawIOBase):
    """A file that raises `ExpansionError` where its content exceeds the budget."""

    def __init__(self, file: gzip.GzipFile, budget: Budget):
        self.file, self.budget = file, budget

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer) -> int:
        """Reads the next bytes into the buffer."""
        content = self.file.read(len(buffer))
        self.budget.take(len(content))
        buffer[: len(content)] = content
        return len(content)


def read_csv(path: Path, max_bytes: int) -> list[Table]:
    """A table whose first line names the columns, separated by commas, semicolons, tabs or spaces.

    Lines that begin with # are comments; the last comment before the numbers may contain the column names. Columns
    without names are called `column 1`, `column 2`, ... Empty cells are NaN. A column with text is listed in `refused`
    and raises an error only when it is used. Units come from the comment that `jaxdyn.simulation.to_csv` writes.
    """
    content = read_bytes(path, max_bytes)
    try:
        return [_read_table(path, content, max_bytes)]
    except LogError:
        raise
    except UnicodeDecodeError:
        raise LogError(f"{path}: is not valid UTF-8; save the table as UTF-8 text") from None
    except csv.Error as error:
        raise LogError(f"{path}: has a cell that cannot be read ({error}); close its quotes") from None
    except (OSError, EOFError, zlib.error) as error:
        raise LogError(f"{path}: is not a complete gzip file ({error}); compress it again") from None
    except ValueError as error:
        raise LogError(f"{path}: {error}") from None


def _read_table(path: Path, content: bytes, max_bytes: int) -> Table:
    heading = _parse_heading(path, _open_text(content, max_bytes))
    names = heading.names
    lines = lambda: itertools.islice(_open_text(content, max_bytes), heading.lines, None)
    table, refused = _parse_numbers(lines(), heading.separator, len(names)), {}
    if table is None:
        table, refused = _parse_cells(path, lines(), heading)
    if not len(table):
        raise LogError(f"{path}: has no rows below the header; give a log with samples")
    columns = {name: table[:, k] for k, name in enumerate(names) if name and name not in refused}
    return Table(str(path), columns, heading.units, refused, heading.lines + 1)


def _open_text(content: bytes, max_bytes: int) -> io.TextIOWrapper:
    """The lines of the file with their ends. Compressed content is decompressed while the lines are read."""
    if content.startswith(_GZIP):
        file = _BoundedFile(gzip.GzipFile(fileobj=io.BytesIO(content)), Budget(max_bytes))
        return io.TextIOWrapper(io.BufferedReader(file), "utf-8-sig", newline="")
    return io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline="")


def _parse_heading(path: Path, lines: Iterator[str]) -> _Heading:
    comment, units = "", {}
    for k, line in enumerate(lines):
        if not line.strip():
            continue
        if line.lstrip().startswith("#"):
            comment = line.lstrip()[1:].strip()
            units = units or parse_units(comment)
            continue
        separator = next((s for s in (",", ";", "\t") if s in line), None)
        cells, count = _split_heading(line, lines, separator)
        if not all(_is_number(cell) for cell in cells):
            return _Heading(_check_unique(path, cells), k + count, units, separator)
        above = _split_cells(comment, separator) if comment else []
        if len(above) == len(cells) and not any(_is_number(cell) for cell in above):
            return _Heading(_check_unique(path, above), k, units, separator)
        return _Heading([f"column {i + 1}" for i in range(len(cells))], k, units, separator)
    raise LogError(f"{path}: contains no table; give a log with a header line and rows of numbers")


def _check_unique(path: Path, names: list[str]) -> list[str]:
    twice = sorted(name for name, count in Counter(names).items() if name and count > 1)
    if twice:
        raise LogError(
            f"{path}: has several columns named {format_names(twice)}; rename them, since column names must be unique"
        )
    return names


def _split_heading(line: str, following: Iterator[str], separator: str | None) -> tuple[list[str], int]:
    """Column names and the number of their lines: quoted names may contain ends of lines."""
    if separator is None:
        return line.split(), 1
    reader = csv.reader(itertools.chain([line], following), delimiter=separator)
    return [cell.strip() for cell in next(reader)], reader.line_num


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


def _parse_numbers(lines: Iterable[str], separator: str | None, count: int) -> np.ndarray | None:
    """The table if every cell is a number, otherwise None."""
    rows = (line for line in lines if line.strip() and not line.lstrip().startswith("#"))
    first = next(rows, None)
    if first is None:
        return np.zeros((0, count))
    try:
        table = np.loadtxt(itertools.chain([first], rows), delimiter=separator, ndmin=2, comments="#")
    except ExpansionError:
        raise
    except ValueError:
        return None
    return table if table.shape[1] == count else None


def _parse_cells(path: Path, lines: Iterable[str], heading: _Heading) -> tuple[np.ndarray, dict[str, str]]:
    """The table cell by cell, and for each column with text the location of its first such cell."""
    names, numbers, refused = heading.names, array("d"), {}
    for number, line in enumerate(lines, heading.lines + 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = _split_cells(line, heading.separator)
        if len(cells) == len(names) + 1 and not cells[-1]:
            cells.pop()  # a separator at the end of each line
        if len(cells) != len(names):
            raise LogError(
                f"{path}, line {number}: has {len(cells)} cells for {len(names)} columns; remove the line if the "
                "log was truncated there"
            )
        numbers.extend(_parse_number(cell, name, number, refused) for cell, name in zip(cells, names, strict=True))
    return np.array(numbers).reshape(-1, len(names)), refused


def _parse_number(cell: str, name: str, line: int, refused: dict[str, str]) -> float:
    try:
        return float(cell) if cell else np.nan
    except ValueError:
        remedy = "use a point as decimal separator" if "," in cell else "write a number"
        text = cell if len(cell) <= 80 else f"{cell[:80]}..."
        refused.setdefault(name, f"line {line} contains {text!r}; {remedy}, or leave the cell empty")
        return np.nan
