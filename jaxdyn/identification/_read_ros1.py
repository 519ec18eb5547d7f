"""Messages out of the bags of ROS 1, format 2.0, and joint states in the serialisation of ROS 1."""

import bz2
import struct
from collections.abc import Iterator
from typing import Any

from jaxdyn._errors import JaxdynError
from jaxdyn.identification._read_cdr import JointState

_START = b"#ROSBAG V2.0\n"
_MESSAGE, _CHUNK, _CONNECTION = 2, 5, 7


class Ros1Reader:
    """Numbers and texts as ROS 1 serialises them: little-endian, without padding."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def block(self, length: int) -> bytes:
        """The next bytes."""
        start, self.at = self.at, self.at + length
        if length < 0 or self.at > len(self.data):
            raise ValueError(f"ends after {len(self.data)} bytes, where {self.at} were announced")
        return self.data[start : self.at]

    def values(self, kind: str, count: int = 1) -> tuple:
        """`count` values of a format character of `struct`."""
        return struct.unpack(f"<{count}{kind}", self.block(count * struct.calcsize(kind)))

    def text(self) -> str:
        """A string by its length."""
        return self.block(self.values("I")[0]).decode("utf-8")

    def numbers(self) -> tuple[float, ...]:
        """An array of doubles by its length."""
        return self.values("d", self.values("I")[0])


def joint_state_ros1(data: bytes) -> JointState:
    """A decoded sensor_msgs/JointState of ROS 1; `ValueError` says what is wrong with one that is damaged."""
    r = Ros1Reader(data)
    _, seconds, nanoseconds = r.values("I", 3)
    r.text()  # frame_id
    count = r.values("I")[0]
    if count > len(data):
        raise ValueError(f"announces {count} names in {len(data)} bytes")
    names = tuple(r.text() for _ in range(count))
    return JointState(seconds + 1e-9 * nanoseconds, names, r.numbers(), r.numbers(), r.numbers())


def _records(data: bytes) -> Iterator[tuple[dict[str, bytes], bytes]]:
    """Headers, by name, and contents, one record after the other."""
    r = Ros1Reader(data)
    while r.at < len(data):
        yield _fields(r.block(r.values("I")[0])), r.block(r.values("I")[0])


def _fields(data: bytes) -> dict[str, bytes]:
    r, fields = Ros1Reader(data), {}
    while r.at < len(data):
        name, _, value = r.block(r.values("I")[0]).partition(b"=")
        fields[name.decode()] = value
    return fields


def _inflated(fields: dict[str, bytes], content: bytes, most: int) -> bytes:
    how, size = fields.get("compression", b"").decode(), _whole(fields, "I", "size")[0]
    if how == "none":
        return content
    if how not in ("bz2", "lz4"):
        raise ValueError(f"a part is compressed by {how!r}; expected none, bz2 or lz4")
    if size > most:
        raise ValueError(f"a part grows beyond the {most} bytes allowed; if you trust it, raise the limit")
    reader = bz2.BZ2Decompressor() if how == "bz2" else _lz4().LZ4FrameDecompressor()
    try:
        plain = reader.decompress(content, max_length=size)
    except (OSError, RuntimeError, EOFError) as error:
        raise ValueError(f"a part compressed by {how} is damaged ({error})") from None
    if len(plain) != size:
        raise ValueError(f"a part has {len(plain)} bytes of {size}")
    return plain


def _lz4() -> Any:
    try:
        import lz4.frame as lz4  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise JaxdynError('bags that are compressed by lz4 need the package lz4: pip install "jaxdyn[logs]"') from error
    return lz4


def _whole(fields: dict[str, bytes], kind: str, name: str) -> tuple:
    value = fields.get(name, b"")
    if len(value) != struct.calcsize(f"<{kind}"):
        raise ValueError(f"a record has {len(value)} bytes of {name}")
    return struct.unpack(f"<{kind}", value)


def ros1_messages(content: bytes, most: int) -> Iterator[tuple[str, str, int, bytes]]:
    """Topic, type, time of arrival in ns and data of all messages, in the order of the file.

    Bags of format 2.0 (ROS wiki, Bags/Format/2.0): records, of which chunks hold connections and messages, perhaps
    compressed, none of them to more than `most` bytes. Indices are not needed.
    """
    if not content.startswith(_START):
        raise ValueError(f"begins with {content[:13]!r}, expected {_START!r}")
    known: dict[int, tuple[str, str]] = {}
    for fields, data in _records(content[len(_START) :]):
        if _whole(fields, "B", "op")[0] == _CHUNK:
            for inner in _records(_inflated(fields, data, most)):
                yield from _message(*inner, known)
        else:
            yield from _message(fields, data, known)


def _message(fields: dict[str, bytes], data: bytes, known: dict[int, tuple[str, str]]):
    """A message, or nothing; connections are noted in `known`."""
    op = _whole(fields, "B", "op")[0]
    if op == _CONNECTION:
        about = _fields(data)
        known[_whole(fields, "I", "conn")[0]] = (fields["topic"].decode(), about.get("type", b"").decode())
    elif op == _MESSAGE:
        number = _whole(fields, "I", "conn")[0]
        if number not in known:
            raise ValueError(f"a message belongs to connection {number}, which the bag does not describe")
        seconds, nanoseconds = _whole(fields, "II", "time")
        yield *known[number], seconds * 10**9 + nanoseconds, data
