"""Decoding of ROS 1 bags, format 2.0, and of joint states in ROS 1 serialisation."""

import struct
from collections.abc import Iterator

from jaxdyn.identification.logs.recordings._bytes import ByteReader
from jaxdyn.identification.logs.recordings._cdr import JointState
from jaxdyn.identification.logs.recordings._compression import decompress
from jaxdyn.identification.logs.tables import Budget

_START = b"#ROSBAG V2.0\n"
_MESSAGE, _CHUNK, _CONNECTION = 2, 5, 7


def decode_joint_state_ros1(data: bytes) -> JointState:
    """Decodes a ROS 1 sensor_msgs/JointState; raises `ValueError` for a damaged message."""
    reader = ByteReader(data)
    _, seconds, nanoseconds = reader.values("I", 3)
    reader.text()  # frame_id
    count = reader.values("I")[0]
    if count > len(data):
        raise ValueError(f"invalid number of names {count} in {len(data)} bytes")
    names = tuple(reader.text() for _ in range(count))
    position, velocity, effort = (reader.numbers() for _ in range(3))
    return JointState(seconds + 1e-9 * nanoseconds, names, position, velocity, effort)


def _iterate_records(reader: ByteReader) -> Iterator[tuple[dict[str, bytes], bytes]]:
    """Header fields and content of each record."""
    while reader:
        yield _parse_header(reader.prefixed()), reader.prefixed()


def _parse_header(data: bytes) -> dict[str, bytes]:
    reader, fields = ByteReader(data), {}
    while reader:
        name, _, value = reader.prefixed().partition(b"=")
        fields[name.decode()] = value
    return fields


def _unpack_chunk(fields: dict[str, bytes], content: bytes, budget: Budget) -> bytes:
    compression = fields.get("compression", b"").decode()
    if compression not in ("none", "bz2", "lz4"):
        raise ValueError(f"a chunk has the compression {compression[:40]!r}; expected none, bz2 or lz4")
    return decompress(compression, content, _unpack_field(fields, "I", "size")[0], budget)


def _unpack_field(fields: dict[str, bytes], kind: str, name: str) -> tuple:
    value = fields.get(name, b"")
    size = struct.calcsize(f"<{kind}")
    if len(value) != size:
        raise ValueError(f"the record field {name} has {len(value)} bytes, expected {size}")
    return struct.unpack(f"<{kind}", value)


def iterate_ros1(content: bytes, max_bytes: int) -> Iterator[tuple[str, str, int, bytes]]:
    """Topic, type, arrival time (ns) and data of all messages, in the order of the file.

    A bag of format 2.0 (ROS wiki, Bags/Format/2.0) is a sequence of records. Connection and message records may be in
    chunks, which may be compressed; all chunks may decompress to `max_bytes`. Index records are ignored. Raises
    `ValueError` for damaged bags.
    """
    if not content.startswith(_START):
        raise ValueError(f"the file begins with {content[:13]!r}, expected {_START!r}")
    connections: dict[int, tuple[str, str]] = {}
    budget = Budget(max_bytes)
    for fields, data in _iterate_records(ByteReader(content, len(_START))):
        if _unpack_field(fields, "B", "op")[0] == _CHUNK:
            for inner in _iterate_records(ByteReader(_unpack_chunk(fields, data, budget))):
                yield from _handle_record(*inner, connections)
        else:
            yield from _handle_record(fields, data, connections)


def _handle_record(
    fields: dict[str, bytes], data: bytes, connections: dict[int, tuple[str, str]]
) -> Iterator[tuple[str, str, int, bytes]]:
    """Yields the message of a message record; stores a connection record in `connections`."""
    op = _unpack_field(fields, "B", "op")[0]
    if op == _CONNECTION:
        topic, kind = fields.get("topic"), _parse_header(data).get("type", b"").decode()
        if topic is None:
            raise ValueError("a connection record has no topic")
        connections[_unpack_field(fields, "I", "conn")[0]] = (topic.decode(), kind)
    elif op == _MESSAGE:
        number = _unpack_field(fields, "I", "conn")[0]
        if number not in connections:
            raise ValueError(f"a message refers to connection {number}, which has no connection record before it")
        seconds, nanoseconds = _unpack_field(fields, "II", "time")
        yield *connections[number], seconds * 10**9 + nanoseconds, data
