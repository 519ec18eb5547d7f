"""Logs as MCAP files: records are changed inside their chunks, which are packed again with correct checksums."""

import json
import random
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from jaxdyn.identification import read_tables
from tests.fuzz.mutators import any_of, mutate_bytes, mutate_json
from tests.fuzz.target import MAX_BYTES, MAX_MEMORY, Target, as_file, stored_regressions

MAGIC = b"\x89MCAP0\r\n"
_CHANNEL, _MESSAGE, _CHUNK = 4, 5, 6
_STATE = bytes.fromhex(
    "0001000000ca9a3b80c3c9010500000062617365000000000200000006000000656c626f770000000e00000073686f756c6465725f6c6f6e"
    "670000000200000000000000343333333333d33f343333333333e33f0200000000000000000000000000f03f000000000000004002000000"
    "00000000000000000000084000000000000008c0"
)
_JSON: tuple[Any, ...] = (
    {"i": [1, 2.5], "u": {"d": 1.5, "on": True}, "text": "x"},
    {"name": ["a", "b"], "position": [1, 2], "effort": [0.5, 1e-3], "header": {"stamp": {"sec": 3, "nanosec": 5}}},
    {"arrival": 3, "a.b": 1, "a": {"c": 2}},
)
Records = list[tuple[int, bytes]]


def _zstd(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


def _lz4(data: bytes) -> bytes:
    import lz4.frame

    return lz4.frame.compress(data)


_PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, "zstd": _zstd, "lz4": _lz4}


def _text(text: str) -> bytes:
    return struct.pack("<I", len(text.encode())) + text.encode()


def pack_records(records: Records) -> bytes:
    """The bytes of records."""
    return b"".join(bytes([op]) + struct.pack("<Q", len(data)) + data for op, data in records)


def pack_chunk(inner: bytes, compression: str, size: int | None = None) -> tuple[int, bytes]:
    """A chunk record, with any declared size."""
    packed = _PACKERS[compression](inner)
    head = struct.pack("<QQQI", 0, 2**63, len(inner) if size is None else size, zlib.crc32(inner))
    return _CHUNK, head + _text(compression) + struct.pack("<Q", len(packed)) + packed


def _message(channel: int, time: int, data: bytes) -> tuple[int, bytes]:
    return _MESSAGE, struct.pack("<HIQQ", channel, 0, time, 0) + data


def _file(records: Records) -> bytes:
    head, end, footer = (1, _text("ros2") + _text("x")), (15, bytes(4)), (2, bytes(20))
    return MAGIC + pack_records([head, *records, end, footer]) + MAGIC


def _seeds() -> list[bytes]:
    schema = (3, struct.pack("<H", 1) + _text("sensor_msgs/msg/JointState") + _text("ros2msg") + bytes(4))
    state = (_CHANNEL, struct.pack("<HH", 1, 1) + _text("/joint_states") + _text("cdr") + bytes(4))
    states = [schema, state, _message(1, 5, _STATE), _message(1, 10**18, _STATE)]
    free = [(_CHANNEL, struct.pack("<HH", 2, 0) + _text("/motor") + _text("json") + bytes(4))]
    free += [_message(2, 7 * k, json.dumps(_JSON[k % 2]).encode()) for k in range(4)]
    records = [states, free, states + free]
    return [_file(x) for x in records] + [
        _file([pack_chunk(pack_records(x), name)]) for x in records for name in _PACKERS
    ]


def _parse_records(data: bytes) -> Records:
    found: Records = []
    start = 0
    while len(data) - start >= 9 and len(found) < 1000:
        stop = start + 9 + int.from_bytes(data[start + 1 : start + 9], "little")
        found.append((data[start], data[start + 9 : stop]))
        start = stop
    return found


def _mutate_records(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Changes a record, also inside a chunk."""
    records = _parse_records(content[8:-8])
    if not records:
        return mutate_bytes(content, rng, seeds)
    k = rng.randrange(len(records))
    chunks = [i for i, (op, _) in enumerate(records) if op == _CHUNK]
    if chunks and rng.random() < 0.8:
        k = rng.choice(chunks)
    records[k : k + 1] = _mutate_record(*records[k], rng)
    return MAGIC + pack_records(records) + MAGIC


def _mutate_record(op: int, data: bytes, rng: random.Random) -> Records:
    if op == _CHUNK:
        inner = _parse_records(_unpack_chunk(data))
        if inner:
            k = rng.randrange(len(inner))
            inner[k : k + 1] = _mutate_record(*inner[k], rng)
        size = rng.choice((None, None, None, None, 0, 2**40, 1000))
        return [pack_chunk(pack_records(inner), rng.choice(list(_PACKERS)), size)]
    match rng.randrange(5):
        case 0:
            return []
        case 1:
            return [(op, data)] * rng.choice((2, 2, 100))
        case 2 if op == _MESSAGE:
            return [(op, data[:22] + mutate_json(data[22:], rng, ()))]
        case 3:
            return [(rng.randrange(20), data)]
        case _:
            return [(op, mutate_bytes(data, rng, [data]))]


def _unpack_chunk(data: bytes) -> bytes:
    """The records of a chunk that `pack_chunk` made; of a damaged one, those of the first seed."""
    import lz4.frame
    import zstandard

    size = int.from_bytes(data[28:32], "little")
    packed = data[40 + size :]
    try:
        match data[32 : 32 + size]:
            case b"zstd":
                return zstandard.ZstdDecompressor().decompress(packed, max_output_size=MAX_BYTES)
            case b"lz4":
                return lz4.frame.LZ4FrameDecompressor().decompress(packed, max_length=MAX_BYTES)
    except (zstandard.ZstdError, RuntimeError):
        return b""
    return packed


def json_file(*messages: bytes, times: Sequence[int] = range(100)) -> bytes:
    """A file of JSON messages on the topic /motor, with their times of arrival."""
    channel = (_CHANNEL, struct.pack("<HH", 2, 0) + _text("/motor") + _text("json") + bytes(4))
    return _file([channel, *(_message(2, time, data) for time, data in zip(times, messages, strict=False))])


def _regressions() -> dict[str, bytes]:
    zeros = bytes(40_000_000)
    values = [json.dumps(x).encode() for x in _JSON] + [
        b'{"a": 1, "a": 2}',
        b'{"a.b": 1, "a": {"b": 2}}',
        b'{"name": ["j", "j"], "position": [1, 2]}',
        b'{"name": ["j"], "position": 3}',
        b'{"name": ["j"], "position": ["x"]}',
        b'{"name": [{}], "position": [[]]}',
        b'{"name": ["j"], "position": [1], "header": [1]}',
        b'{"name": ["j"], "position": [1], "header": {"stamp": {"sec": "x"}}}',
        b"1" + b"0" * 400,
        b'{"' + b"n" * 20_000 + b'": [' + b"1," * 20_000 + b"1]}",
        b"[" * 100_000,
    ]
    return {
        **stored_regressions("mcap")(),
        **{f"json {k}": json_file(data) for k, data in enumerate(values)},
        **{f"expansion {x or 'plain'}": _file([pack_chunk(zeros, x)]) for x in _PACKERS if x},
        **{f"hidden expansion {x}": _file([pack_chunk(zeros, x, 1000)]) for x in _PACKERS if x},
        **{f"many chunks {x}": _file([pack_chunk(zeros[:900_000], x)] * 50) for x in _PACKERS if x},
    }


TARGETS = [
    Target(
        "mcap",
        _seeds,
        as_file(".mcap", lambda path: read_tables(path, max_bytes=MAX_BYTES)),
        any_of(mutate_bytes, _mutate_records, _mutate_records),
        _regressions,
        MAX_MEMORY // 2,
    )
]
