"""Messages of ROS 2 in the Common Data Representation, read field by field."""

import struct
from typing import NamedTuple

JOINT_STATE = "sensor_msgs/msg/JointState"


class JointState(NamedTuple):
    """A message of type sensor_msgs/msg/JointState; what a sender leaves out is empty."""

    #: s
    stamp: float
    names: tuple[str, ...]
    position: tuple[float, ...]
    velocity: tuple[float, ...]
    effort: tuple[float, ...]


class CdrReader:
    """Primitive values from a plain CDR stream, of the first or the second version (OMG, DDS-XTypes 1.3, section 7.4).

    Four bytes of heading give version and byte order; values are aligned to their size, in the second version at most
    to four bytes, counted from the end of the heading.
    """

    def __init__(self, data: bytes):
        if len(data) < 4 or data[0] != 0 or data[1] not in (0, 1, 6, 7):
            raise ValueError(f"heading {data[:4].hex(' ')} is not that of plain CDR")
        self.data, self.at = data[4:], 0
        self.order = "<" if data[1] % 2 else ">"
        self.widest = 4 if data[1] > 1 else 8

    def values(self, kind: str, count: int = 1) -> tuple:
        """`count` values of a format character of `struct`."""
        size = struct.calcsize(kind)
        to = min(size, self.widest)
        start = -(-self.at // to) * to if count else self.at
        end = start + size * count
        if count < 0 or end > len(self.data):
            raise ValueError(f"ends after {len(self.data)} bytes, where {end} were announced")
        self.at = end
        return struct.unpack_from(f"{self.order}{count}{kind}", self.data, start)

    def count(self) -> int:
        """The length of a sequence or string."""
        return self.values("I")[0]

    def text(self) -> str:
        """A string, which ends with a zero."""
        length = self.count()
        start, self.at = self.at, self.at + length
        if length < 1 or self.at > len(self.data):
            raise ValueError(f"a text of {length} bytes at byte {start} of {len(self.data)}")
        return self.data[start : self.at - 1].decode("utf-8")

    def numbers(self) -> tuple[float, ...]:
        """A sequence of doubles."""
        return self.values("d", self.count())


def joint_state(data: bytes) -> JointState:
    """A decoded sensor_msgs/msg/JointState; `ValueError` says what is wrong with one that is damaged."""
    r = CdrReader(data)
    seconds, nanoseconds = r.values("i")[0], r.values("I")[0]
    r.text()  # frame_id
    count = r.count()
    if count > len(data):
        raise ValueError(f"announces {count} names in {len(data)} bytes")
    names = tuple(r.text() for _ in range(count))
    return JointState(seconds + 1e-9 * nanoseconds, names, r.numbers(), r.numbers(), r.numbers())
