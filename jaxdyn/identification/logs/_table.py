"""Tables of named columns, and the error for invalid logs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    n = max(set(lengths), key=lengths.count)
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
        if x.ndim == 1 or x.shape[1] == 1:
            columns[name] = x.reshape(n).astype(float)
        else:
            columns |= {f"{name}[{k}]": x[:, k].astype(float) for k in range(x.shape[1])}
    return columns
