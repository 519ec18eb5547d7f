"""Logs as bags: SQLite files of rosbag2, changed by statements, and ROS 1 bags, changed inside their chunks."""

import bz2
import contextlib
import random
import sqlite3
import struct
from collections.abc import Iterator, Sequence

from jaxdyn.identification import read_tables
from tests.fuzz.mutators import any_of, mutate_bytes
from tests.fuzz.target import MAX_BYTES, MAX_MEMORY, Target, as_file, stored_regressions
from tests.fuzz.targets.mcap import _STATE
from tests.identification.ros1_bags import ros1_bag

_TABLES = (
    "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT)",
    "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB)",
    "INSERT INTO topics VALUES (1, '/joint_states', 'sensor_msgs/msg/JointState', 'cdr')",
    "INSERT INTO topics VALUES (2, '/chatter', 'std_msgs/msg/String', 'cdr')",
    f"INSERT INTO messages VALUES (1, 1, 5, x'{_STATE.hex()}'), (2, 1, 9, x'{_STATE.hex()}'), (3, 2, 0, x'00')",
)
_COUNTING = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n AS id, 1 AS topic_id"
_STATEMENTS = (
    "UPDATE messages SET timestamp = 'text'",
    "UPDATE messages SET timestamp = NULL WHERE id = 2",
    "UPDATE messages SET timestamp = 1.5",
    "UPDATE messages SET timestamp = x'00'",
    "UPDATE messages SET topic_id = 'one'",
    "UPDATE messages SET topic_id = NULL",
    "UPDATE messages SET topic_id = 2",
    "UPDATE messages SET data = NULL",
    "UPDATE messages SET data = 'text'",
    "UPDATE messages SET data = 7",
    "UPDATE messages SET data = zeroblob(100000) WHERE id = 1",
    "UPDATE topics SET name = CAST(x'ff00fe' AS TEXT)",
    "UPDATE topics SET name = NULL",
    "UPDATE topics SET name = 7",
    "UPDATE topics SET type = x'ff'",
    "UPDATE topics SET serialization_format = NULL",
    "UPDATE topics SET serialization_format = 'json'",
    "INSERT INTO topics SELECT NULL, name, type, serialization_format FROM topics",
    "INSERT INTO messages SELECT NULL, topic_id, timestamp, data FROM messages",
    "DELETE FROM topics",
    "DELETE FROM messages",
    "DROP TABLE topics",
    "ALTER TABLE messages RENAME TO former",
    "ALTER TABLE messages RENAME COLUMN data TO content",
    "ALTER TABLE messages ADD COLUMN more BLOB GENERATED ALWAYS AS (zeroblob(900000000)) VIRTUAL",
    "CREATE VIEW messages AS SELECT * FROM former",
    f"CREATE VIEW messages AS {_COUNTING}, n AS timestamp, x'00' AS data FROM c",
    f"CREATE VIEW topics AS {_COUNTING}, 'x' AS name, 'y' AS type, 'cdr' AS serialization_format FROM c",
    "PRAGMA encoding = 'UTF-16'",
    "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id, timestamp, data AS (zeroblob(900000000)))",
    "INSERT INTO messages(topic_id, timestamp) VALUES (1, 3)",
)


def _open() -> contextlib.closing[sqlite3.Connection]:
    return contextlib.closing(sqlite3.connect(":memory:", isolation_level=None))


def _database(statements: Sequence[str], content: bytes | None = None) -> bytes:
    with _open() as base:
        base.set_progress_handler(lambda: 1, 1_000_000)  # a changed database may have rows without end
        if content is not None:
            base.deserialize(content)
        for statement in statements:
            base.execute(statement)
        return base.serialize()


def _mutate_database(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Runs a statement."""
    return _database([rng.choice(_STATEMENTS)], content)


def _shared_pages() -> bytes:
    """A table of 10^6 rows and more in a small file: each inner page refers to the next one in all of its cells."""
    size = 512
    rows = ", ".join(f"({k}, 1, {k}, x'{_STATE.hex()}')" for k in range(1, 500))
    content = bytearray(_database([f"PRAGMA page_size = {size}", *_TABLES[:4], f"INSERT INTO messages VALUES {rows}"]))
    with _open() as base:
        base.deserialize(bytes(content))
        (root,) = base.execute("SELECT rootpage FROM sqlite_master WHERE name = 'messages'").fetchone()
    kinds = {page: content[size * (page - 1)] for page in range(2, len(content) // size + 1)}
    leaf = next(page for page, kind in kinds.items() if kind == 13 and page > root)
    inner = [root, *(page for page, kind in kinds.items() if kind == 5 and page != root)]
    for page, child in zip(inner, [*inner[1:], leaf], strict=True):
        start = size * (page - 1)
        count = int.from_bytes(content[start + 3 : start + 5], "big")
        cells = struct.unpack_from(f">{count}H", content, start + 12)
        for place in (8, *cells):
            content[start + place : start + place + 4] = struct.pack(">I", child)
    return bytes(content)


def _database_regressions() -> dict[str, bytes]:
    former = "ALTER TABLE messages RENAME TO former"
    views = [x for x in _STATEMENTS if x.startswith("CREATE VIEW messages")]
    single = [x for x in _STATEMENTS if x.startswith("UPDATE")]
    return {
        **stored_regressions("db3")(),
        **{f"statement {k}": _database([*_TABLES, x]) for k, x in enumerate(single)},
        **{f"view {k}": _database([*_TABLES, former, x]) for k, x in enumerate(views)},
        "generated": _database([_TABLES[0], *_TABLES[2:4], *_STATEMENTS[-2:]]),
        "shared pages": _shared_pages(),
    }


# ROS 1


def _parse(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Headers and contents of records."""
    while len(data) >= 4:  # only of seeds, which are small
        size = int.from_bytes(data[:4], "little")
        head, data = data[4 : 4 + size], data[4 + size :]
        size = int.from_bytes(data[:4], "little")
        yield head, data[4 : 4 + size]
        data = data[4 + size :]


def _pack(records: Sequence[tuple[bytes, bytes]]) -> bytes:
    return b"".join(struct.pack("<I", len(x)) + x for record in records for x in record)


def _field(name: bytes, value: bytes) -> bytes:
    return struct.pack("<I", len(name) + 1 + len(value)) + name + b"=" + value


def _chunk(inner: bytes, compression: bytes, size: int | None = None) -> tuple[bytes, bytes]:
    import lz4.frame

    pack = {b"none": bytes, b"bz2": bz2.compress, b"lz4": lz4.frame.compress}[compression]
    declared = struct.pack("<I", len(inner) if size is None else size)
    return _field(b"op", b"\5") + _field(b"compression", compression) + _field(b"size", declared), pack(inner)


def _mutate_bag(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Changes a record inside the chunk of an uncompressed bag, which is compressed again."""
    records = list(_parse(seeds[0][13:]))
    k = next(i for i, (head, _) in enumerate(records) if b"op=\5" in head)
    inner = list(_parse(records[k][1]))
    for _ in range(rng.choice((1, 1, 3))):
        i = rng.randrange(len(inner))
        head, data = inner[i]
        changed = rng.choice(((mutate_bytes(head, rng, [head]), data), (head, mutate_bytes(data, rng, [data]))))
        inner[i : i + 1] = rng.choice(([changed], [changed], [], [inner[i]] * 2))
        if not inner:
            break
    size = rng.choice((None, None, None, 0, 2**32 - 1, 1000))
    records[k] = _chunk(_pack(inner), rng.choice((b"none", b"bz2", b"lz4")), size)
    return seeds[0][:13] + _pack(records[: rng.choice((k + 1, len(records)))])


def _bag_regressions() -> dict[str, bytes]:
    start, zeros = b"#ROSBAG V2.0\n", bytes(40_000_000)
    kinds = (b"bz2", b"lz4")
    return {
        **{f"expansion {x}": start + _pack([_chunk(zeros, x)]) for x in kinds},
        **{f"hidden expansion {x}": start + _pack([_chunk(zeros, x, 1000)]) for x in kinds},
        **{
            f"many chunks {x}": start + _pack([_chunk(_pack([(_field(b"op", b"\3"), zeros[:900_000])]), x)] * 50)
            for x in kinds
        },
    }


def _read(path):
    return read_tables(path, max_bytes=MAX_BYTES)


TARGETS = [
    Target(
        "db3",
        lambda: [_database(_TABLES)],
        as_file(".db3", _read),
        any_of(mutate_bytes, _mutate_database),
        _database_regressions,
        MAX_MEMORY // 2,
    ),
    Target(
        "bag",
        lambda: [ros1_bag(compression) for compression in ("none", "bz2", "lz4")],
        as_file(".bag", _read),
        any_of(mutate_bytes, _mutate_bag, _mutate_bag),
        _bag_regressions,
        MAX_MEMORY // 2,
    ),
]
