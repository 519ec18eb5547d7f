"""Readers of array files: npz, Parquet and MAT."""

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from jaxdyn._errors import JaxdynError
from jaxdyn.identification.logs._table import LogError, Table, split_columns
from jaxdyn.io.files import read_bytes

_MATLAB_73 = b"MATLAB 7.3"
#: exceptions that readers raise for damaged content
_UNREADABLE = (ValueError, TypeError, OSError, EOFError, KeyError, IndexError, MemoryError, OverflowError)


def read_npz(path: Path, max_bytes: int) -> list[Table]:
    """Arrays with samples as rows; a matrix becomes columns `name[0]`, `name[1]`, ... Pickles are not loaded."""
    content = read_bytes(path, max_bytes)
    arrays, units = {}, {}
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            for name in file.files:
                x = file[name]
                if x.dtype.kind in "biuf":
                    arrays[name] = x
                elif name == "about" and x.shape == ():
                    units = _parse_units(str(x))
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise LogError(f"{path}: is not a file of numeric arrays ({error}); write it with numpy.savez") from None
    return [_make_table(path, split_columns(arrays, path), units)]


def _parse_units(text: str) -> dict[str, str]:
    try:
        return {str(k): str(v) for k, v in json.loads(text)["units"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _make_table(path: Path, columns: dict[str, np.ndarray], units=None, refused=None) -> Table:
    if not columns:
        raise LogError(f"{path}: contains no numeric columns; save time, positions and efforts as arrays")
    return Table(str(path), columns, units or {}, refused or {}, 0)


def read_parquet(path: Path, max_bytes: int) -> list[Table]:
    """Numeric columns of a Parquet file, with units from field metadata; lists of fixed size become several columns."""
    try:
        import pyarrow as arrow  # pyright: ignore[reportMissingImports]
        import pyarrow.parquet as parquet  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise JaxdynError('Parquet files need the package pyarrow: pip install "jaxdyn[logs]"') from error
    content = read_bytes(path, max_bytes)
    arrays, units, refused = {}, {}, {}
    try:
        table = parquet.read_table(io.BytesIO(content))
        for field, column in zip(table.schema, table.columns, strict=True):
            x = _to_numbers(arrow, column)
            if x is None:
                refused[field.name] = f"has the type {field.type}; store numbers"
                continue
            arrays[field.name] = x
            units |= {field.name: (field.metadata or {}).get(b"unit", b"").decode()}
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise LogError(f"{path}: is not a valid Parquet table ({error}); write the file again") from None
    return [_make_table(path, split_columns(arrays, path), {k: v for k, v in units.items() if v}, refused)]


def _to_numbers(arrow: Any, column: Any) -> np.ndarray | None:
    kind = column.type
    if arrow.types.is_timestamp(kind):
        return column.cast(arrow.timestamp("ns")).cast(arrow.int64()).to_numpy() * 1e-9
    if arrow.types.is_floating(kind) or arrow.types.is_integer(kind) or arrow.types.is_boolean(kind):
        return np.asarray(column.to_numpy(), float)
    if arrow.types.is_list(kind) or arrow.types.is_fixed_size_list(kind):
        rows = column.to_pylist()
        if rows and all(r is not None and len(r) == len(rows[0]) for r in rows):
            return np.array(rows, float)
    return None


def read_mat(path: Path, max_bytes: int) -> list[Table]:
    """Matrices of a MAT file up to version 7; a field of a struct becomes `name.field`."""
    content = read_bytes(path, max_bytes)
    if content.startswith(_MATLAB_73):
        raise LogError(f"{path}: is a MAT file of version 7.3; save it with save(..., '-v7')")
    try:
        import scipy.io  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise JaxdynError('MAT files need the package scipy: pip install "jaxdyn[logs]"') from error
    try:
        found = scipy.io.loadmat(io.BytesIO(content), struct_as_record=True, squeeze_me=False)
    except (scipy.io.matlab.MatReadError, zlib.error, *_UNREADABLE) as error:
        raise LogError(f"{path}: is not a valid MAT file ({error}); save it with save(..., '-v7')") from None
    arrays: dict[str, np.ndarray] = {}
    for name, value in found.items():
        if not name.startswith("__"):
            _flatten_struct(name, np.asarray(value), arrays)
    return [_make_table(path, split_columns(arrays, path))]


def _flatten_struct(name: str, value: np.ndarray, arrays: dict[str, np.ndarray]):
    if value.dtype.names and value.size == 1:
        for field in value.dtype.names:
            _flatten_struct(f"{name}.{field}", np.asarray(value.reshape(-1)[0][field]), arrays)
    elif value.dtype.kind in "biuf":
        column = value.ndim == 2 and 1 in value.shape
        arrays[name] = value.reshape(-1) if column else value
