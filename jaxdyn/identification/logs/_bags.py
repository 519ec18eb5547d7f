"""Readers of bags: MCAP files, SQLite files of rosbag2, and ROS 1 bags."""

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxdyn._errors import FileAccessError, JaxdynError, format_names
from jaxdyn.identification.logs._cdr import JOINT_STATE, decode_joint_state
from jaxdyn.identification.logs._ros1 import decode_joint_state_ros1, iterate_messages
from jaxdyn.identification.logs._table import LogError, Table
from jaxdyn.io.files import read_bytes

_PARTS = ("position", "velocity", "effort")


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


def read_mcap(path: Path, max_bytes: int) -> list[Table]:
    """One table per MCAP topic with joint states (CDR) or JSON messages; needs the extra `logs`."""
    try:
        from mcap.exceptions import McapError  # pyright: ignore[reportMissingImports]
        from mcap.reader import make_reader  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise JaxdynError('MCAP files need the package mcap: pip install "jaxdyn[logs]"') from error

    def messages(file: Any) -> Iterator[Message]:
        for schema, channel, message in make_reader(file).iter_messages():
            kind = schema.name if schema else ""
            yield Message(channel.topic, kind, channel.message_encoding, message.log_time, message.data)

    _check_size(path, max_bytes)
    try:
        with path.open("rb") as file:
            return collect_tables(path, messages(file))
    except OSError as error:
        raise FileAccessError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except (McapError, EOFError, IndexError, RuntimeError) as error:
        raise LogError(f"{path}: is not a complete MCAP file ({error}); recover it with `mcap recover`") from None


def read_sqlite(path: Path, max_bytes: int) -> list[Table]:
    """One table per topic with joint states of a rosbag2 `.db3` file."""
    _check_size(path, max_bytes)
    query = (
        "SELECT topics.name, topics.type, topics.serialization_format, messages.timestamp, messages.data "
        "FROM messages JOIN topics ON messages.topic_id = topics.id ORDER BY messages.timestamp"
    )
    try:
        with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
            return collect_tables(path, (Message(*row) for row in base.execute(query)))
    except sqlite3.Error as error:
        raise LogError(f"{path}: is not a rosbag2 database ({error}); give an uncompressed .db3 file") from None


def read_ros1(path: Path, max_bytes: int) -> list[Table]:
    """One table per topic with joint states of a ROS 1 `.bag`; lz4 compression needs the extra `logs`."""
    content = read_bytes(path, max_bytes)

    def messages() -> Iterator[Message]:
        try:
            for topic, kind, time, data in iterate_messages(content, max_bytes):
                yield Message(topic, kind, "ros1", time, data)
        except (ValueError, KeyError) as error:
            raise LogError(f"{path}: is not a complete ROS 1 bag ({error}); repair it with `rosbag reindex`") from None

    return collect_tables(path, messages())


def _check_size(path: Path, max_bytes: int):
    try:
        size = path.stat().st_size
    except (OSError, ValueError) as error:
        raise FileAccessError(f"{path}: cannot be read ({error}); check the path") from None
    if size > max_bytes:
        raise LogError(f"{path}: is larger than the {max_bytes} bytes allowed; if you trust the file, raise the limit")


def collect_tables(path: Path, messages: Iterable[Message]) -> list[Table]:
    """Collects messages into tables: one for each topic and each set of columns.

    Joint states have the columns `time` (their stamp, or the arrival time if the stamp is zero), `arrival`,
    `position.<joint>`, `velocity.<joint>` and `effort.<joint>`. JSON messages have one column per number, named by
    its keys: `a.b`, `a[0]`.
    """
    rows: dict[tuple[str, tuple[str, ...]], list[list[float]]] = {}
    skipped: dict[str, str] = {}
    for k, message in enumerate(messages):
        try:
            found = _decode(message)
        except (ValueError, UnicodeDecodeError, RecursionError) as error:
            raise LogError(f"{path}, topic {message.topic!r}, message {k}: {error}; record the bag again") from None
        if found is None:
            skipped[message.topic] = f"type {message.kind or 'unknown'}, encoding {message.encoding or 'unknown'}"
            continue
        rows.setdefault((message.topic, tuple(found)), []).append(list(found.values()))
    if not rows:
        raise LogError(
            f"{path}: has no joint states ({JOINT_STATE} in cdr or ros1 encoding, or json); its topics are "
            f"{format_names(f'{topic}: {kind}' for topic, kind in skipped.items())}; convert it to CSV"
        )
    return [
        Table(f"{path}:{topic}", dict(zip(names, np.array(cells, float).T, strict=True)), first_row=0)
        for (topic, names), cells in rows.items()
    ]


def _decode(message: Message) -> dict[str, float] | None:
    """Columns of one message, or None if its type is not supported."""
    arrival = message.time * 1e-9
    if message.encoding == "json":
        content = json.loads(message.data)
        if _is_joint_state(content):
            values = {part: content.get(part) or () for part in _PARTS}
            return _joint_state_columns(_json_stamp(content, arrival), arrival, content["name"], values)
        numbers: dict[str, float] = {}
        _flatten_json("", content, numbers)
        return {"arrival": arrival, **numbers}
    decode = {"cdr": decode_joint_state, "ros1": decode_joint_state_ros1}.get(message.encoding)
    if decode is not None and message.kind.replace("/msg/", "/") == JOINT_STATE.replace("/msg/", "/"):
        state = decode(message.data)
        values = {part: getattr(state, part) for part in _PARTS}
        return _joint_state_columns(state.stamp or arrival, arrival, state.names, values)
    return None


def _joint_state_columns(stamp: float, arrival: float, names, values) -> dict[str, float]:
    columns = {"time": stamp, "arrival": arrival}
    for part, numbers in values.items():
        if len(numbers) not in (0, len(names)):
            raise ValueError(f"has {len(numbers)} values of {part} for {len(names)} names")
        columns |= {f"{part}.{name}": float(x) for name, x in zip(names, numbers, strict=False)}
    return columns


def _is_joint_state(content: Any) -> bool:
    return isinstance(content, dict) and isinstance(content.get("name"), list) and bool(set(_PARTS) & content.keys())


def _json_stamp(content: dict, arrival: float) -> float:
    stamp = (content.get("header") or {}).get("stamp") or {}
    return stamp.get("sec", 0) + 1e-9 * stamp.get("nanosec", stamp.get("nsec", 0)) or arrival


def _flatten_json(prefix: str, value: Any, numbers: dict[str, float]):
    """Adds the numbers in `value` to `numbers`, named by their keys: `a.b`, `a[0]`."""
    if isinstance(value, bool | int | float):
        numbers[prefix or "value"] = float(value)
    elif isinstance(value, dict):
        for key, x in value.items():
            _flatten_json(f"{prefix}.{key}" if prefix else str(key), x, numbers)
    elif isinstance(value, list):
        for k, x in enumerate(value):
            _flatten_json(f"{prefix}[{k}]", x, numbers)
