"""Arrays of an .npz file from an untrusted source."""

import io
import math
import warnings
import zipfile

import numpy as np
from numpy.lib import format as npy

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_npz_arrays(content: bytes, max_bytes: int) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name, of at most `max_bytes` in all; pickled objects are not read.

    The size of each array is compared with its data before memory is taken. Raises `ValueError` for damaged content.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy warns of strange headers
            return _read_members(content, max_bytes)
    except Exception as error:  # zipfile, zlib, numpy and the parser of the headers raise a score of kinds
        raise ValueError(f"damaged .npz file: {type(error).__name__}: {str(error)[:200]}") from None


def _read_members(content: bytes, max_bytes: int) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if size > max_bytes:
            raise ValueError(f"expands to {size} bytes, more than the {max_bytes} allowed")
        return {member.filename.removesuffix(".npy"): _read_array(archive.read(member)) for member in members}


def _read_array(data: bytes) -> np.ndarray:
    file = io.BytesIO(data)
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"arrays of format {version} are not supported; save them with numpy.savez")
    shape, is_fortran, dtype = _HEADERS[version](file)
    rest = len(data) - file.tell()
    if dtype.hasobject or any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != rest:
        raise ValueError(f"an array of shape {shape} and type {dtype} does not have {rest} bytes")
    array = np.frombuffer(data, dtype, math.prod(shape), file.tell())
    return array.reshape(shape, order="F" if is_fortran else "C")
