"""Parsing of MAT files of version 5, which MATLAB writes with `-v6` and `-v7` (MAT-File Format, R2023a, chapter 1).

Only real matrices and structures of them are read, since logs consist of these; elements of other classes are skipped
by their length. All sizes are checked against the bytes that are there.
"""

import math
import struct
import zlib
from typing import NamedTuple

import numpy as np

from jaxdyn.identification.logs.tables._budget import Budget

_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
#: types of stored numbers
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_STRUCTURE, _OBJECT = 2, 3
#: classes of matrices of numbers: double, single, and integers of 8 to 64 bits
_NUMERIC = range(6, 16)
_COMPLEX = 0x0800
_MAX_DEPTH = 50
_CHUNK = 1 << 20


class _Element(NamedTuple):
    """A data element: its type and its content, without padding."""

    kind: int
    data: memoryview


class _Elements:
    """Reader of the elements that follow each other in some bytes."""

    def __init__(self, data: memoryview, order: str):
        self.data, self.order, self.position = data, order, 0

    def __bool__(self) -> bool:
        """True if bytes are left."""
        return self.position < len(self.data)

    def read(self) -> _Element:
        """The next element."""
        start = self.position
        if len(self.data) - start < 8:
            raise ValueError(f"{len(self.data) - start} bytes remain, expected an element")
        kind, size = struct.unpack_from(f"{self.order}II", self.data, start)
        if kind >> 16:  # a small element: size and content in the tag
            kind, size, start, self.position = kind & 0xFFFF, kind >> 16, start + 4, start + 8
            if size > 4:
                raise ValueError(f"a small element has {size} bytes, expected at most 4")
        else:
            start += 8
            self.position = start + size + (0 if kind == _COMPRESSED else -size % 8)
        if size > len(self.data) - start:
            raise ValueError(f"an element has {size} bytes, but {len(self.data) - start} remain")
        return _Element(kind, self.data[start : start + size])

    def read_numbers(self) -> np.ndarray:
        """The next element, which must consist of numbers."""
        kind, data = self.read()
        if kind not in _TYPES:
            raise ValueError(f"an element has the type {kind}, expected numbers")
        dtype = np.dtype(f"{self.order}{_TYPES[kind]}")
        if len(data) % dtype.itemsize:
            raise ValueError(f"an element has {len(data)} bytes for numbers of {dtype.itemsize} bytes")
        return np.frombuffer(data, dtype)


def parse_mat(content: bytes, max_bytes: int) -> dict[str, np.ndarray]:
    """Real matrices by name; the fields of a structure are called `name.field`.

    Compressed variables may decompress to `max_bytes` in all. Raises `ValueError` for damaged files.
    """
    mark = content[126:128]
    if len(content) < _HEADER or mark not in (b"IM", b"MI"):
        raise ValueError("it does not have the header of version 5; versions 4 and 7.3 are not supported")
    order = "<" if mark == b"IM" else ">"
    (version,) = struct.unpack_from(f"{order}H", content, 124)
    if version != 0x0100:
        raise ValueError(f"it has the version {version:#06x}, expected 0x0100")
    parser, elements = _Parser(order), _Elements(memoryview(content)[_HEADER:], order)
    budget = Budget(max_bytes)
    while elements:
        element = elements.read()
        if element.kind == _COMPRESSED:
            element = _Elements(memoryview(_inflate(element.data, budget)), order).read()
        if element.kind == _MATRIX:
            parser.parse(element.data)
    return parser.arrays


def _inflate(data: memoryview, budget: Budget) -> bytes:
    """The content of a compressed element, counted while it is decompressed."""
    inflater, parts = zlib.decompressobj(), []
    rest = bytes(data)
    try:
        while not inflater.eof:
            part = inflater.decompress(rest, _CHUNK)
            rest = inflater.unconsumed_tail
            if not part and not rest:
                raise ValueError("a compressed element ends early")
            budget.take(len(part))
            parts.append(part)
    except zlib.error as error:
        raise ValueError(f"a compressed element is damaged ({error})") from None
    return b"".join(parts)


class _Parser:
    """Collects the matrices of a file."""

    def __init__(self, order: str):
        self.order = order
        self.arrays: dict[str, np.ndarray] = {}

    def parse(self, data: memoryview, name: str = "", depth: int = 0):
        """Parses a matrix element; inside a structure, `name` is given."""
        if depth > _MAX_DEPTH:
            raise ValueError(f"structures are nested deeper than {_MAX_DEPTH}")
        if not data:
            return  # an empty matrix
        elements = _Elements(data, self.order)
        flags = elements.read_numbers()
        if len(flags) != 2 or flags.dtype.itemsize != 4:
            raise ValueError(f"a matrix has {len(flags)} flags, expected 2")
        kind = int(flags[0]) & 0xFF
        if kind not in (_STRUCTURE, _OBJECT, *_NUMERIC) or int(flags[0]) & _COMPLEX:
            return
        shape = tuple(int(n) for n in elements.read_numbers())
        stored = elements.read()  # empty inside a structure
        name = name or _decode_name(stored.data)
        if len(shape) < 2 or min(shape) < 0:
            raise ValueError(f"{name[:80]!r} has the dimensions {shape[:8]}")
        if kind in _NUMERIC:
            self._store(name, _read_matrix(elements.read_numbers(), shape, name))
        elif math.prod(shape) == 1:
            if kind == _OBJECT:
                elements.read()  # the name of its class
            self._parse_fields(elements, name, depth)

    def _parse_fields(self, elements: _Elements, name: str, depth: int):
        lengths = elements.read_numbers()
        length = int(lengths[0]) if len(lengths) == 1 else 0
        names = bytes(elements.read().data)
        if length < 1 or len(names) % length:
            raise ValueError(f"structure {name[:80]!r} has {len(names)} bytes of field names of {length} bytes each")
        for k in range(0, len(names), length):
            field = elements.read()
            if field.kind != _MATRIX:
                raise ValueError(f"a field of {name[:80]!r} has the type {field.kind}, expected a matrix")
            self.parse(field.data, f"{name}.{_decode_name(memoryview(names)[k : k + length])}", depth + 1)

    def _store(self, name: str, array: np.ndarray):
        if name in self.arrays:
            raise ValueError(f"two matrices are called {name[:80]!r}")
        self.arrays[name] = array


def _decode_name(data: memoryview) -> str:
    name = bytes(data).partition(b"\0")[0].decode("latin-1")
    if not name.isprintable() or not name:
        raise ValueError(f"{name[:80]!r} is not the name of a variable or field")
    return name


def _read_matrix(numbers: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    if math.prod(shape) != len(numbers):
        raise ValueError(f"{name[:80]!r} has {len(numbers)} numbers for the dimensions {shape[:8]}")
    if len(shape) > 32 or max(shape) > 2**62:
        raise ValueError(f"{name[:80]!r} has the dimensions {shape[:8]}")
    return numbers.reshape(shape[::-1]).T
