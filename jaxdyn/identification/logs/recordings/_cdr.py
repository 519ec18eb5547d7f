"""Decoding of ROS 2 messages in the Common Data Representation (CDR)."""

import struct
from typing import NamedTuple

JOINT_STATE = "sensor_msgs/msg/JointState"


class JointState(NamedTuple):
    """A message of type sensor_msgs/msg/JointState; omitted fields are empty."""

    #: s
    stamp: float
    names: tuple[str, ...]
    position: tuple[float, ...]
    velocity: tuple[float, ...]
    effort: tuple[float, ...]


class CdrReader:
    """Reader of primitive values from a plain CDR stream, version 1 or 2 (OMG, DDS-XTypes 1.3, section 7.4).

    The encapsulation header of four bytes gives version and byte order. Values are aligned to their size, in version 2
    to at most four bytes, relative to the end of the header.
    """

    def __init__(self, data: bytes):
        if len(data) < 4 or data[0] != 0 or data[1] not in (0, 1, 6, 7):
            raise ValueError(f"the header {data[:4].hex(' ')} is not that of plain CDR")
        self.data, self.position = data[4:], 0
        self.order = "<" if data[1] % 2 else ">"
        self.max_alignment = 4 if data[1] > 1 else 8

    def values(self, kind: str, count: int = 1) -> tuple:
        """The next `count` values of type `kind`, a format character of `struct`."""
        size = struct.calcsize(kind)
        alignment = min(size, self.max_alignment)
        start = -(-self.position // alignment) * alignment if count else self.position
        end = start + size * count
        if count < 0 or end > len(self.data):
            raise ValueError(f"the message ends after {len(self.data)} bytes, expected at least {end}")
        self.position = end
        return struct.unpack_from(f"{self.order}{count}{kind}", self.data, start)

    def count(self) -> int:
        """The length of a sequence or string."""
        return self.values("I")[0]

    def text(self) -> str:
        """A null-terminated string."""
        length = self.count()
        start, self.position = self.position, self.position + length
        if length < 1 or self.position > len(self.data):
            raise ValueError(f"invalid string length {length} at byte {start} of {len(self.data)}")
        return self.data[start : self.position - 1].decode("utf-8")

    def numbers(self) -> tuple[float, ...]:
        """A sequence of doubles."""
        return self.values("d", self.count())


def decode_joint_state(data: bytes) -> JointState:
    """Decodes a sensor_msgs/msg/JointState; raises `ValueError` for a damaged message."""
    reader = CdrReader(data)
    seconds, nanoseconds = reader.values("i")[0], reader.values("I")[0]
    reader.text()  # frame_id
    count = reader.count()
    if count > len(data):
        raise ValueError(f"invalid number of names {count} in {len(data)} bytes")
    names = tuple(reader.text() for _ in range(count))
    position, velocity, effort = (reader.numbers() for _ in range(3))
    return JointState(seconds + 1e-9 * nanoseconds, names, position, velocity, effort)
