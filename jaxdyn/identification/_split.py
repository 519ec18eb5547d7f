"""Logs for fitting and logs held out to judge the fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import pairwise

import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.identification._log import Log
from jaxdyn.identification._read_table import LogError, listed

_FEWEST = 2


@dataclass(frozen=True)
class Split:
    """Logs to fit, and logs that the fit does not see."""

    fit: list[Log]
    held_out: list[Log]

    def __post_init__(self):
        if not self.fit:
            raise LogError("the split leaves no log to fit; hold out less")


def hold_out_runs(logs: Sequence[Log], names: Sequence[str]) -> Split:
    """Holds out the logs whose names match one of `names`, with `*` and `?` as in a shell.

    A run that was cut into `run.csv#1`, `run.csv#2`, ... is meant by `run.csv`.
    """
    unused = [name for name in names if not any(_named(log, name) for log in logs)]
    if unused:
        raise ModelError(
            f"hold-out names {listed(unused)}, which no log is called; there are {listed(x.name for x in logs)}"
        )
    held = [any(_named(log, name) for name in names) for log in logs]
    return Split(
        [log for log, out in zip(logs, held, strict=True) if not out],
        [log for log, out in zip(logs, held, strict=True) if out],
    )


def _named(log: Log, pattern: str) -> bool:
    return fnmatch(log.name, pattern) or fnmatch(log.name.rpartition("#")[0] or log.name, pattern)


def hold_out_times(
    logs: Sequence[Log], blocks: Sequence[tuple[float | int, float | int]], guard: float | int = 0.0
) -> Split:
    """Holds out the times in `blocks`, pairs (from, to) in s, of every log.

    Rows nearer to the border than `guard` (s) are in neither, since filters carry signals across it.
    """
    for block in blocks:
        if not block[0] < block[1]:
            raise ModelError(f"the block {block} to hold out ends before it begins; give (from, to) in s")
    fit, held_out = [], []
    for log in logs:
        t = np.asarray(log.t)
        inside = np.zeros(len(t), bool)
        near = np.zeros(len(t), bool)
        for low, high in blocks:
            inside |= (t >= low) & (t < high)
            near |= (np.abs(t - low) < guard) | (np.abs(t - high) < guard)
        held_out += _pieces(log, inside & ~near)
        fit += _pieces(log, ~inside & ~near)
    if not held_out:
        spans = [f"{x.name}: {float(x.t[0]):.4g} to {float(x.t[-1]):.4g} s" for x in logs]
        raise ModelError(f"no log has samples in the blocks {list(blocks)} to hold out; {listed(spans)}")
    return Split(fit, held_out)


def hold_out_share(logs: Sequence[Log], share: float = 0.25, blocks: int = 4, guard: float | int = 0.1) -> Split:
    """Holds out a `share` of each log, spread over `blocks` of equal length, each at the end of a section of the log.

    Rows nearer to a border than `guard` (s) are in neither. Where a motion repeats, hold out by run instead: a block
    would be known from the other passes.
    """
    if not 0 < share < 1 or blocks < 1:
        raise ModelError(
            f"share is {share:g} and blocks {blocks}; expected a share between 0 and 1, and a block or more"
        )
    parts: list[Split] = []
    for log in logs:
        low, high = float(log.t[0]), float(log.t[-1])
        ends = low + (high - low) * np.arange(1, blocks + 1) / blocks
        length = (high - low) * share / blocks
        times = [(float(end - length), float(end)) for end in ends]
        times[-1] = (times[-1][0], high + 1.0)  # the last sample included
        parts.append(hold_out_times([log], times, guard))
    return Split([log for part in parts for log in part.fit], [log for part in parts for log in part.held_out])


def _pieces(log: Log, mask: np.ndarray) -> list[Log]:
    """Logs of the runs of rows in a mask; several are called after their first time."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    runs = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= _FEWEST]
    if runs == [(0, len(mask))]:
        return [log]
    return [log.rows(slice(int(a), int(b)), f"{log.name}@{float(log.t[int(a)]):.6g}s") for a, b in runs]


def fold_runs(logs: Sequence[Log]) -> list[Split]:
    """One split for each log, which is held out from the fit of the others; for `cross_validated`."""
    if len(logs) < 2:
        raise LogError("there is one log, and nothing would be left to fit; use fold_blocks, which cuts it")
    return [Split([x for x in logs if x is not log], [log]) for log in logs]


def fold_blocks(
    logs: Sequence[Log], count: int = 5, guard: float | int = 0.1, period: float | int | None = None
) -> list[Split]:
    """`count` splits, of which each holds out another block of the rows; for `cross_validated`.

    Blocks follow each other through the logs, with as many rows each. With a `period`, s, of a motion that repeats,
    they are blocks of its phase `t mod period`, so that what is held out is not known from another pass. Rows nearer
    than `guard` (s) to what is held out are in neither.
    """
    if count < 2:
        raise ModelError(f"{count} folds; expected two or more, so that each leaves rows to fit")
    times = [np.asarray(log.t) for log in logs]
    if period is None:
        ends = np.cumsum([0, *(len(t) for t in times)])
        keys = [start + np.arange(len(t)) for start, t in zip(ends, times, strict=False)]
    else:
        keys = [t % period for t in times]
    edges = np.quantile(np.concatenate(keys), np.linspace(0, 1, count + 1))
    edges[-1] = np.inf
    splits = []
    for low, high in pairwise(edges):
        fit, held_out = [], []
        for log, t, key in zip(logs, times, keys, strict=True):
            inside = (key >= low) & (key < high)
            fit += _pieces(log, ~inside & (_distance(t, t[inside]) >= guard))
            held_out += _pieces(log, inside)
        splits.append(Split(fit, held_out))
    return splits


def _distance(t: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """From each time to the nearest of ascending marks."""
    if not len(marks):
        return np.full(len(t), np.inf)
    after = np.searchsorted(marks, t)
    left, right = marks[np.maximum(after - 1, 0)], marks[np.minimum(after, len(marks) - 1)]
    return np.minimum(np.abs(t - left), np.abs(right - t))
