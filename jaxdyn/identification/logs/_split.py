"""Held-out data and folds of cross-validation."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import pairwise

import numpy as np

from jaxdyn._errors import ModelError, format_names
from jaxdyn.identification.logs._log import Log
from jaxdyn.identification.logs.tables import LogError

_MIN_ROWS = 2
# of the share that is to be held out, the part that may remain after the guard
_LEAST_HELD_OUT = 0.25


@dataclass(frozen=True)
class Split:
    """Logs for the fit, and held-out logs for its validation.

    Arguments:

    * `fit`: logs for the fit, at least one.
    * `held_out`: logs that the fit does not use.

    ```python
    import numpy as np
    from jaxdyn.identification import Log, Split

    t, x = np.linspace(0.0, 1.0, 101), np.zeros((101, 1))
    first, second = (Log(t, x, x, x, x, name) for name in ("monday", "tuesday"))
    split = Split(fit=[first], held_out=[second])
    ```
    """

    fit: list[Log]
    held_out: list[Log]

    def __post_init__(self):
        if not self.fit:
            raise LogError("the split leaves no data for the fit; hold out less")


def hold_out_runs(logs: Sequence[Log], names: Sequence[str]) -> Split:
    """Holds out whole runs by name.

    Arguments:

    * `logs`: all logs.
    * `names`: names of the held-out logs, with the wildcards `*` and `?`. The name `run.csv` also selects the segments
      `run.csv#1`, `run.csv#2`, ... of a run.

    Returns a `Split`. Raises `ModelError` for a name without a log and `LogError` if no log remains for the fit.

    ```python
    import numpy as np
    from jaxdyn.identification import Log, hold_out_runs

    t, x = np.linspace(0.0, 1.0, 101), np.zeros((101, 1))
    logs = [Log(t, x, x, x, x, name) for name in ("monday.csv", "tuesday.csv")]
    split = hold_out_runs(logs, ["tuesday*"])
    assert [log.name for log in split.held_out] == ["tuesday.csv"]
    ```
    """
    unused = [name for name in names if not any(_matches_name(log, name) for log in logs)]
    if unused:
        raise ModelError(
            f"no log is named {format_names(unused)}; expected names of logs to hold out among "
            f"{format_names(log.name for log in logs)}"
        )
    is_held_out = [any(_matches_name(log, name) for name in names) for log in logs]
    return Split(
        [log for log, out in zip(logs, is_held_out, strict=True) if not out],
        [log for log, out in zip(logs, is_held_out, strict=True) if out],
    )


def _matches_name(log: Log, pattern: str) -> bool:
    return fnmatch(log.name, pattern) or fnmatch(log.name.rpartition("#")[0] or log.name, pattern)


def hold_out_times(
    logs: Sequence[Log], blocks: Sequence[tuple[float | int, float | int]], guard: float | int = 0.0
) -> Split:
    """Holds out time intervals of every log.

    Arguments:

    * `logs`: all logs.
    * `blocks`: held-out intervals (from, to), s.
    * `guard`: rows closer than this to the border of a block (s) are in neither set, since a zero-phase filter couples
      the samples on both sides of the border.

    Returns a `Split`, with segments named `<log>@<first time>s`. Raises `ModelError` if no log has samples in `blocks`.

    ```python
    import numpy as np
    from jaxdyn.identification import Log, hold_out_times

    t, x = np.linspace(0.0, 10.0, 1001), np.zeros((1001, 1))
    split = hold_out_times([Log(t, x, x, x, x)], [(7.0, 9.0)], guard=0.1)
    assert len(split.fit) == 2
    assert len(split.held_out) == 1
    ```
    """
    for block in blocks:
        if not block[0] < block[1]:
            raise ModelError(f"the held-out block {block} ends before it begins; expected (from, to) in s")
    fit, held_out = [], []
    for log in logs:
        for pieces, found in zip((fit, held_out), _split_by_times(log, blocks, guard), strict=True):
            pieces += found
    if not held_out:
        spans = [f"{x.name}: {float(x.t[0]):.4g} to {float(x.t[-1]):.4g} s" for x in logs]
        raise ModelError(
            f"no log has samples in the held-out blocks {list(blocks)}; the logs cover {format_names(spans)}"
        )
    return Split(fit, held_out)


def hold_out_share(logs: Sequence[Log], share: float = 0.25, blocks: int = 4, guard: float | int = 0.1) -> Split:
    """Holds out a share of each log, in blocks of equal length at the ends of equal sections of the log.

    A log that is too short for its blocks, as trimming may leave, has fewer blocks; of logs that are too short for one
    block, the share is held out as whole logs. Of a periodic motion, hold out whole runs instead: each block repeats
    in the data of the fit.

    Arguments:

    * `logs`: all logs.
    * `share`: held-out share, between 0 and 1.
    * `blocks`: number of held-out blocks per log, at most.
    * `guard`: rows closer than this to the border of a block (s) are in neither set.

    Returns a `Split`. Raises `LogError` if the logs are too short for any block.

    ```python
    import numpy as np
    from jaxdyn.identification import Log, hold_out_share

    t, x = np.linspace(0.0, 10.0, 1001), np.zeros((1001, 1))
    split = hold_out_share([Log(t, x, x, x, x)], 0.25, blocks=4)
    assert len(split.held_out) == 4
    ```
    """
    if not 0 < share < 1 or blocks < 1:
        raise ModelError(
            f"share is {share:g} and blocks {blocks}; expected a share between 0 and 1, and at least one block"
        )
    longest_log = max(logs, key=lambda log: log.num_samples, default=None)
    if longest_log is not None and blocks > longest_log.num_samples:
        raise ModelError(
            f"blocks is {blocks}, and log {longest_log.name!r} has {longest_log.num_samples} samples; hold out fewer "
            "blocks"
        )
    fit: list[Log] = []
    held_out: list[Log] = []
    owed = 0.0  # time that is still to be held out, from logs that are too short to be divided
    for log in logs:
        split = _hold_out_blocks(log, share, blocks, guard)
        duration = float(log.t[-1] - log.t[0])
        owed += 0.0 if split else share * duration
        if split is None and owed >= duration / 2:
            held_out.append(log)
            owed -= duration
            continue
        fit += split.fit if split else [log]
        held_out += split.held_out if split else []
    if not held_out or not fit:
        longest = max((float(log.t[-1] - log.t[0]) for log in logs), default=0.0)
        raise LogError(
            f"the logs are too short to hold out a share of {share:g}: the longest lasts {longest:.3g} s and the guard "
            f"{guard:g} s; give longer logs, a shorter guard, or hold out whole runs by hold_out_runs"
        )
    return Split(fit, held_out)


def _hold_out_blocks(log: Log, share: float, blocks: int, guard: float | int) -> Split | None:
    """Holds out `blocks` blocks of a log, or fewer where the guard takes most of them; None if it takes any block."""
    low, high = float(log.t[0]), float(log.t[-1])
    if guard > 0:  # a block is longer than the guard, which takes one end of it at least
        blocks = min(blocks, max(1, int((high - low) * share / guard)))
    for count in range(blocks, 0, -1):
        ends = low + (high - low) * np.arange(1, count + 1) / count
        length = (high - low) * share / count
        times = [(float(end - length), float(end)) for end in ends]
        times[-1] = (times[-1][0], high + guard + 1.0)  # the last sample included
        fit, held_out = _split_by_times(log, times, guard)
        if fit and sum(x.num_samples for x in held_out) >= _LEAST_HELD_OUT * share * log.num_samples:
            return Split(fit, held_out)
    return None


def _split_by_times(log: Log, blocks, guard: float | int) -> tuple[list[Log], list[Log]]:
    """Segments of a log for the fit, and held-out segments."""
    t = np.asarray(log.t)
    inside = np.zeros(len(t), bool)
    near = np.zeros(len(t), bool)
    for low, high in blocks:
        inside |= (t >= low) & (t < high)
        near |= (np.abs(t - low) < guard) | (np.abs(t - high) < guard)
    return _split_by_mask(log, ~inside & ~near), _split_by_mask(log, inside & ~near)


def _split_by_mask(log: Log, mask: np.ndarray) -> list[Log]:
    """One log for each run of true entries of `mask`; segments are named after their first time."""
    runs = find_runs(mask, _MIN_ROWS)
    if runs == [(0, len(mask) - 1)]:
        return [log]
    return [log.rows(slice(a, b + 1), f"{log.name}@{float(log.t[a]):.6g}s") for a, b in runs]


def find_runs(mask: np.ndarray, least: int = 1) -> list[tuple[int, int]]:
    """First and last index (inclusive) of each run of at least `least` true entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= least]


def fold_runs(logs: Sequence[Log]) -> list[Split]:
    """Leave-one-run-out folds for `cross_validate`: each fold holds out one log.

    Arguments:

    * `logs`: two or more logs.

    Returns one `Split` for each log.

    ```python
    import numpy as np
    from jaxdyn.identification import Log, fold_runs

    t, x = np.linspace(0.0, 1.0, 101), np.zeros((101, 1))
    folds = fold_runs([Log(t, x, x, x, x, name) for name in ("a", "b", "c")])
    assert len(folds) == 3
    assert len(folds[0].fit) == 2
    ```
    """
    if len(logs) < 2:
        raise LogError(f"{len(logs)} log; leave-one-run-out folds need two or more: use fold_blocks to split one log")
    return [Split([x for x in logs if x is not log], [log]) for log in logs]


def fold_blocks(
    logs: Sequence[Log], count: int = 5, guard: float | int = 0.1, period: float | int | None = None
) -> list[Split]:
    """Folds of contiguous blocks for `cross_validate`.

    Arguments:

    * `logs`: all logs.
    * `count`: number of folds. Their held-out blocks partition the rows of all logs into equal parts.
    * `guard`: rows closer than this to a held-out row (s) are in neither set.
    * `period`: period of a periodic motion, s. The blocks are then intervals of the phase `t mod period`, so that no
      held-out part of the motion appears in the data of the fit.

    Returns `count` `Split`s.

    ```python
    import numpy as np
    from jaxdyn.identification import Log, fold_blocks

    t, x = np.linspace(0.0, 10.0, 1001), np.zeros((1001, 1))
    folds = fold_blocks([Log(t, x, x, x, x)], 5)
    assert len(folds) == 5
    assert sum(fold.held_out[0].num_samples for fold in folds) == 1001
    ```
    """
    if count < 2:
        raise ModelError(f"count is {count}; expected two or more folds")
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
            fit += _split_by_mask(log, ~inside & (_distance_to_nearest(t, t[inside]) >= guard))
            held_out += _split_by_mask(log, inside)
        splits.append(Split(fit, held_out))
    return splits


def _distance_to_nearest(t: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """Distance from each time to the nearest of the ascending `marks`."""
    if not len(marks):
        return np.full(len(t), np.inf)
    after = np.searchsorted(marks, t)
    left, right = marks[np.maximum(after - 1, 0)], marks[np.minimum(after, len(marks) - 1)]
    return np.minimum(np.abs(t - left), np.abs(right - t))
