"""Sequential reading of numbers and strings from bytes."""

import struct


class ByteReader:
    """Reader of little-endian numbers and of strings that follow their length, without padding.

    Raises `ValueError` where the data end early.
    """

    def __init__(self, data: bytes, start: int = 0, stop: int | None = None):
        self.data, self.position = data, start
        self.stop = len(data) if stop is None else stop

    def __bool__(self) -> bool:
        """True if bytes are left."""
        return self.position < self.stop

    def block(self, length: int) -> bytes:
        """The next `length` bytes."""
        start, self.position = self.position, self.position + length
        if length < 0 or self.position > self.stop:
            raise ValueError(f"the data end after {self.stop} bytes, expected at least {self.position}")
        return self.data[start : self.position]

    def values(self, kind: str, count: int = 1) -> tuple:
        """The next `count` values of type `kind`, a format character of `struct`."""
        return struct.unpack(f"<{count}{kind}", self.block(count * struct.calcsize(kind)))

    def value(self, kind: str) -> int:
        """The next value of type `kind`."""
        return self.values(kind)[0]

    def prefixed(self, kind: str = "I") -> bytes:
        """The bytes that follow their length."""
        return self.block(self.value(kind))

    def text(self) -> str:
        """A string, preceded by its length."""
        return self.prefixed().decode("utf-8")

    def numbers(self) -> tuple[float, ...]:
        """An array of doubles, preceded by its length."""
        return self.values("d", self.value("I"))
