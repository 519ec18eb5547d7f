"""Log files that are damaged or made to harm: each is refused with its reason, in bounded time and memory."""

import gzip
import io
import json
import struct
import time
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.io

import jaxdyn as jd
from jaxdyn.identification import LogError, read_tables
from jaxdyn.io.files import read_members, read_npy
from tests.fuzz.registry import find_targets

DATA = Path(__file__).parents[1] / "fuzz" / "data"
TARGETS = find_targets()


def read(folder, ending: str, content: bytes, **options):
    path = folder / f"log{ending}"
    path.write_bytes(content)
    return read_tables(path, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "label", "message"),
    [
        ("npz", "expansion", "expands to more than the 1000000 bytes"),
        ("npz", "hidden expansion", "Bad CRC-32"),
        ("mat", "expansion", "expands to more than the 1000000 bytes"),
        ("mat", "nesting", "nested deeper than 50"),
        ("mcap", "expansion zstd", "expands to more than"),
        ("mcap", "hidden expansion zstd", "a chunk has 40000000 bytes, expected 1000"),
        ("mcap", "hidden expansion lz4", "does not match its checksum"),
        ("mcap", "many chunks lz4", "expands to more than"),
        ("bag", "many chunks b'bz2'", "expands to more than"),
        ("parquet", "expansion plain", "expands to more than"),
        ("db3", "view 1", "has no table 'messages'"),
        ("db3", "generated", "are generated or hidden"),
        ("db3", "shared pages", "hold more bytes than the file"),
    ],
)
def test_expansion_is_refused_before_it_takes_memory(name, label, message):
    target = TARGETS[name]
    content = target.regressions()[label]
    with pytest.raises(LogError, match=message):
        target.run(content)
    tracemalloc.start()
    try:
        with pytest.raises(LogError):
            target.run(content)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000 + 4 * len(content)
    finally:
        tracemalloc.stop()


def test_compressed_tables_are_bounded_while_they_are_read(tmp_path):
    content = gzip.compress(b"t,q\n" + b"0,1\n" * 1_000_000)
    with pytest.raises(LogError, match="expands to more than the 100000 bytes"):
        read(tmp_path, ".csv.gz", content, max_bytes=100_000)
    assert read(tmp_path, ".csv.gz", content)[0].num_rows == 1_000_000


def test_a_file_that_ended_the_interpreter_is_refused(tmp_path):
    with pytest.raises(LogError, match="is not a valid MAT file"):
        read(tmp_path, ".mat", (DATA / "mat_segfault").read_bytes())


@pytest.mark.parametrize("compress", [False, True])
def test_mat_files_agree_with_scipy(tmp_path, compress):
    rng = np.random.default_rng(0)
    kinds = ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
    arrays = {f"x{k}": (100 * rng.random((7, 3))).astype(kind) for k, kind in enumerate(kinds)}
    arrays |= {"small": np.arange(7.0), "logical": rng.random(7) > 0.5}  # integers are stored in fewer bytes
    nested = {"a": {"b": np.arange(7) * 1e9, "text": "x"}, "c": rng.random((1, 7)), "cell": np.array([1, "x"], object)}
    skipped = {"z": np.arange(7) * 1j, "s": scipy.sparse.eye_array(7), "text": "abc", "empty": np.zeros((0, 3))}
    file = io.BytesIO()
    scipy.io.savemat(file, arrays | {"log": nested} | skipped, do_compression=compress)
    (table,) = read(tmp_path, ".mat", file.getvalue())
    expected = {f"{name}[{k}]": x[:, k] for name, x in arrays.items() if x.ndim == 2 for k in range(3)}
    expected |= {name: x for name, x in arrays.items() if x.ndim == 1}
    expected |= {"log.a.b": nested["a"]["b"], "log.c": nested["c"][0]}
    assert set(table.columns) == set(expected)
    for name, x in expected.items():
        np.testing.assert_array_equal(table.columns[name], x.astype(float))


def test_big_endian_mat_files_are_read(tmp_path):
    element = lambda kind, data: struct.pack(">II", kind, len(data)) + data + bytes(-len(data) % 8)
    small = struct.pack(">HH4s", 1, 1, b"t")
    flags, shape = element(6, struct.pack(">II", 6, 0)), element(5, struct.pack(">ii", 3, 1))
    matrix = element(14, flags + shape + small + element(9, struct.pack(">3d", 1, 2, 4)))
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\1\0MI"
    (table,) = read(tmp_path, ".mat", head + matrix)
    np.testing.assert_array_equal(table.columns["t"], [1, 2, 4])
    for old, new, message in (
        (b"\1\0MI", b"\2\0MI", "has the version 0x0200"),
        (b"\1\0MI", b"\1\0XX", "versions 4 and 7.3 are not supported"),
        (struct.pack(">ii", 3, 1), struct.pack(">ii", 4, 1), "has 3 numbers for the dimensions"),
        (struct.pack(">ii", 3, 1), struct.pack(">ii", -3, -1), "has the dimensions"),
        (small, struct.pack(">HH4s", 1, 1, b"\0"), "is not the name of a variable"),
        (struct.pack(">II", 9, 24), struct.pack(">II", 17, 24), "has the type 17, expected numbers"),
    ):
        with pytest.raises(LogError, match=message):
            read(tmp_path, ".mat", (head + matrix).replace(old, new))
    with pytest.raises(LogError, match="is a MAT file of version 7.3; save it with"):
        read(tmp_path, ".mat", b"MATLAB 7.3 MAT-file".ljust(600))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (2, "has two values of 'arrival'"),
        (3, "has two values of 'a'"),
        (4, "has two values of 'a.b'"),
        (5, "has two values of 'position.j'"),
        (6, "has a int for position, expected a list"),
        (7, "has a str for position, expected a number"),
        (9, "has a list for header, expected an object"),
        (10, "has a str for sec, expected a number"),
        (11, "beyond double precision"),
        (12, "column names that are much longer"),
        (13, "recursion"),
    ],
)
def test_json_messages_of_another_form(index, message):
    with pytest.raises(LogError, match=rf"topic '/motor', message 0: .*{message}"):
        TARGETS["mcap"].run(TARGETS["mcap"].regressions()[f"json {index}"])


@pytest.mark.parametrize("index", [0, 1])
def test_json_messages(index):
    assert TARGETS["mcap"].run(TARGETS["mcap"].regressions()[f"json {index}"])


@pytest.mark.parametrize("text", ["UPDATE messages SET timestamp", "UPDATE topics SET name = NULL", "CAST(x'ff00fe'"])
def test_databases_with_values_of_other_types(text):
    from tests.fuzz.targets.bags import _STATEMENTS, _TABLES, _database

    (statement, *_) = [x for x in _STATEMENTS if text in x]
    with pytest.raises(LogError, match="is not a rosbag2 database|record the bag again"):
        TARGETS["db3"].run(_database([*_TABLES, statement]))


def test_rows_of_bags_are_in_the_order_of_arrival():
    from tests.fuzz.targets.mcap import json_file

    messages = [json.dumps({"x": k}).encode() for k in range(4)]
    (table,) = TARGETS["mcap"].run(json_file(*messages, times=[9, 8, 2, 2]))
    np.testing.assert_array_equal(table.columns["x"], [2, 3, 1, 0])
    np.testing.assert_allclose(table.columns["arrival"], [2e-9, 2e-9, 8e-9, 9e-9], rtol=1e-15)


def test_wide_tables_are_read_in_linear_time(tmp_path):
    names = [f"c{k}" for k in range(100_000)]
    text = "\n".join([",".join(names), *[",".join(["1.5"] * len(names))] * 2])
    start = time.perf_counter()
    (table,) = read(tmp_path, ".csv", text.encode())
    assert time.perf_counter() - start < 20 and len(table.columns) == len(names)
    with pytest.raises(LogError, match="several columns named 'c0'"):
        read(tmp_path, ".csv", text.replace("c1,", "c0,").encode())
    with pytest.raises(LogError, match="a cell that cannot be read"):
        read(tmp_path, ".csv", b't,q\n0,"' + b"1" * 200_000 + b'"\n')


@pytest.mark.parametrize("joint", ["a\nb", "a\r\nb", 'a "quoted", name', "#hash", "semi;colon\ttab", "ünï"])
def test_csv_files_of_trajectories_with_any_joint_name_are_read(tmp_path, joint):
    builder = jd.ModelBuilder()
    builder.add_link("l", "world", jd.joints.Revolute([0, 1, 0]), jd.spatial.point_mass(1.0), joint_name=joint)
    t, q, steps = jnp.arange(3.0), jnp.ones((3, 1)), jnp.zeros((), int)
    path = jd.Trajectory(t, q, 2 * q, None, t < 9, steps, steps, jd.System(builder.build()))
    jd.simulation.to_csv(path, tmp_path / "run.csv")
    (table,) = read_tables(tmp_path / "run.csv")
    assert list(table.columns) == ["t", f"q.{joint}", f"v.{joint}"]
    assert table.units[f"q.{joint}"] == "rad" and table.num_rows == 3


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array(3.5),
        np.zeros((0, 4)),
        np.array([True, False]),
        np.arange(3, dtype=">u2"),
        np.array("text"),
        np.ones(2, complex),
    ],
    ids=lambda x: f"{x.dtype}{x.shape}",
)
def test_arrays_of_numpy_are_read(array):
    found = read_npy(_npy(array))
    assert found.dtype == array.dtype and found.flags.writeable
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), 'more': 1}",
        "{'descr': '<f8', 'fortran_order': False}",
        "{'descr': '<f8', 'fortran_order': 3, 'shape': (2,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': 'f8,f8', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<U0', 'fortran_order': False, 'shape': (9999999999,)}",
        "{'descr': '<f3', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0, " + "9" * 4000 + ")}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,,2)}",
        "'''\\\n\t x 1 if",
        "(" * 300,
    ],
)
def test_headers_of_other_forms_are_refused(header):
    content = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + bytes(16)
    with pytest.raises(ValueError):
        read_npy(content)


def test_archives_of_other_forms_are_refused():
    def pack(method: int, *names: str) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            for name in names:
                archive.writestr(name, bytes(1000))
        return file.getvalue()

    both = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    assert read_members(pack(zipfile.ZIP_DEFLATED, "a", "b"), 2000, both) == {"a": bytes(1000), "b": bytes(1000)}
    with pytest.raises(ValueError, match="more than the 1999 bytes"):
        read_members(pack(zipfile.ZIP_DEFLATED, "a", "b"), 1999, both)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with pytest.raises(ValueError, match="is compressed by method"):
            read_members(pack(method, "a"), 2000, both)
    with pytest.raises(ValueError, match="a member occurs twice"):
        read_members(pack(zipfile.ZIP_STORED, "a", "b").replace(b"\0\0b", b"\0\0a").replace(b"b\0\0", b"a\0\0"), 9000)
    content = pack(zipfile.ZIP_STORED, "a")
    with pytest.raises(ValueError, match="Bad CRC-32"):
        read_members(content.replace(struct.pack("<I", zlib.crc32(bytes(1000))), b"abcd"), 9000)


@pytest.mark.parametrize("name", ["a\0b.csv", "n" * 5000 + ".npz", "\ud800.mat", "none/at/all.db3", ""])
def test_impossible_names(tmp_path, name):
    with pytest.raises(jd.JaxdynError):
        read_tables(tmp_path / name)


@pytest.mark.parametrize("ending", [".csv", ".npz", ".mat", ".db3", ".mcap", ".bag", ".parquet"])
def test_folders_and_empty_files_are_refused(tmp_path, ending):
    with pytest.raises(LogError):
        read(tmp_path, ending, b"")
    (tmp_path / f"folder{ending}").mkdir()
    with pytest.raises(LogError, match="is a folder without"):
        read_tables(tmp_path / f"folder{ending}")
