"""Tables of named columns, and the error for invalid logs."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from jaxdyn._errors import FileFormatError


class LogError(FileFormatError):
    """An invalid log; the message names file, column, row and remedy."""


@dataclass(frozen=True)
class Table:
    """Named columns of equal length from one file or from one topic of a bag."""

    #: file, for a bag with the topic: `run.mcap:/joint_states`
    name: str
    #: float64 columns by name, each `(n,)`
    columns: Mapping[str, np.ndarray]
    #: units stated in the file, by column
    units: Mapping[str, str] = field(default_factory=dict)
    #: columns that are not numeric, each with the reason
    refused: Mapping[str, str] = field(default_factory=dict)
    #: line number of the first row in the file, for messages
    first_row: int = 1

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def row(self, k: int) -> str:
        """Location of row k in the file: its line number for text files, otherwise its index."""
        return f"line {self.first_row + k}" if self.first_row > 1 else f"row {k}"


def split_columns(arrays: Mapping[str, np.ndarray], path) -> dict[str, np.ndarray]:
    """Splits arrays with samples as rows into columns: `name`, or `name[0]`, `name[1]`, ... for a matrix.

    Scalars are ignored, since files often contain settings beside the samples. An array whose length differs from
    the most frequent length raises `LogError`.
    """
    lengths = [x.shape[0] for x in arrays.values() if x.ndim in (1, 2) and x.size > 1]
    if not lengths:
        return {}
    ((n, _),) = Counter(lengths).most_common(1)
    columns: dict[str, np.ndarray] = {}
    for name, x in arrays.items():
        if x.ndim == 2 and x.shape[0] == 1 and x.shape[1] == n:  # a row vector, as is common in MATLAB
            x = x[0]
        if x.ndim not in (1, 2) or x.size <= 1:
            continue
        if x.shape[0] != n and x.ndim == 2 and x.shape[1] == n:
            x = x.T
        if x.shape[0] != n:
            raise LogError(
                f"{path}: array {name!r} has shape {x.shape}, but most arrays have {n} rows; save arrays of "
                "different lengths to different files"
            )
        single = x.ndim == 1 or x.shape[1] == 1
        found = {name: x.reshape(n)} if single else {f"{name}[{k}]": x[:, k] for k in range(x.shape[1])}
        for label, column in found.items():
            if label in columns:
                raise LogError(f"{path}: two arrays give a column {label!r}; rename one of them")
            columns[label] = column.astype(float)
    return columns


def make_table(path: Path, columns: Mapping[str, np.ndarray], units=None, refused=None) -> Table:
    """The table of a file without lines; raises `LogError` if it has no columns."""
    if not columns:
        raise LogError(f"{path}: contains no numeric columns; save time, positions and efforts as arrays")
    return Table(str(path), columns, units or {}, refused or {}, 0)


def parse_units(text: str) -> dict[str, str]:
    """Units by column from the JSON text of `jaxdyn.simulation.to_csv`; empty for other text."""
    try:
        units = json.loads(text)["units"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return {str(k): str(v) for k, v in units.items()} if isinstance(units, dict) else {}
