"""Readers of array files: npz and MAT."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jaxdyn.identification.logs.tables._mat import parse_mat
from jaxdyn.identification.logs.tables._table import LogError, Table, make_table, parse_units, split_columns
from jaxdyn.io.files import read_bytes, read_members, read_npy

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_MATLAB_73 = b"MATLAB 7.3"
_MATLAB = b"MATLAB 5.0 MAT-file"


def read_npz(path: Path, max_bytes: int) -> list[Table]:
    """Arrays with samples as rows; a matrix becomes columns `name[0]`, `name[1]`, ... Pickles are not loaded."""
    content = read_bytes(path, max_bytes)
    arrays, units = {}, {}
    try:
        for member, data in read_members(content, max_bytes, _METHODS).items():
            name, x = member.removesuffix(".npy"), read_npy(data)
            if name in arrays:
                raise ValueError(f"it has two arrays {name!r}")
            if x.dtype.kind in "biuf":
                arrays[name] = x
            elif name == "about" and x.dtype.kind == "U" and x.shape == ():
                units = parse_units(str(x))
    except ValueError as error:
        raise LogError(f"{path}: is not a file of numeric arrays ({error}); write it with numpy.savez") from None
    return [make_table(path, split_columns(arrays, path), units)]


def read_mat(path: Path, max_bytes: int) -> list[Table]:
    """Matrices of a MAT file up to version 7; a field of a struct becomes `name.field`."""
    content = read_bytes(path, max_bytes)
    if content.startswith(_MATLAB_73):
        raise LogError(f"{path}: is a MAT file of version 7.3; save it with save(..., '-v7')")
    try:
        arrays = parse_mat(content, max_bytes)
    except ValueError as error:
        raise LogError(f"{path}: is not a valid MAT file ({error}); save it with save(..., '-v7')") from None
    return [make_table(path, split_columns(_as_columns(arrays), path))]


def _as_columns(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays, with row and column vectors as arrays with one axis."""
    return {name: x.reshape(-1) if x.ndim == 2 and 1 in x.shape else x for name, x in arrays.items()}
