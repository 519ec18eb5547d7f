"""From files to logs that a fit can use: even steps, filtered, differentiated, without gaps, rest and saturation."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.identification._log import Log
from jaxdyn.identification._log_mapping import Columns, Recording, map_columns
from jaxdyn.identification._prepare_delay import effort_delays
from jaxdyn.identification._prepare_options import Preparation
from jaxdyn.identification._prepare_report import Interval, PreparationReport, RunReport
from jaxdyn.identification._prepare_signals import bandwidth, filtered, interpolate, repeated_rows, stretches
from jaxdyn.identification._prepare_trim import check_velocities, kept_rows, velocity_note
from jaxdyn.identification._read import read_tables
from jaxdyn.identification._read_table import LogError, Table, listed
from jaxdyn.joints import has_vector_rate
from jaxdyn.model import Model
from jaxdyn.simulation import velocity_names

#: a run: a file or a folder of one, several side by side, or tables that are read already
Run = Any
_FEWEST = 8


class _Part(NamedTuple):
    """Columns of one table with the repeats dropped."""

    t: np.ndarray
    columns: dict[tuple[str, int], np.ndarray]
    repeated: int


class _Raw(NamedTuple):
    """One run before resampling."""

    recording: Recording
    parts: list[_Part]
    #: stretches that all parts cover without gaps, s
    spans: list[tuple[float, float]]
    gaps: list[Interval]
    #: of the even steps that are filtered, Hz; of these rows one in `every` is kept
    rate: float
    every: int
    steps: tuple[float, float, float]
    notes: list[str]


class _Piece(NamedTuple):
    """Even samples of one stretch, not yet filtered."""

    t: np.ndarray
    x: dict[str, np.ndarray]


def prepare(
    runs: Sequence[Run],
    model: Model,
    columns: Columns | None = None,
    preparation: Preparation | None = None,
    *,
    progress: Callable[[str], Any] = lambda doing: None,
) -> tuple[list[Log], PreparationReport]:
    """Logs of a robot's motion and efforts out of files, and a report of all that was done to them.

    Each of `runs` is a file, or a tuple of files of one run side by side, joined on their times (`Table`s stand for
    files that were read already). `columns` says which column is what, by default as jaxdyn and ROS write them.
    In this order: repeated samples are dropped; the run is cut at gaps; every column is interpolated to even steps,
    efforts earlier by their delay; all columns pass one low-pass without phase; velocities and accelerations are
    derivatives of the filtered positions; ends, resting and saturated parts are left out. One log for each stretch
    that remains, called after its file. `progress` is called with a word on what begins.
    """
    _check_model(model)
    options = Preparation() if preparation is None else preparation
    raws = []
    for run in runs:
        files, name = _files(run)
        progress(f"reading {name}")
        tables = [table for file in files for table in ([file] if isinstance(file, Table) else read_tables(file))]
        raws.append(_raw(map_columns(tables, model, columns, name), model, options))
    if not raws:
        raise LogError("no log was given; name at least one file")
    raws = _distinct(raws)
    low_pass = _cutoff(raws, model, options)
    delays = _delays(options, model)
    if delays is None:
        progress("delay of efforts")
        logs = [log for raw in raws for log in _prepared(raw, model, options, low_pass, np.zeros(model.nv))[0]]
        delays, at_bound = effort_delays(model, logs, options.longest_delay)
        raws = [raw._replace(notes=[*raw.notes, *_bound_notes(model, options, at_bound)]) for raw in raws]
    done = []
    for raw in raws:
        progress(f"preparing {raw.recording.name}")
        done.append(_prepared(raw, model, options, low_pass, delays))
    logs = [log for some, _ in done for log in some]
    return logs, PreparationReport(tuple(report for _, report in done))


def _check_model(model: Model):
    views = [model.joint(name) for name in model.joint_names]
    names = [x.name for x in views if not has_vector_rate(x.joint)]
    if names:
        raise ModelError(
            f"logs are prepared for coordinates whose rate is the velocity, which those of {listed(names)} are not; "
            "hold a floating base by jaxdyn.lock_joints, or make a Log of arrays of your own"
        )


def _files(run: Run) -> tuple[list[Any], str]:
    files = [run] if isinstance(run, str | os.PathLike | Table) else list(run)
    first = files[0].name if isinstance(files[0], Table) else os.fspath(files[0])
    return files, Path(first).name


def _distinct(raws: list[_Raw]) -> list[_Raw]:
    """Runs with names of their own, by number where files in several folders have one."""
    names = [raw.recording.name for raw in raws]
    return [
        raw._replace(recording=raw.recording._replace(name=f"{name} ({k + 1})")) if names.count(name) > 1 else raw
        for k, (raw, name) in enumerate(zip(raws, names, strict=True))
    ]


def _delays(options: Preparation, model: Model) -> np.ndarray | None:
    given = options.effort_delay
    names = [name for name, _ in velocity_names(model)]
    if given is None:
        return None
    if isinstance(given, Mapping):
        unknown = given.keys() - set(names)
        if unknown:
            raise ModelError(f"effort_delay names {listed(sorted(unknown))}; this model has {listed(names)}")
        return np.array([float(given.get(name, 0.0)) for name in names])
    return np.full(model.nv, float(given))


def _bound_notes(model: Model, options: Preparation, at_bound: np.ndarray) -> list[str]:
    names = [name for (name, _), found in zip(velocity_names(model), at_bound, strict=True) if found]
    return [
        f"effort of {name}: the best delay is at the bound of the search, {options.longest_delay:g} s either way, and "
        "none was taken; raise longest_delay, or look whether its clock is another"
        for name in names
    ]


def _raw(recording: Recording, model: Model, options: Preparation) -> _Raw:
    """Repeats dropped, gaps found, and the rate that suits the positions."""
    notes: list[str] = []
    steps = np.diff(next(p.t for p in recording.parts if any(key[0] == "q" for key in p.columns)))
    usual = float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
    if usual <= 0:
        raise LogError(f"{recording.name}: all of its rows have one time; name the column that holds the time")
    longest = options.longest_gap or 10 * usual
    parts = []
    start = min(part.t[0] for part in recording.parts)
    offset = start if abs(start) > 1e6 else 0.0
    if offset:
        notes.append(f"time is counted from {offset:.6f} s")
    for part in recording.parts:
        same = repeated_rows(part.t, list(part.columns.values()), longest)
        kept = {key: x[~same] for key, x in part.columns.items()}
        parts.append(_Part(part.t[~same] - offset, _unwrapped(kept, model, notes), int(same.sum())))
    q_part = next(p for p in parts if any(key[0] == "q" for key in p.columns))
    steps = np.diff(q_part.t)
    source = 1 / float(np.median(steps))
    # a rate below the source's is reached after the filter, so that what is above half of it does not fold back
    every = 1 if options.rate is None else max(1, int(np.ceil(source / options.rate * (1 - 1e-6))))
    rate = source if options.rate is None else options.rate * every
    spans, gaps = _spans(parts, options, longest)
    if not spans:
        raise LogError(
            f"{recording.name}: positions and efforts have no time in common; check the columns of time and their units"
        )
    sizes = (float(steps.min()), float(np.median(steps)), float(steps.max()))
    return _Raw(recording, parts, spans, gaps, float(rate), every, sizes, notes)


def _unwrapped(columns, model: Model, notes: list[str]):
    """Angles without jumps of a whole turn."""
    units = [unit for _, unit in velocity_names(model)]
    for (quantity, k), x in columns.items():
        if quantity == "q" and units[k] == "rad/s" and (np.abs(np.diff(x)) > np.pi).any():
            columns[quantity, k] = np.unwrap(x)
            notes.append(f"position of {velocity_names(model)[k][0]} jumps by whole turns, which were taken out")
    return columns


def _spans(parts: list[_Part], options: Preparation, longest: float):
    """What all parts cover, and the gaps in it."""
    low, high = max(part.t[0] for part in parts), min(part.t[-1] for part in parts)
    if options.window is not None:
        low, high = max(low, options.window[0]), min(high, options.window[1])
    gaps = []
    for part in parts:
        for (_, last), (first, _) in zip(stretches(part.t, longest)[:-1], stretches(part.t, longest)[1:], strict=True):
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


def _prepared(
    raw: _Raw, model: Model, options: Preparation, low_pass: tuple[float | None, str], delays: np.ndarray
) -> tuple[list[Log], RunReport]:
    """The logs of a run and its report."""
    name = raw.recording.name
    pieces = [_sampled(raw, span, model, delays) for span in raw.spans]
    cutoff, how = low_pass
    rows, checks, left_out = _used(model, pieces, (raw.rate, raw.every), cutoff, options)
    if not rows:
        parts = "; ".join(f"{x.start:.4g} to {x.stop:.4g} s {x.why}" for x in left_out[:5])
        raise LogError(f"{name}: nothing is left ({parts or 'only ends'}); relax the options of Preparation")
    titles = [name] if len(rows) == 1 else [f"{name}#{k + 1}" for k in range(len(rows))]
    logs = [Log(*x, name=title, channels=raw.recording.channels) for x, title in zip(rows, titles, strict=True)]
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
        notes=(*raw.notes, *(note for note in map(velocity_note, checks) if note)),
    )
    return logs, report


def _used(model: Model, pieces: list[_Piece], sampling: tuple[float, int], cutoff: float | None, options: Preparation):
    """Arrays of the stretches that are used, the check of velocities in the first, and what is left out."""
    rate, every = sampling
    edge = _edge(options, cutoff)
    shortest = 2 * edge if options.shortest is None else options.shortest
    rows, left_out, checks = [], [], ()
    short = lambda t: Interval(float(t[0]), float(t[-1]), f"shorter than {shortest:.4g} s")
    for piece in pieces:
        if len(piece.t) < _FEWEST or piece.t[-1] - piece.t[0] < shortest:
            left_out.append(short(piece.t))
            continue
        motion = _smooth(piece, 1 / rate, cutoff, options)
        checks = checks or check_velocities(model, piece, motion, 1 / rate, cutoff, options)
        keep, dropped = kept_rows(model, piece, motion, edge, options)
        left_out += dropped
        for first, last in keep:
            t = piece.t[first : last + 1]
            if len(t[::every]) < 2 or t[-1] - t[0] < shortest:
                left_out.append(short(t))
            else:
                kept = slice(first, last + 1, every)
                rows.append((piece.t[kept], *(motion[key][kept] for key in ("q", "v", "a", "effort"))))
    return rows, checks, left_out


def _edge(options: Preparation, cutoff: float | None) -> float:
    if options.edge is not None:
        return float(options.edge)
    return 0.0 if cutoff is None else 3 / cutoff  # what the ends do to the filter has decayed to a thousandth


def _sampled(raw: _Raw, span: tuple[float, float], model: Model, delays: np.ndarray) -> _Piece:
    """All columns at even steps."""
    count = int(np.floor((span[1] - span[0]) * raw.rate * (1 + 1e-12))) + 1
    t = span[0] + np.arange(count) / raw.rate
    quantities = {key[0] for part in raw.parts for key in part.columns} | {key[0] for key in raw.recording.constant}
    x = {quantity: np.zeros((count, model.nv)) for quantity in sorted(quantities)}
    for (quantity, k), value in raw.recording.constant.items():
        x[quantity][:, k] = value
    for part in raw.parts:
        groups: dict[float, list[tuple[str, int]]] = {}
        for key in part.columns:
            groups.setdefault(float(delays[key[1]]) if key[0] == "effort" else 0.0, []).append(key)
        for delay, keys in groups.items():
            rows = interpolate(part.t, np.stack([part.columns[key] for key in keys], axis=1), t + delay)
            for column, (quantity, k) in enumerate(keys):
                x[quantity][:, k] = rows[:, column]
    return _Piece(t, x)


def _cutoff(raws: list[_Raw], model: Model, options: Preparation) -> tuple[float | None, str]:
    """One cut-off for all runs, and how it was chosen."""
    if not options.low_pass:
        return None, "as asked for"
    rate = min(raw.rate / raw.every for raw in raws)
    if options.cutoff is not None:
        if not 0 < options.cutoff < rate / 2:
            raise ModelError(
                f"cutoff {options.cutoff:g} Hz is not between 0 and half the rate, {rate / 2:.6g} Hz; give a lower one"
            )
        return float(options.cutoff), "as asked for"
    pieces = [(raw.rate, _sampled(raw, span, model, np.zeros(model.nv))) for raw in raws for span in raw.spans]
    bands = [bandwidth(piece.x["q"], 1 / own) for own, piece in pieces if len(piece.t) >= _FEWEST]
    if not bands:
        raise LogError(f"{raws[0].recording.name}: no stretch without a gap has {_FEWEST} samples; raise longest_gap")
    how = (
        f"ten times the {max(bands):.4g} Hz below which 99.9 % of the motion's power lies, at most a fifth of the rate"
    )
    return min(10 * max(bands), rate / 5), how


def _smooth(piece: _Piece, dt: float, cutoff: float | None, options: Preparation) -> dict[str, np.ndarray]:
    """Positions, velocities, accelerations and efforts after the filter."""
    low = lambda x, derivative=0: filtered(x, dt, cutoff, options.order, derivative)
    q, effort = low(piece.x["q"]), low(piece.x["effort"])
    if options.differentiate or "v" not in piece.x:
        v, a = low(piece.x["q"], 1), low(piece.x["q"], 2)
    else:
        v, a = low(piece.x["v"]), low(piece.x["v"], 1)
    if "a" in piece.x:
        a = low(piece.x["a"])
    return {"q": q, "v": v, "a": a, "effort": effort}
