"""Logs as MAT files of version 5, with elements that are packed again after a change."""

import io
import random
import struct
import zlib
from collections.abc import Sequence

import numpy as np

from jaxdyn.identification import read_tables
from tests.fuzz.mutators import any_of, mutate_bytes
from tests.fuzz.target import MAX_BYTES, MAX_MEMORY, Target, as_file, stored_regressions

_MATRIX, _COMPRESSED = 14, 15


def _seeds() -> list[bytes]:
    import scipy.io

    t = np.arange(6) * 0.1
    variables = (
        {"t": t, "q": np.outer(t, [1, 2]), "name": "text", "n": np.arange(6, dtype=np.int16)},
        {"log": {"t": t, "motor": {"i": t.astype(np.float32)}}, "gain": 3.0, "cell": np.array([t, "x"], object)},
        {"t": t, "z": t + 1j, "valid": t > 0.2, "empty": np.zeros((0, 3))},
    )
    contents = []
    for compress, values in ((False, variables[0]), (True, variables[1]), (False, variables[1]), (True, variables[2])):
        file = io.BytesIO()
        scipy.io.savemat(file, values, do_compression=compress)
        contents.append(file.getvalue())
    return contents


def _elements(data: bytes) -> list[tuple[int, bytes]]:
    """Types and contents of top-level elements; the rest of damaged data is left out."""
    found = []
    while len(data) >= 8 and len(found) < 1000:
        kind, size = struct.unpack("<II", data[:8])
        found.append((kind, data[8 : 8 + size]))
        data = data[8 + size + (0 if kind == _COMPRESSED else -size % 8) :]
    return found


def _element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(0 if kind == _COMPRESSED else -len(data) % 8)


def _mutate_elements(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Changes a variable inside its compression."""
    elements = _elements(content[128:])
    if not elements:
        return mutate_bytes(content, rng, seeds)
    k = rng.randrange(len(elements))
    kind, data = elements[k]
    if kind == _COMPRESSED:
        data = zlib.decompress(data)
    else:
        data = _element(kind, data)
    i = 4 * rng.randrange(len(data) // 4 + 1)
    match rng.randrange(4):
        case 0:
            data = (
                data[:i] + struct.pack("<I", rng.choice((0, 1, 5, 6, 9, 14, 15, 17, 2**31, 2**32 - 1))) + data[i + 4 :]
            )
        case 1:
            data = mutate_bytes(data, rng, [data])
        case 2:
            data = data[:i] + data[:i] + data[i:]
        case _:
            data += bytes(rng.choice((8, 1_000, 300_000)))
    elements[k] = rng.choice(((_COMPRESSED, zlib.compress(data)), (_MATRIX, data[8:])))
    return content[:128] + b"".join(_element(*x) for x in elements)


def _matrix(dimensions: tuple[int, ...], name: bytes, data: bytes) -> bytes:
    """A matrix of doubles, stored as bytes."""
    flags = _element(6, struct.pack("<II", 6, 0))
    parts = flags + _element(5, struct.pack(f"<{len(dimensions)}i", *dimensions)) + _element(1, name)
    return _element(_MATRIX, parts + _element(2, data))


def _nested(depth: int) -> bytes:
    """A structure in a structure, many times."""
    inner = _matrix((3, 1), b"", bytes(3))
    for _ in range(depth):
        head = _element(6, struct.pack("<II", 2, 0)) + _element(5, struct.pack("<2i", 1, 1)) + _element(1, b"s")
        inner = _element(_MATRIX, head + _element(5, struct.pack("<i", 2)) + _element(1, b"s\0") + inner)
    return inner


def _regressions() -> dict[str, bytes]:
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM"
    large = zlib.compress(_matrix((40_000_000, 1), b"t", bytes(40_000_000)), 9)
    return {
        **stored_regressions("mat")(),
        "expansion": head + _element(_COMPRESSED, large),
        "nesting": head + _nested(3000),
    }


TARGETS = [
    Target(
        "mat",
        _seeds,
        as_file(".mat", lambda path: read_tables(path, max_bytes=MAX_BYTES)),
        any_of(mutate_bytes, _mutate_elements),
        _regressions,
        MAX_MEMORY // 2,
    )
]
