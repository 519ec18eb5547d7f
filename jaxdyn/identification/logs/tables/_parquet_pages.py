"""Sizes of the columns of a Parquet file, from its metadata and the headers of its pages (parquet.thrift).

The metadata at the end repeats the sizes of the pages, but decompression follows their headers. pyarrow gives access to
neither in damaged files: some of its properties end the interpreter there.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from jaxdyn.identification.logs.tables._thrift import CompactReader, Struct

_MAGIC = b"PAR1"
_TAIL = 8
#: fields of FileMetaData, SchemaElement, RowGroup and ColumnChunk
_SCHEMA, _ROW_GROUPS = 2, 4
_TYPE, _WIDTH, _CHILDREN = 1, 2, 5
_COLUMNS, _META_DATA = 1, 3
#: fields of ColumnMetaData
_PATH, _NUM_VALUES, _SIZE, _DATA_OFFSET, _DICTIONARY_OFFSET = 3, 5, 7, 9, 11
#: fields of PageHeader, and those with the header of a data page, a dictionary, and a data page of version 2
_UNCOMPRESSED, _COMPRESSED, _KINDS = 2, 3, (5, 7, 8)
_PAGE_VALUES = 1
#: width in bytes of the physical types, except text of any length
_WIDTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
_FIXED_WIDTH = 7


class Chunk(NamedTuple):
    """The values of one column in one group of rows."""

    #: path in the schema, with points
    path: str
    #: bytes of a value, or None for text of any length
    width: int | None
    num_values: int
    #: first byte of its pages in the file, and their number of bytes
    start: int
    size: int


def iterate_chunks(content: bytes) -> Iterator[Chunk]:
    """The column chunks that the metadata of a file describes; raises `ValueError` if it is damaged."""
    size = int.from_bytes(content[-_TAIL:-4], "little")
    if not content.endswith(_MAGIC) or size > len(content) - _TAIL:
        raise ValueError(f"it ends with {content[-4:]!r}, expected {_MAGIC!r} after metadata")
    meta = CompactReader(content, len(content) - _TAIL - size, len(content) - _TAIL).struct()
    leaves = [element for element in _structs(meta, _SCHEMA) if not element.get(_CHILDREN)]
    for group in _structs(meta, _ROW_GROUPS):
        columns = _structs(group, _COLUMNS)
        if len(columns) != len(leaves):
            raise ValueError(f"a group of rows has {len(columns)} columns, expected {len(leaves)}")
        for leaf, column in zip(leaves, columns, strict=True):
            yield _parse_chunk(leaf, column.get(_META_DATA))


def _parse_chunk(leaf: Struct, meta: Any) -> Chunk:
    if not isinstance(meta, dict):
        raise ValueError("a column has no metadata")
    path = meta.get(_PATH)
    if not (isinstance(path, list) and all(isinstance(part, bytes) for part in path)):
        raise ValueError("a column has no path")
    if leaf.get(_TYPE) != meta.get(_TYPE):
        raise ValueError(f"a column has the type {meta.get(_TYPE)}, expected {leaf.get(_TYPE)}")
    kind = _count(meta, _TYPE)
    width = _count(leaf, _WIDTH) if kind == _FIXED_WIDTH else _WIDTHS.get(kind)
    start = _count(meta, _DATA_OFFSET)
    if meta.get(_DICTIONARY_OFFSET):
        start = min(start, _count(meta, _DICTIONARY_OFFSET))
    return Chunk(".".join(part.decode() for part in path), width, _count(meta, _NUM_VALUES), start, _count(meta, _SIZE))


def iterate_pages(content: bytes, start: int, size: int) -> Iterator[tuple[int, int]]:
    """Decompressed size and number of values of each page in `size` bytes from `start`.

    Raises `ValueError` for damaged headers, and for pages that are larger than their column.
    """
    if start + size > len(content):
        raise ValueError(f"a column has {size} bytes at {start}, but the file has {len(content)}")
    stop = start + size
    while start < stop:
        reader = CompactReader(content, start, stop)
        fields = reader.struct()
        plain, packed = _count(fields, _UNCOMPRESSED), _count(fields, _COMPRESSED)
        counts = [_count(fields[key], _PAGE_VALUES) for key in _KINDS if isinstance(fields.get(key), dict)]
        start = reader.position + packed
        if start > stop:
            raise ValueError(f"a page ends at {start}, after its column, which ends at {stop}")
        yield plain, max(counts, default=0)


def _structs(parent: Struct, key: int) -> list[Struct]:
    found = parent.get(key)
    if not isinstance(found, list) or not all(isinstance(x, dict) for x in found):
        raise ValueError(f"field {key} of the metadata is not a list of structures")
    return found


def _count(fields: Struct, key: int) -> int:
    """A field that is a number of bytes or values."""
    count = fields.get(key)
    if not isinstance(count, int) or count < 0:
        raise ValueError(f"field {key} of the metadata or of a page is {str(count)[:40]}, expected a number")
    return count
