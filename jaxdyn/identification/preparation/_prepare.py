"""`prepare`: from log files to uniformly sampled, filtered and differentiated logs."""

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxdyn._errors import ModelError, format_names
from jaxdyn.identification.logs import Columns, Log, LogError, Recording, Table, map_columns, read_tables
from jaxdyn.identification.preparation._delays import estimate_effort_delays
from jaxdyn.identification.preparation._options import Preparation
from jaxdyn.identification.preparation._report import Interval, PreparationReport, RunReport
from jaxdyn.identification.preparation._signals import (
    Segment,
    bandwidth,
    filter_zero_phase,
    interpolate_cubic,
    is_repeated,
    split_at_gaps,
)
from jaxdyn.identification.preparation._trimming import check_velocities, describe_mismatch, select_rows
from jaxdyn.joints import has_vector_rate
from jaxdyn.model import Model
from jaxdyn.simulation import System, velocity_names
from jaxdyn.simulation.system import as_system

#: a run: a file, a folder, a table, or several of these recorded in parallel
Run = str | os.PathLike[str] | Table | Sequence[str | os.PathLike[str] | Table]
_MIN_SAMPLES = 8
#: greatest ratio of the sampling rate of the prepared logs to that of a file
_LARGEST_RATIO = 100


class _CleanPart(NamedTuple):
    """Columns of one table without repeated rows."""

    t: np.ndarray
    columns: dict[tuple[str, int], np.ndarray]
    repeated: int


class _CleanRun(NamedTuple):
    """One run before resampling."""

    recording: Recording
    parts: list[_CleanPart]
    #: time intervals that all parts cover without gaps, s
    spans: list[tuple[float, float]]
    gaps: list[Interval]
    #: sampling rate of the filter, Hz; one in `every` rows is kept
    rate: float
    every: int
    steps: tuple[float, float, float]
    notes: list[str]


def prepare(
    runs: Sequence[Run],
    system: Model | System,
    columns: Columns | None = None,
    preparation: Preparation | None = None,
    *,
    progress: Callable[[str], object] = lambda step: None,
) -> tuple[list[Log], PreparationReport]:
    """Prepares logs for identification: reads, resamples, filters, differentiates and trims them.

    The steps, in this order: remove repeated samples; split at gaps; interpolate all columns to uniform steps, with the
    delay of the efforts removed; apply one zero-phase low-pass filter to all columns; differentiate the filtered
    positions and measurements of actuators; remove ends, rest and saturated efforts.

    Arguments:

    * `runs`: one entry per run: a file, or a tuple of files recorded in parallel, which are merged by their times. A
      `Table` stands for a file that was already read.
    * `system`: the robot, or a `System` with its actuators; joints name the coordinates, and actuators their inputs and
      measurements. Each velocity must be the derivative of its coordinate.
    * `columns`: the mapping of columns to coordinates; default: the names that jaxdyn and ROS write.
    * `preparation`: options of all steps.
    * `progress`: called with a text at the begin of each step.

    Returns the logs, one for each remaining segment and named after its file, and a `PreparationReport`. Raises
    `LogError` for invalid files and `ModelError` for invalid options; the message names file, column, row and remedy.

    ```python
    import numpy as np
    import jaxdyn as jd
    from jaxdyn.identification import Preparation, Table, prepare

    robot = jd.robots.pendulum()
    joint = robot.joint_names[0]
    t = np.arange(0.0, 20.0, 0.01)
    run = Table("run", {"t": t, f"q.{joint}": np.sin(t), f"effort.{joint}": np.cos(t)})
    logs, report = prepare([run], robot, preparation=Preparation(cutoff=5.0))
    assert np.allclose(logs[0].v[:, 0], np.cos(logs[0].t), atol=1e-3)
    print(report)
    ```
    """
    system = as_system(system)
    model = system.model
    _check_model(model)
    options = Preparation() if preparation is None else preparation
    raws = []
    for run in runs:
        files, name = _list_files(run)
        progress(f"reading {name}")
        tables = [table for file in files for table in ([file] if isinstance(file, Table) else read_tables(file))]
        raws.append(_clean_run(map_columns(tables, system, columns, name), model, options))
    if not raws:
        raise LogError("no run was given; expected at least one file")
    raws = _number_equal_names(raws)
    low_pass = _choose_cutoff(raws, model, options)
    delays = _given_delays(options, model)
    if delays is None:
        progress("estimating the delay of the efforts")
        logs = [log for raw in raws for log in _prepare_run(raw, model, options, low_pass, np.zeros(model.nv))[0]]
        delays, at_bound = estimate_effort_delays(model, logs, options.longest_delay)
        raws = [raw._replace(notes=[*raw.notes, *_describe_bounded_delays(model, options, at_bound)]) for raw in raws]
    done = []
    for raw in raws:
        progress(f"preparing {raw.recording.name}")
        done.append(_prepare_run(raw, model, options, low_pass, delays))
    logs = [log for some, _ in done for log in some]
    return logs, PreparationReport(tuple(report for _, report in done))


def _check_model(model: Model):
    views = [model.joint(name) for name in model.joint_names]
    names = [x.name for x in views if not has_vector_rate(x.joint)]
    if names:
        raise ModelError(
            f"the velocities of {format_names(names)} are not the derivatives of their coordinates, as `prepare` "
            "requires; lock a floating base with jaxdyn.lock_joints, or construct a Log from arrays"
        )


def _list_files(run: Run) -> tuple[list, str]:
    files = [run] if isinstance(run, str | os.PathLike | Table) else list(run)
    first = files[0].name if isinstance(files[0], Table) else os.fspath(files[0])
    return files, Path(first).name


def _number_equal_names(raws: list[_CleanRun]) -> list[_CleanRun]:
    """Runs with unique names: files of equal name in several folders are numbered."""
    names = [raw.recording.name for raw in raws]
    return [
        raw._replace(recording=raw.recording._replace(name=f"{name} ({k + 1})")) if names.count(name) > 1 else raw
        for k, (raw, name) in enumerate(zip(raws, names, strict=True))
    ]


def _given_delays(options: Preparation, model: Model) -> np.ndarray | None:
    given = options.effort_delay
    names = [name for name, _ in velocity_names(model)]
    if given is None:
        return None
    if isinstance(given, Mapping):
        unknown = given.keys() - set(names)
        if unknown:
            raise ModelError(
                f"effort_delay: this model has no joint {format_names(sorted(unknown))}; it has {format_names(names)}"
            )
        return np.array([float(given.get(name, 0.0)) for name in names])
    return np.full(model.nv, float(given))


def _describe_bounded_delays(model: Model, options: Preparation, at_bound: np.ndarray) -> list[str]:
    names = [name for (name, _), found in zip(velocity_names(model), at_bound, strict=True) if found]
    return [
        f"effort of {name}: the best delay is at the bound of the search, {options.longest_delay:g} s, and was not "
        "applied; raise longest_delay, or check whether efforts and positions have the same clock"
        for name in names
    ]


def _clean_run(recording: Recording, model: Model, options: Preparation) -> _CleanRun:
    """Removes repeated rows, finds gaps, and chooses the sampling rate from the time steps of the positions."""
    notes: list[str] = []
    steps = np.diff(next(p.t for p in recording.parts if any(key[0] == "q" for key in p.columns)))
    usual = float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
    if usual <= 0:
        raise LogError(f"{recording.name}: all rows have the same time; set Columns(time=...)")
    longest = options.longest_gap or 10 * usual
    parts = []
    start = min(part.t[0] for part in recording.parts)
    offset = start if abs(start) > 1e6 else 0.0
    if offset:
        notes.append(f"time is relative to {offset:.6f} s")
    for part in recording.parts:
        repeated = is_repeated(part.t, list(part.columns.values()), longest)
        unique = {key: x[~repeated] for key, x in part.columns.items()}
        parts.append(_CleanPart(part.t[~repeated] - offset, _unwrap_angles(unique, model, notes), int(repeated.sum())))
    q_part = next(p for p in parts if any(key[0] == "q" for key in p.columns))
    steps = np.diff(q_part.t)
    source = 1 / float(np.median(steps))
    # a lower rate is reached by decimation after the filter, which prevents aliasing
    if options.rate is not None and options.rate > _LARGEST_RATIO * source:
        raise ModelError(
            f"rate is {options.rate:g} Hz, and {recording.name} has {source:.4g} samples per second; expected at most "
            f"{_LARGEST_RATIO} times as many, since interpolated samples add no information"
        )
    every = 1 if options.rate is None else max(1, int(np.ceil(source / options.rate * (1 - 1e-6))))
    rate = source if options.rate is None else options.rate * every
    spans, gaps = _find_spans(parts, options, longest)
    if not spans:
        raise LogError(
            f"{recording.name}: positions and efforts do not overlap in time; check the time columns and their units"
        )
    sizes = (float(steps.min()), float(np.median(steps)), float(steps.max()))
    return _CleanRun(recording, parts, spans, gaps, float(rate), every, sizes, notes)


def _unwrap_angles(columns, model: Model, notes: list[str]):
    """Removes jumps of a full turn from angles."""
    units = [unit for _, unit in velocity_names(model)]
    for (quantity, k), x in columns.items():
        if quantity == "q" and units[k] == "rad/s" and (np.abs(np.diff(x)) > np.pi).any():
            columns[quantity, k] = np.unwrap(x)
            notes.append(f"position of {velocity_names(model)[k][0]} had jumps by full turns, which were removed")
    return columns


def _find_spans(parts: list[_CleanPart], options: Preparation, longest: float):
    """Time intervals that all parts cover, and the gaps between them."""
    low, high = max(part.t[0] for part in parts), min(part.t[-1] for part in parts)
    if options.window is not None:
        low, high = max(low, options.window[0]), min(high, options.window[1])
    gaps = []
    for part in parts:
        for (_, last), (first, _) in pairwise(split_at_gaps(part.t, longest)):
            gaps.append((float(part.t[last]), float(part.t[first])))
    spans, at, found = [], low, []
    for begin, end in sorted(gaps):
        if end <= low or begin >= high:
            continue
        if begin > at:
            spans.append((at, begin))
        at = max(at, end)
        found.append(Interval(begin, end, f"a gap of {end - begin:.4g} s"))
    if high > at:
        spans.append((at, high))
    return spans, found


def _prepare_run(
    raw: _CleanRun, model: Model, options: Preparation, low_pass: tuple[float | None, str], delays: np.ndarray
) -> tuple[list[Log], RunReport]:
    """The logs and the report of one run."""
    name = raw.recording.name
    pieces = [_resample(raw, span, delays) for span in raw.spans]
    cutoff, how = low_pass
    rows, checks, left_out = _filter_and_trim(model, pieces, (raw.rate, raw.every), cutoff, options)
    if not rows:
        parts = "; ".join(f"{x.start:.4g} to {x.stop:.4g} s {x.why}" for x in left_out[:5])
        raise LogError(
            f"{name}: no samples remain ({parts or 'only the ends of segments'}); relax the options of Preparation"
        )
    titles = [name] if len(rows) == 1 else [f"{name}#{k + 1}" for k in range(len(rows))]
    logs = [_make_log(x, title, raw.recording) for x, title in zip(rows, titles, strict=True)]
    joints = [joint for joint, _ in velocity_names(model)]
    report = RunReport(
        name=name,
        rows=max(len(part.t) + part.repeated for part in raw.parts),
        repeated=max(part.repeated for part in raw.parts),
        rate=raw.rate / raw.every,
        steps=raw.steps,
        cutoff=cutoff,
        cutoff_from=how,
        order=options.order,
        effort_delay={joint: float(d) for joint, d in zip(joints, delays, strict=True)},
        velocities=checks,
        left_out=tuple(sorted([*raw.gaps, *left_out], key=lambda x: x.start)),
        logs={log.name: log.num_samples for log in logs},
        notes=(*raw.notes, *(note for note in map(describe_mismatch, checks) if note)),
    )
    return logs, report


def _filter_and_trim(
    model: Model, pieces: list[Segment], sampling: tuple[float, int], cutoff: float | None, options: Preparation
):
    """Arrays of the remaining segments, the check of velocities in the first, and the removed intervals."""
    rate, every = sampling
    edge = _edge_length(options, cutoff)
    shortest = 2 * edge if options.shortest is None else options.shortest
    rows, left_out, checks = [], [], ()
    short = lambda t: Interval(float(t[0]), float(t[-1]), f"shorter than {shortest:.4g} s")
    for piece in pieces:
        if len(piece.t) < _MIN_SAMPLES or piece.t[-1] - piece.t[0] < shortest:
            left_out.append(short(piece.t))
            continue
        motion = _filter_segment(piece, 1 / rate, cutoff, options)
        checks = checks or check_velocities(model, piece, motion, 1 / rate, cutoff, options)
        keep, dropped = select_rows(model, piece, motion, edge, options)
        left_out += dropped
        for first, last in keep:
            t = piece.t[first : last + 1]
            if len(t[::every]) < 2 or t[-1] - t[0] < shortest:
                left_out.append(short(t))
            else:
                kept = slice(first, last + 1, every)
                rows.append({"t": piece.t[kept]} | {key: x[kept] for key, x in motion.items()})
    return rows, checks, left_out


def _make_log(columns: dict[str, np.ndarray], name: str, recording: Recording) -> Log:
    by_name = lambda x: None if x is None else dict(zip(recording.measured, x.T, strict=True))
    return Log(
        *(columns[key] for key in ("t", "q", "v", "a", "effort")),
        name=name,
        channels=recording.channels,
        inputs=columns.get("inputs"),
        measured=by_name(columns.get("measured")),
        measured_rate=by_name(columns.get("measured_rate")),
    )


def _edge_length(options: Preparation, cutoff: float | None) -> float:
    if options.edge is not None:
        return float(options.edge)
    return 0.0 if cutoff is None else 3 / cutoff  # transients of the filter have decayed to 0.1 %


def _resample(raw: _CleanRun, span: tuple[float, float], delays: np.ndarray) -> Segment:
    """All columns with uniform steps."""
    count = int(np.floor((span[1] - span[0]) * raw.rate * (1 + 1e-12))) + 1
    t = span[0] + np.arange(count) / raw.rate
    x = {quantity: np.zeros((count, size)) for quantity, size in raw.recording.sizes.items()}
    for (quantity, k), value in raw.recording.constant.items():
        x[quantity][:, k] = value
    for part in raw.parts:
        groups: dict[float, list[tuple[str, int]]] = {}
        for key in part.columns:
            groups.setdefault(float(delays[key[1]]) if key[0] == "effort" else 0.0, []).append(key)
        for delay, keys in groups.items():
            rows = interpolate_cubic(part.t, np.stack([part.columns[key] for key in keys], axis=1), t + delay)
            for column, (quantity, k) in enumerate(keys):
                x[quantity][:, k] = rows[:, column]
    return Segment(t, x)


def _choose_cutoff(raws: list[_CleanRun], model: Model, options: Preparation) -> tuple[float | None, str]:
    """The cut-off frequency for all runs, and the reason for its choice."""
    if not options.low_pass:
        return None, "given"
    rate = min(raw.rate / raw.every for raw in raws)
    if options.cutoff is not None:
        if not 0 < options.cutoff < rate / 2:
            raise ModelError(
                f"cutoff {options.cutoff:g} Hz is not between 0 and the Nyquist frequency, {rate / 2:.6g} Hz; choose a "
                "lower one"
            )
        return float(options.cutoff), "given"
    pieces = [(raw.rate, _resample(raw, span, np.zeros(model.nv))) for raw in raws for span in raw.spans]
    bands = [bandwidth(piece.x["q"], 1 / own) for own, piece in pieces if len(piece.t) >= _MIN_SAMPLES]
    if not bands:
        raise LogError(
            f"{raws[0].recording.name}: no segment without a gap has {_MIN_SAMPLES} samples; raise longest_gap"
        )
    how = (
        f"ten times the {max(bands):.4g} Hz below which 99.9 % of the motion's power lies, at most a fifth of "
        "the sampling rate"
    )
    return min(10 * max(bands), rate / 5), how


def _filter_segment(piece: Segment, dt: float, cutoff: float | None, options: Preparation) -> dict[str, np.ndarray]:
    """Filtered columns, with the derivatives of positions and measurements."""
    low = lambda x, derivative=0: filter_zero_phase(x, dt, cutoff, options.order, derivative)
    q, effort = low(piece.x["q"]), low(piece.x["effort"])
    if options.differentiate or "v" not in piece.x:
        v, a = low(piece.x["q"], 1), low(piece.x["q"], 2)
    else:
        v, a = low(piece.x["v"]), low(piece.x["v"], 1)
    if "a" in piece.x:
        a = low(piece.x["a"])
    motion = {"q": q, "v": v, "a": a, "effort": effort}
    motion |= {key: low(piece.x[key]) for key in ("inputs", "measured") if key in piece.x}
    return motion | ({"measured_rate": low(piece.x["measured"], 1)} if "measured" in piece.x else {})
