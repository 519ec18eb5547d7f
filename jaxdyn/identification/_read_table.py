"""What readers of log files return, and the error that they raise."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from jaxdyn._errors import FileFormatError


class LogError(FileFormatError):
    """A log that cannot be used; the message names file, column, row and remedy."""


@dataclass(frozen=True)
class Table:
    """Columns of one length from one file or one topic of a bag."""

    #: the file, and for a bag the topic: `run.mcap:/joint_states`
    name: str
    #: float64 columns by name, each `(n,)`
    columns: Mapping[str, np.ndarray]
    #: units that the file states, by column
    units: Mapping[str, str] = field(default_factory=dict)
    #: why columns that the file has could not be read as numbers, by column
    refused: Mapping[str, str] = field(default_factory=dict)
    #: line of the first row in the file, for messages
    first_row: int = 1

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def row(self, k: int) -> str:
        """Row k as a reader of the file would count it."""
        return f"line {self.first_row + k}" if self.first_row > 1 else f"row {k}"


def listed(names, most: int = 12) -> str:
    """Names for a message, cut where they are many."""
    names = [repr(str(n)) for n in names]
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + rest


def columns_of(arrays: Mapping[str, np.ndarray], path) -> dict[str, np.ndarray]:
    """Arrays with rows as samples, cut into columns: `name`, or `name[0]`, `name[1]`, ... of an array of two axes.

    Single numbers are left out, since files often hold settings beside the samples. What has another length than
    most arrays is refused.
    """
    lengths = [x.shape[0] for x in arrays.values() if x.ndim in (1, 2) and x.size > 1]
    if not lengths:
        return {}
    n = max(set(lengths), key=lengths.count)
    columns: dict[str, np.ndarray] = {}
    for name, x in arrays.items():
        if x.ndim == 2 and x.shape[0] == 1 and x.shape[1] == n:  # a row vector, as MATLAB users have them
            x = x[0]
        if x.ndim not in (1, 2) or x.size <= 1:
            continue
        if x.shape[0] != n and x.ndim == 2 and x.shape[1] == n:
            x = x.T
        if x.shape[0] != n:
            raise LogError(
                f"{path}: array {name!r} has shape {x.shape}, but most have {n} rows; save arrays of one length "
                "to one file"
            )
        if x.ndim == 1 or x.shape[1] == 1:
            columns[name] = x.reshape(n).astype(float)
        else:
            columns |= {f"{name}[{k}]": x[:, k].astype(float) for k in range(x.shape[1])}
    return columns
