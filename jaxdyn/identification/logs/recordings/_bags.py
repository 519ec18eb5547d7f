"""Readers of bags: MCAP files, SQLite files of rosbag2, and ROS 1 bags."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from jaxdyn._errors import FileAccessError
from jaxdyn.identification.logs.recordings._mcap import iterate_mcap
from jaxdyn.identification.logs.recordings._messages import Message, collect_tables
from jaxdyn.identification.logs.recordings._ros1 import iterate_ros1
from jaxdyn.identification.logs.recordings._sqlite import iterate_database
from jaxdyn.identification.logs.tables import LogError, Table
from jaxdyn.io.files import read_bytes


def read_mcap(path: Path, max_bytes: int) -> list[Table]:
    """One table per MCAP topic with joint states (CDR) or JSON messages; compression needs the extra `logs`."""
    content = read_bytes(path, max_bytes)
    failure = f"{path}: is not a complete MCAP file", "recover it with `mcap recover`"
    return collect_tables(path, _convert_errors(iterate_mcap(content, max_bytes), *failure))


def read_sqlite(path: Path, max_bytes: int) -> list[Table]:
    """One table per topic with joint states of a rosbag2 `.db3` file."""
    size = _check_size(path, max_bytes)
    failure = f"{path}: is not a rosbag2 database", "give an uncompressed .db3 file"
    return collect_tables(path, _convert_errors(iterate_database(path, size), *failure))


def read_ros1(path: Path, max_bytes: int) -> list[Table]:
    """One table per topic with joint states of a ROS 1 `.bag`; lz4 compression needs the extra `logs`."""
    content = read_bytes(path, max_bytes)
    messages = (
        Message(topic, kind, "ros1", time, data) for topic, kind, time, data in iterate_ros1(content, max_bytes)
    )
    failure = f"{path}: is not a complete ROS 1 bag", "repair it with `rosbag reindex`"
    return collect_tables(path, _convert_errors(messages, *failure))


def _convert_errors(messages: Iterator[Message], failure: str, remedy: str) -> Iterator[Message]:
    """The messages; an error of their source becomes a `LogError`."""
    try:
        yield from messages
    except (ValueError, sqlite3.Error) as error:
        raise LogError(f"{failure} ({error}); {remedy}") from None


def _check_size(path: Path, max_bytes: int) -> int:
    """The size of a file that is regular and not too large."""
    try:
        size, is_file = path.stat().st_size, path.is_file()
    except (OSError, ValueError) as error:
        raise FileAccessError(f"{path}: cannot be read ({error}); check the path") from None
    if not is_file:
        raise FileAccessError(f"{path}: is not a file; give the path of a file")
    if size > max_bytes:
        raise LogError(f"{path}: is larger than the {max_bytes} bytes allowed; if you trust the file, raise the limit")
    return size
