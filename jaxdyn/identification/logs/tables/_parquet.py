"""Reader of Parquet files."""

from collections.abc import Set
from pathlib import Path
from typing import Any

import numpy as np

from jaxdyn._errors import JaxdynError
from jaxdyn.identification.logs.tables._budget import Budget
from jaxdyn.identification.logs.tables._parquet_pages import iterate_chunks, iterate_pages
from jaxdyn.identification.logs.tables._table import LogError, Table, make_table, split_columns
from jaxdyn.io.files import read_bytes

#: maximal number of elements in a list of the metadata, such as columns and row groups
_MAX_ELEMENTS = 100_000
_NUMBER = 8
#: maximal width of numbers in bytes
_MAX_WIDTH = 16


def read_parquet(path: Path, max_bytes: int) -> list[Table]:
    """Numeric columns of a Parquet file, with units from field metadata; lists of fixed size become several columns."""
    try:
        import pyarrow as arrow  # pyright: ignore[reportMissingImports]
        import pyarrow.compute  # pyright: ignore[reportMissingImports]
        import pyarrow.parquet as parquet  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise JaxdynError('Parquet files need the package pyarrow: pip install "jaxdyn[logs]"') from error
    content = read_bytes(path, max_bytes)
    arrays, units, refused = {}, {}, {}
    try:
        file = parquet.ParquetFile(arrow.BufferReader(content), thrift_container_size_limit=_MAX_ELEMENTS)
        fields = list(file.schema_arrow)
        _check_names([field.name for field in fields])
        chosen = [field.name for field in fields if _is_numeric(arrow, field.type)]
        _check_sizes(content, set(chosen), max_bytes)
        table = file.read(columns=chosen, use_threads=False)
        for field in fields:
            x = _to_numbers(arrow, table.column(field.name)) if _is_numeric(arrow, field.type) else None
            if x is None:
                refused[field.name] = f"has the type {field.type}; store numbers, or lists of equal lengths"
                continue
            arrays[field.name] = x
            units |= {field.name: (field.metadata or {}).get(b"unit", b"").decode()}
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise LogError(f"{path}: is not a valid Parquet table ({error}); write the file again") from None
    return [make_table(path, split_columns(arrays, path), {k: v for k, v in units.items() if v}, refused)]


def _check_names(names: list[str]):
    if len(set(names)) < len(names):
        raise ValueError("several columns have the same name")


def _check_sizes(content: bytes, chosen: Set[str], max_bytes: int):
    """Checks the numbers that the metadata declares, and the pages that are there, of the columns to read."""
    declared, found = Budget(max_bytes), Budget(max_bytes)
    for chunk in iterate_chunks(content):
        if not _belongs_to(chunk.path, chosen):
            continue
        if chunk.width is None or chunk.width > _MAX_WIDTH:  # pyarrow selects columns by prefix
            raise ValueError(f"column {chunk.path!r} has no numbers, but begins with the name of a column of numbers")
        declared.take(_NUMBER * chunk.num_values)
        for size, count in iterate_pages(content, chunk.start, chunk.size):
            found.take(max(size, _NUMBER * count))


def _belongs_to(path: str, names: Set[str]) -> bool:
    """True if a leaf of the schema is a column of one of the names, or inside one."""
    parts = path.split(".")
    return any(".".join(parts[: k + 1]) in names for k in range(len(parts)))


def _is_numeric(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        return _is_number(types, kind.value_type)
    return types.is_timestamp(kind) or _is_number(types, kind)


def _is_number(types: Any, kind: Any) -> bool:
    return types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)


def _to_numbers(arrow: Any, column: Any) -> np.ndarray | None:
    """The numbers of a column; None for lists of different lengths or with gaps."""
    kind = column.type
    if arrow.types.is_timestamp(kind):
        return np.asarray(column.cast(arrow.timestamp("ns")).cast(arrow.int64()).to_numpy(), float) * 1e-9
    if not (arrow.types.is_list(kind) or arrow.types.is_fixed_size_list(kind)):
        return np.asarray(column.to_numpy(), float)
    lists = column.combine_chunks()
    lengths = np.asarray(arrow.compute.list_value_length(lists).to_numpy(zero_copy_only=False), float)
    if not len(lengths) or lists.null_count or not lengths[0] or np.any(lengths != lengths[0]):
        return None
    numbers = lists.flatten()
    if numbers.null_count:
        return None
    return np.asarray(numbers.to_numpy(zero_copy_only=False), float).reshape(len(lengths), -1)
