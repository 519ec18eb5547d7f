"""Sizes of the pages of a Parquet file, from their headers (parquet.thrift, Thrift compact protocol).

The metadata at the end of a file repeats these sizes, but decompression follows the headers of the pages.
"""

from collections.abc import Iterator
from typing import Any

#: types of the compact protocol
_TRUE, _FALSE, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _MAP, _STRUCT = 1, 2, 3, (4, 5, 6), 7, 8, (9, 10), 11, 12
_MAX_DEPTH = 20
#: fields of PageHeader
_UNCOMPRESSED, _COMPRESSED = 2, 3
#: fields of PageHeader with the header of a data page, a dictionary, and a data page of version 2
_KINDS = (5, 7, 8)
_NUM_VALUES = 1


def iterate_pages(content: bytes, start: int, size: int) -> Iterator[tuple[int, int]]:
    """Decompressed size and number of values of each page in `size` bytes from `start`.

    Raises `ValueError` for damaged headers, and for pages that are larger than their column.
    """
    if start < 0 or size < 0 or start + size > len(content):
        raise ValueError(f"a column has {size} bytes at {start}, but the file has {len(content)}")
    stop = start + size
    while start < stop:
        reader = _CompactReader(content, start, stop)
        fields = reader.struct()
        plain, packed = (_count(fields, key, start) for key in (_UNCOMPRESSED, _COMPRESSED))
        counts = [_count(fields[key], _NUM_VALUES, start) for key in _KINDS if isinstance(fields.get(key), dict)]
        start = reader.position + packed
        if start > stop:
            raise ValueError(f"a page ends at {start}, after its column, which ends at {stop}")
        yield plain, max(counts, default=0)


def _count(fields: dict[int, Any], key: int, start: int) -> int:
    """A field that is a number of bytes or values."""
    count = fields.get(key)
    if not isinstance(count, int) or count < 0:
        raise ValueError(f"field {key} of the header of the page at {start} is {count}, expected a number")
    return count


class _CompactReader:
    """Reader of a structure in the compact protocol, which keeps integers and structures by field number."""

    def __init__(self, data: bytes, start: int, stop: int):
        self.data, self.position, self.stop = data, start, stop

    def byte(self) -> int:
        """The next byte."""
        if self.position >= self.stop:
            raise ValueError("the header of a page ends early")
        self.position += 1
        return self.data[self.position - 1]

    def integer(self) -> int:
        """An unsigned integer of variable length."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("an integer has more than 64 bits")

    def signed(self) -> int:
        """A signed integer in zigzag encoding."""
        value = self.integer()
        return value >> 1 ^ -(value & 1)

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The fields of a structure."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.signed()
            fields[number] = self.value(head & 15, depth + 1)
        return fields

    def value(self, kind: int, depth: int) -> Any:
        """A value of a type of the protocol."""
        if depth > _MAX_DEPTH:
            raise ValueError("the header of a page is nested too deeply")
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in _INTEGERS:
            return self.signed()
        if kind == _STRUCT:
            return self.struct(depth)
        if kind in (_BYTE, _DOUBLE, _BINARY):
            length = {_BYTE: 1, _DOUBLE: 8}.get(kind) or self.integer()
            self.position += length
            return None
        if kind not in _LISTS:
            raise ValueError(f"the header of a page has a field of type {kind}")
        head = self.byte()
        count = head >> 4 if head >> 4 < 15 else self.integer()
        for _ in range(count):
            self.value(head & 15 if head & 15 > 2 else _BYTE, depth + 1)
        return None
