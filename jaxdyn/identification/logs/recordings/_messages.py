"""Messages of bags, their decoding, and their collection into tables."""

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxdyn._errors import format_names
from jaxdyn.identification.logs.recordings._cdr import JOINT_STATE, decode_joint_state
from jaxdyn.identification.logs.recordings._ros1 import decode_joint_state_ros1
from jaxdyn.identification.logs.tables import LogError, Table

_PARTS = ("position", "velocity", "effort")
#: maximal number of characters in the column names of a message, for each of its bytes
_MAX_NAMES = 64


class Message(NamedTuple):
    """A message of a bag, not yet decoded."""

    topic: str
    #: message type with its package, such as sensor_msgs/msg/JointState
    kind: str
    #: `cdr`, `ros1` or `json`
    encoding: str
    #: arrival time, ns
    time: int
    data: bytes


class _Row:
    """The numbers of one message by column; raises `ValueError` if a name occurs twice."""

    def __init__(self, size: int):
        self.columns: dict[str, float] = {}
        self.left = _MAX_NAMES * (size + 64)

    def add(self, name: str, value: float):
        if name in self.columns:
            raise ValueError(f"has two values of {name[:80]!r}; give them different names")
        self.left -= len(name)
        if self.left < 0:
            raise ValueError("has column names that are much longer than the message; use shorter keys")
        self.columns[name] = value


def collect_tables(path: Path, messages: Iterable[Message]) -> list[Table]:
    """Collects messages into tables: one for each topic and each set of columns, with rows in the order of arrival.

    Joint states have the columns `time` (their stamp, or the arrival time if the stamp is zero), `arrival`,
    `position.<joint>`, `velocity.<joint>` and `effort.<joint>`. JSON messages have one column per number, named by
    its keys: `a.b`, `a[0]`.
    """
    rows: dict[tuple[str, tuple[str, ...]], tuple[array, array]] = {}
    skipped: dict[str, str] = {}
    for k, message in enumerate(messages):
        try:
            found = _decode(message)
        except (ValueError, RecursionError) as error:
            raise LogError(f"{path}, topic {message.topic!r}, message {k}: {error}; record the bag again") from None
        if found is None:
            skipped[message.topic] = f"type {message.kind or 'unknown'}, encoding {message.encoding or 'unknown'}"
            continue
        times, cells = rows.setdefault((message.topic, tuple(found)), (array("Q"), array("d")))
        times.append(message.time)
        cells.extend(found.values())
    if not rows:
        raise LogError(
            f"{path}: has no joint states ({JOINT_STATE} in cdr or ros1 encoding, or json); its topics are "
            f"{format_names(f'{topic}: {kind}' for topic, kind in skipped.items())}; convert it to CSV"
        )
    return [_make_table(f"{path}:{topic}", names, *rows.pop((topic, names))) for topic, names in list(rows)]


def _make_table(name: str, names: Sequence[str], times: array, cells: array) -> Table:
    order = np.argsort(np.frombuffer(times, np.uint64), kind="stable")
    numbers = np.frombuffer(cells, float).reshape(len(times), len(names))[order]
    return Table(name, dict(zip(names, numbers.T, strict=True)), first_row=0)


def _decode(message: Message) -> dict[str, float] | None:
    """Columns of one message, or None if its type is not supported."""
    if not 0 <= message.time < 2**64:
        raise ValueError(f"has the arrival time {message.time} ns; expected nanoseconds since an epoch")
    arrival = message.time * 1e-9
    row = _Row(len(message.data))
    decode = {"cdr": decode_joint_state, "ros1": decode_joint_state_ros1}.get(message.encoding)
    if message.encoding == "json":
        _add_json(row, json.loads(message.data, object_pairs_hook=_unique_keys), arrival)
    elif decode is not None and message.kind.replace("/msg/", "/") == JOINT_STATE.replace("/msg/", "/"):
        state = decode(message.data)
        values = {part: getattr(state, part) for part in _PARTS}
        _add_joint_state(row, state.stamp or arrival, arrival, state.names, values)
    else:
        return None
    return row.columns


def _add_joint_state(row: _Row, stamp: float, arrival: float, names: Sequence[str], values: Mapping[str, Sequence]):
    row.add("time", stamp)
    row.add("arrival", arrival)
    for part, numbers in values.items():
        if len(numbers) not in (0, len(names)):
            raise ValueError(f"has {len(numbers)} values of {part} for {len(names)} names")
        for name, x in zip(names, numbers, strict=False):
            row.add(f"{part}.{name}", _as_number(x, part))


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key, value in pairs:
        if key in content:
            raise ValueError(f"has two values of {key[:80]!r}; give them different names")
        content[key] = value
    return content


def _add_json(row: _Row, content: Any, arrival: float):
    names = content.get("name") if isinstance(content, dict) else None
    if isinstance(names, list) and set(_PARTS) & content.keys() and all(isinstance(name, str) for name in names):
        values = {part: content.get(part) or [] for part in _PARTS}
        for part, numbers in values.items():
            if not isinstance(numbers, list):
                raise ValueError(f"has a {type(numbers).__name__} for {part}, expected a list of numbers")
        _add_joint_state(row, _json_stamp(content) or arrival, arrival, names, values)
    else:
        row.add("arrival", arrival)
        _flatten_json("", content, row)


def _json_stamp(content: dict[str, Any]) -> float:
    """The stamp of a JSON joint state, s; 0 if it has none."""
    stamp: Any = content
    for key in ("header", "stamp"):
        stamp = stamp.get(key) or {}
        if not isinstance(stamp, dict):
            raise ValueError(f"has a {type(stamp).__name__} for {key}, expected an object")
    seconds, nanoseconds = stamp.get("sec", 0), stamp.get("nanosec", stamp.get("nsec", 0))
    return _as_number(seconds, "sec") + 1e-9 * _as_number(nanoseconds, "nanosec")


def _as_number(value: Any, name: str) -> float:
    if not isinstance(value, bool | int | float):
        raise ValueError(f"has a {type(value).__name__} for {name[:80]}, expected a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"has an integer for {name[:80]} that is beyond double precision") from None


def _flatten_json(prefix: str, value: Any, row: _Row):
    """Adds the numbers in `value` to the row, named by their keys: `a.b`, `a[0]`."""
    if isinstance(value, bool | int | float):
        row.add(prefix or "value", _as_number(value, prefix))
    elif isinstance(value, dict):
        for key, x in value.items():
            _flatten_json(f"{prefix}.{key}" if prefix else key, x, row)
    elif isinstance(value, list):
        for k, x in enumerate(value):
            _flatten_json(f"{prefix}[{k}]", x, row)
