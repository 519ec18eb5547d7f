"""Decompression of the chunks of bags, to the size that they declare."""

import bz2
from collections.abc import Callable
from typing import Any

from jaxdyn._errors import JaxdynError
from jaxdyn.identification.logs.tables import Budget


def decompress(compression: str, content: bytes, size: int, budget: Budget) -> bytes:
    """The content of a chunk of a declared size, which counts towards the budget before it is decompressed.

    `compression` is "" or "none", "bz2", "lz4" or "zstd". Raises `ValueError` for other names, damaged content and
    content of another size; `JaxdynError` if a package is missing.
    """
    if compression in ("", "none"):
        plain = content
    elif compression in _METHODS:
        budget.take(size)
        plain = _METHODS[compression](content, size)
    else:
        raise ValueError(f"a chunk has the compression {compression[:40]!r}; expected none, bz2, lz4 or zstd")
    if len(plain) != size:
        raise ValueError(f"a chunk has {len(plain)} bytes, expected {size}")
    return plain


def _decompress_bz2(content: bytes, size: int) -> bytes:
    try:
        return bz2.BZ2Decompressor().decompress(content, max_length=size)
    except (OSError, EOFError) as error:
        raise ValueError(f"a chunk compressed with bz2 is damaged ({error})") from None


def _decompress_lz4(content: bytes, size: int) -> bytes:
    try:
        import lz4.frame as lz4  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise _missing("lz4") from error
    try:
        return lz4.LZ4FrameDecompressor().decompress(content, max_length=size)
    except (RuntimeError, EOFError) as error:
        raise ValueError(f"a chunk compressed with lz4 is damaged ({error})") from None


def _decompress_zstd(content: bytes, size: int) -> bytes:
    try:
        import zstandard  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise _missing("zstandard") from error
    if not size:
        return b""
    try:
        declared = zstandard.frame_content_size(content)  # -1 if the frame does not contain it
        if declared > size:
            raise ValueError(f"a chunk has {declared} bytes, expected {size}")
        return zstandard.ZstdDecompressor().decompress(content, max_output_size=size)
    except zstandard.ZstdError as error:
        raise ValueError(f"a chunk compressed with zstd is damaged ({error})") from None


def _missing(package: Any) -> JaxdynError:
    return JaxdynError(f'a chunk of this bag needs the package {package}: pip install "jaxdyn[logs]"')


_METHODS: dict[str, Callable[[bytes, int], bytes]] = {
    "bz2": _decompress_bz2,
    "lz4": _decompress_lz4,
    "zstd": _decompress_zstd,
}
