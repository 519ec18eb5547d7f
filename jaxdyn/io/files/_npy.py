"""Arrays in the npy format and archives of them, from files that may be damaged or hostile."""

import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Collection

import numpy as np

_MAGIC = b"\x93NUMPY"
#: the format character of the header's length, and the encoding of the header, by version
_VERSIONS = {1: ("<H", "latin-1"), 2: ("<I", "latin-1"), 3: ("<I", "utf-8")}
_MAX_HEADER = 10_000
_ENTRY = re.compile(
    r"""\s*(?:'|")(descr|fortran_order|shape)(?:'|")\s*:\s*
    (?:'([^']{1,40})'|"([^"]{1,40})"|(True|False)|\((\s*|\s*\d+L?(?:\s*,\s*\d+L?)*\s*,?\s*)\))\s*(?:,|(?=\}))""",
    re.VERBOSE,
)
_DTYPE = re.compile(r"[<>=|]?[?biufcSUmM][0-9]{0,9}(\[[A-Za-z0-9]{1,8}\])?")
_IS_ENCRYPTED = 1


def read_npy(content: bytes) -> np.ndarray:
    """An array of numbers, text or times in the npy format; raises `ValueError` for other content.

    The header is matched against its grammar: no part of it is evaluated. The shape is checked against the number of
    bytes before memory is allocated.
    """
    if content[:6] != _MAGIC or len(content) < 12 or content[6] not in _VERSIONS:
        raise ValueError("it is not in the npy format")
    kind, encoding = _VERSIONS[content[6]]
    start = 8 + struct.calcsize(kind)
    (length,) = struct.unpack(kind, content[8:start])
    if length > min(_MAX_HEADER, len(content) - start):
        raise ValueError(f"its header of {length} bytes is too long")
    dtype, is_column_major, shape = _parse_header(content[start : start + length].decode(encoding))
    count = math.prod(shape)
    if count * dtype.itemsize != len(content) - start - length:
        raise ValueError(f"a shape {shape} that does not fit its bytes")
    array = np.frombuffer(content, dtype, count, start + length).copy()
    return array.reshape(shape[::-1]).T if is_column_major else array.reshape(shape)


def _parse_header(text: str) -> tuple[np.dtype, bool, tuple[int, ...]]:
    """Type, order and shape from the text of a header."""
    text = " ".join(text.split())  # the pattern takes quadratic time for long runs of spaces
    entries = {match[1]: match for match in _ENTRY.finditer(text)}
    rest = _ENTRY.sub("", text)
    if set(entries) != {"descr", "fortran_order", "shape"} or not re.fullmatch(r"\{\s*\}", rest):
        raise ValueError(f"its header {text[:80]!r} does not describe an array of numbers")
    name = entries["descr"][2] or entries["descr"][3] or ""
    order, dimensions = entries["fortran_order"][4], entries["shape"][5]
    if not _DTYPE.fullmatch(name) or order is None or dimensions is None:
        raise ValueError(f"its header {text[:80]!r} does not describe an array of numbers")
    try:
        dtype = np.dtype(name)
        shape = tuple(int(n.rstrip("L")) for n in map(str.strip, dimensions.split(",")) if n)
    except (TypeError, OverflowError, MemoryError):
        raise ValueError(f"its type {name!r} is unknown") from None
    if not dtype.itemsize or len(shape) > 32 or any(n > 2**62 for n in shape):
        raise ValueError(f"its header {text[:80]!r} does not describe an array of numbers")
    return dtype, order == "True", shape


def read_members(content: bytes, max_bytes: int, methods: Collection[int] = (zipfile.ZIP_STORED,)) -> dict[str, bytes]:
    """The members of a zip archive, which may be compressed by `methods` (stored or deflated) to `max_bytes` in all.

    Raises `ValueError` for damaged archives, members that occur twice, and other methods. The declared sizes are
    checked before a member is read; a member that has another size is refused while it is read.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = archive.infolist()
            _check_members(infos, len(content), max_bytes, methods)
            return {info.filename: _read_member(archive, info) for info in infos}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, OverflowError, RuntimeError, struct.error) as error:
        raise ValueError(str(error) or "it ends early") from None


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    with archive.open(info) as file:
        return file.read(info.file_size)  # a read without a size decompresses all content before it compares the size


def _check_members(infos: list[zipfile.ZipInfo], size: int, max_bytes: int, methods: Collection[int]):
    if sum(info.compress_size for info in infos) > size:
        raise ValueError("its members are larger than the file")
    if sum(info.file_size for info in infos) > max_bytes:
        raise ValueError(f"it expands to more than the {max_bytes} bytes allowed; if you trust it, raise the limit")
    if len({info.filename for info in infos}) < len(infos):
        raise ValueError("a member occurs twice")
    for info in infos:
        if info.compress_type not in methods:
            raise ValueError(f"member {info.filename[:80]!r} is compressed by method {info.compress_type}")
        if info.flag_bits & _IS_ENCRYPTED:
            raise ValueError(f"member {info.filename[:80]!r} is encrypted")
        if info.compress_type == zipfile.ZIP_STORED and info.compress_size != info.file_size:
            raise ValueError(f"member {info.filename[:80]!r} has two sizes")
