"""Reading of messages from the SQLite files of rosbag2."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxdyn.identification.logs.recordings._messages import Message
from jaxdyn.identification.logs.tables import Budget

#: instructions of SQLite's virtual machine between two looks at their number
_STEP = 10_000
#: instructions that are allowed in any case, and for each byte of the file
_INSTRUCTIONS, _INSTRUCTIONS_PER_BYTE = 1_000_000, 20


def iterate_database(path: Path, size: int) -> Iterator[Message]:
    """All messages of a database file of `size` bytes, in the order of the table.

    A database may contain views, generated columns and pages that refer to each other in circles, which make rows
    without end from a small file. Therefore only tables are read, their rows may hold no more bytes than the file, and
    the number of instructions is bounded. Raises `ValueError` and `sqlite3.Error` for other databases.
    """
    with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
        base.text_factory = bytes
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(1000, min(size, 2**30)))
        _limit_instructions(base, _INSTRUCTIONS + _INSTRUCTIONS_PER_BYTE * size)
        base.execute("PRAGMA trusted_schema = OFF")
        for table in ("topics", "messages"):
            _check_table(base, table)
        budget = Budget(size)
        topics = _read_topics(base, budget)
        for number, time, data in base.execute("SELECT topic_id, timestamp, data FROM messages"):
            if not (isinstance(time, int) and isinstance(data, bytes)):
                raise ValueError(f"a message has {_kind(time)} for its timestamp and {_kind(data)} for its data")
            _take(budget, 8 + len(data))
            if number not in topics:
                raise ValueError(f"a message refers to topic {str(number)[:40]}, which is not in the table of topics")
            yield Message(*topics[number], time, data)


def _limit_instructions(base: sqlite3.Connection, most: int):
    counter = iter(range(most // _STEP))
    base.set_progress_handler(lambda: next(counter, None) is None, _STEP)


def _check_table(base: sqlite3.Connection, name: str):
    kinds = base.execute("SELECT type, sql FROM sqlite_master WHERE name = ?", (name,)).fetchall()
    if [kind for kind, _ in kinds] != [b"table"] or b"VIRTUAL" in (kinds[0][1] or b"").upper().split():
        raise ValueError(f"it has no table {name!r}")
    if any(row[-1] for row in base.execute(f"PRAGMA table_xinfo({name})")):
        raise ValueError(f"its table {name!r} has columns that are generated or hidden")


def _read_topics(base: sqlite3.Connection, budget: Budget) -> dict[Any, tuple[str, str, str]]:
    """Name, type and encoding of each topic by its number."""
    topics: dict[Any, tuple[str, str, str]] = {}
    for number, *texts in base.execute("SELECT id, name, type, serialization_format FROM topics"):
        if not all(isinstance(text, bytes) for text in texts):
            raise ValueError(f"topic {str(number)[:40]} has {', '.join(map(_kind, texts))} for name, type and encoding")
        if number in topics:
            raise ValueError(f"two topics have the number {str(number)[:40]}")
        _take(budget, sum(map(len, texts)))
        name, kind, encoding = (text.decode("utf-8") for text in texts)
        topics[number] = name, kind, encoding
    return topics


def _take(budget: Budget, count: int):
    try:
        budget.take(count)
    except ValueError:
        raise ValueError("its rows hold more bytes than the file, since pages occur several times") from None


def _kind(value: Any) -> str:
    return {bytes: "bytes or text", type(None): "NULL"}.get(type(value), type(value).__name__)
