"""Logs as Parquet files: damaged bytes, and tables of other types, encodings and compressions."""

import io
import random
from collections.abc import Sequence

import numpy as np

from jaxdyn.identification import read_tables
from tests.fuzz.mutators import any_of, mutate_bytes
from tests.fuzz.target import MAX_BYTES, MAX_MEMORY, Target, as_file, stored_regressions

_COMPRESSIONS = ("none", "snappy", "gzip", "zstd", "lz4", "brotli")


def _write(columns, compression: str = "snappy", **options) -> bytes:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    file = io.BytesIO()
    fields = [arrow.field(name, x.type, metadata={"unit": "rad"}) for name, x in columns]
    table = arrow.Table.from_arrays([x for _, x in columns], schema=arrow.schema(fields))
    parquet.write_table(table, file, compression=compression, **options)
    return file.getvalue()


def _columns(count: int) -> list:
    """Columns of all kinds."""
    import pyarrow as arrow

    t = np.arange(count) * 0.1
    some = [None if k % 3 == 1 else k for k in range(count)]
    pairs = [[1.0, 2.0]] * count
    return [
        ("t", arrow.array(t)),
        ("single", arrow.array(t.astype(np.float32))),
        ("half", arrow.array(t.astype(np.float16))),
        ("n", arrow.array(some, arrow.int16())),
        ("large", arrow.array(some, arrow.uint64())),
        ("flag", arrow.array([None if k is None else k > 2 for k in some])),
        ("stamp", arrow.array(some, arrow.timestamp("us"))),
        ("pair", arrow.array(pairs, arrow.list_(arrow.float64()))),
        ("fixed", arrow.array(pairs, arrow.list_(arrow.float64(), 2))),
        ("ragged", arrow.array([[1.0] * (k % 3) for k in range(count)])),
        ("holes", arrow.array([[1.0, None]] * count)),
        ("words", arrow.array([["a", "b"]] * count)),
        ("text", arrow.array(["x"] * count)),
        ("struct", arrow.array([{"a": 1}] * count)),
        ("decimal", arrow.array([1] * count, arrow.decimal128(10))),
        ("kind", arrow.array(["x"] * count).dictionary_encode()),
        ("nothing", arrow.nulls(count)),
    ]


def _seeds() -> list[bytes]:
    columns = _columns(6)
    plain = [x for x in columns if x[0] in ("t", "n", "fixed")]
    return [_write(columns), _write(plain, "zstd"), _write(plain, "none", use_dictionary=False)]


def _mutate_table(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Another table: any columns, names that occur twice, any compression and encoding."""
    columns = _columns(rng.choice((0, 1, 2, 7)))
    chosen = rng.choices(columns, k=rng.randrange(1, 5))
    if rng.random() < 0.3:
        chosen = [(rng.choice(("t", "a", "")), x) for _, x in chosen]
    size = rng.choice((None, 1, 2))
    return _write(chosen, rng.choice(_COMPRESSIONS), use_dictionary=rng.random() < 0.5, row_group_size=size)


def _mutate_end(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Changes the metadata at the end, and repairs its length."""
    if len(content) < 12:
        return mutate_bytes(content, rng, seeds)
    start = max(4, len(content) - 8 - int.from_bytes(content[-8:-4], "little"))
    meta = content[start:-8]
    meta = mutate_bytes(meta, rng, [meta])
    return content[:start] + meta + len(meta).to_bytes(4, "little") + b"PAR1"


def _regressions() -> dict[str, bytes]:
    import pyarrow as arrow

    zeros = arrow.array(np.zeros(5_000_000))
    words = arrow.array(["x" * 1_000_000] * 40)
    return {
        **stored_regressions("parquet")(),
        **{f"expansion {x}": _write([("t", zeros)], x) for x in ("snappy", "zstd", "none")},
        "expansion plain": _write([("t", zeros)], "zstd", use_dictionary=False),
        "expansion one page": _write([("t", zeros)], "zstd", use_dictionary=False, data_page_size=100_000_000),
        "expansion of text": _write([("t", zeros[:40]), ("text", words)], "zstd"),
    }


TARGETS = [
    Target(
        "parquet",
        _seeds,
        as_file(".parquet", lambda path: read_tables(path, max_bytes=MAX_BYTES)),
        any_of(mutate_bytes, _mutate_end, _mutate_table),
        _regressions,
        MAX_MEMORY // 2,
    )
]
