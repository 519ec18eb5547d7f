"""Reading of structures in the Thrift compact protocol."""

from typing import Any

#: a structure: its values by field number
Struct = dict[int, Any]
_TRUE, _FALSE, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = 1, 2, 3, (4, 5, 6), 7, 8, (9, 10), 12
_DOUBLE_SIZE = 8
_MAX_DEPTH = 20


class CompactReader:
    """Reader of structures between two positions of some bytes; raises `ValueError` for damaged ones.

    Keeps integers, truth values, bytes, lists and structures; maps, which Parquet does not use, are refused.
    """

    def __init__(self, data: bytes, start: int, stop: int):
        self.data, self.position, self.stop = data, start, stop

    def block(self, length: int) -> bytes:
        """The next `length` bytes."""
        start, self.position = self.position, self.position + length
        if self.position > self.stop:
            raise ValueError("a structure of the metadata or of a page ends early")
        return self.data[start : self.position]

    def integer(self) -> int:
        """An unsigned integer of variable length."""
        value = 0
        for shift in range(0, 70, 7):
            (byte,) = self.block(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("an integer has more than 64 bits")

    def signed(self) -> int:
        """A signed integer in zigzag encoding."""
        value = self.integer()
        return (value >> 1) ^ -(value & 1)

    def struct(self, depth: int = 0) -> Struct:
        """The fields of a structure."""
        fields: Struct = {}
        number = 0
        while head := self.block(1)[0]:
            number = number + (head >> 4) if head >> 4 else self.signed()
            if number in fields:
                raise ValueError(f"a structure has two fields {number}")
            kind = head & 15
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth + 1)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ValueError("structures are nested too deeply")
        if kind in _INTEGERS:
            return self.signed()
        if kind == _STRUCT:
            return self.struct(depth)
        if kind == _BINARY:
            return self.block(self.integer())
        if kind in (_BYTE, _DOUBLE):
            self.block(1 if kind == _BYTE else _DOUBLE_SIZE)
            return None
        if kind not in _LISTS:
            raise ValueError(f"a structure has a field of type {kind}")
        (head,) = self.block(1)
        count = head >> 4 if head >> 4 < 15 else self.integer()
        kind = head & 15
        if kind in (_TRUE, _FALSE):
            return [byte == _TRUE for byte in self.block(count)]
        return [self._value(kind, depth + 1) for _ in range(count)]
