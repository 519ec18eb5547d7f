"""Decoding of ROS 1 bags, format 2.0, and of joint states in ROS 1 serialisation."""

import bz2
import struct
from collections.abc import Iterator
from typing import Any

from jaxdyn._errors import JaxdynError
from jaxdyn.identification.logs._cdr import JointState

_START = b"#ROSBAG V2.0\n"
_MESSAGE, _CHUNK, _CONNECTION = 2, 5, 7


class Ros1Reader:
    """Reader of numbers and strings in ROS 1 serialisation: little-endian, without padding."""

    def __init__(self, data: bytes):
        self.data, self.position = data, 0

    def block(self, length: int) -> bytes:
        """The next `length` bytes."""
        start, self.position = self.position, self.position + length
        if length < 0 or self.position > len(self.data):
            raise ValueError(f"the data end after {len(self.data)} bytes, expected at least {self.position}")
        return self.data[start : self.position]

    def values(self, kind: str, count: int = 1) -> tuple:
        """The next `count` values of type `kind`, a format character of `struct`."""
        return struct.unpack(f"<{count}{kind}", self.block(count * struct.calcsize(kind)))

    def text(self) -> str:
        """A string, preceded by its length."""
        return self.block(self.values("I")[0]).decode("utf-8")

    def numbers(self) -> tuple[float, ...]:
        """An array of doubles, preceded by its length."""
        return self.values("d", self.values("I")[0])


def decode_joint_state_ros1(data: bytes) -> JointState:
    """Decodes a ROS 1 sensor_msgs/JointState; raises `ValueError` for a damaged message."""
    reader = Ros1Reader(data)
    _, seconds, nanoseconds = reader.values("I", 3)
    reader.text()  # frame_id
    count = reader.values("I")[0]
    if count > len(data):
        raise ValueError(f"invalid number of names {count} in {len(data)} bytes")
    names = tuple(reader.text() for _ in range(count))
    position, velocity, effort = (reader.numbers() for _ in range(3))
    return JointState(seconds + 1e-9 * nanoseconds, names, position, velocity, effort)


def _iterate_records(data: bytes) -> Iterator[tuple[dict[str, bytes], bytes]]:
    """Header fields and content of each record."""
    reader = Ros1Reader(data)
    while reader.position < len(data):
        yield _parse_header(reader.block(reader.values("I")[0])), reader.block(reader.values("I")[0])


def _parse_header(data: bytes) -> dict[str, bytes]:
    reader, fields = Ros1Reader(data), {}
    while reader.position < len(data):
        name, _, value = reader.block(reader.values("I")[0]).partition(b"=")
        fields[name.decode()] = value
    return fields


def _decompress(fields: dict[str, bytes], content: bytes, max_bytes: int) -> bytes:
    how, size = fields.get("compression", b"").decode(), _unpack_field(fields, "I", "size")[0]
    if how == "none":
        return content
    if how not in ("bz2", "lz4"):
        raise ValueError(f"a chunk has the compression {how!r}; expected none, bz2 or lz4")
    if size > max_bytes:
        raise ValueError(
            f"a chunk decompresses to more than the {max_bytes} bytes allowed; if you trust the file, raise the limit"
        )
    reader = bz2.BZ2Decompressor() if how == "bz2" else _import_lz4().LZ4FrameDecompressor()
    try:
        plain = reader.decompress(content, max_length=size)
    except (OSError, RuntimeError, EOFError) as error:
        raise ValueError(f"a chunk compressed with {how} is damaged ({error})") from None
    if len(plain) != size:
        raise ValueError(f"a chunk has {len(plain)} bytes, expected {size}")
    return plain


def _import_lz4() -> Any:
    try:
        import lz4.frame as lz4  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise JaxdynError('bags with lz4 compression need the package lz4: pip install "jaxdyn[logs]"') from error
    return lz4


def _unpack_field(fields: dict[str, bytes], kind: str, name: str) -> tuple:
    value = fields.get(name, b"")
    size = struct.calcsize(f"<{kind}")
    if len(value) != size:
        raise ValueError(f"the record field {name} has {len(value)} bytes, expected {size}")
    return struct.unpack(f"<{kind}", value)


def iterate_messages(content: bytes, max_bytes: int) -> Iterator[tuple[str, str, int, bytes]]:
    """Topic, type, arrival time (ns) and data of all messages, in the order of the file.

    A bag of format 2.0 (ROS wiki, Bags/Format/2.0) is a sequence of records. Connection and message records may be in
    chunks, which may be compressed; a chunk may decompress to at most `max_bytes`. Index records are ignored.
    """
    if not content.startswith(_START):
        raise ValueError(f"the file begins with {content[:13]!r}, expected {_START!r}")
    connections: dict[int, tuple[str, str]] = {}
    for fields, data in _iterate_records(content[len(_START) :]):
        if _unpack_field(fields, "B", "op")[0] == _CHUNK:
            for inner in _iterate_records(_decompress(fields, data, max_bytes)):
                yield from _handle_record(*inner, connections)
        else:
            yield from _handle_record(fields, data, connections)


def _handle_record(
    fields: dict[str, bytes], data: bytes, connections: dict[int, tuple[str, str]]
) -> Iterator[tuple[str, str, int, bytes]]:
    """Yields the message of a message record; stores a connection record in `connections`."""
    op = _unpack_field(fields, "B", "op")[0]
    if op == _CONNECTION:
        about = _parse_header(data)
        connections[_unpack_field(fields, "I", "conn")[0]] = (fields["topic"].decode(), about.get("type", b"").decode())
    elif op == _MESSAGE:
        number = _unpack_field(fields, "I", "conn")[0]
        if number not in connections:
            raise ValueError(f"a message refers to connection {number}, which has no connection record before it")
        seconds, nanoseconds = _unpack_field(fields, "II", "time")
        yield *connections[number], seconds * 10**9 + nanoseconds, data
