"""Readers of log files against files of other software and known bytes, and the locations in error messages."""

import gzip
import json
import sqlite3
import struct

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.identification import Columns, LogError, Preparation, Source, prepare, read_tables
from jaxdyn.identification.logs._mapping import map_columns
from jaxdyn.identification.logs.recordings._cdr import decode_joint_state

from .ros1_bags import ros1_bag

# a sensor_msgs/msg/JointState as `rosbags` 0.11.9 serialises it, in both byte orders: stamp 1e9 s + 30 ms, frame `base`
LITTLE = bytes.fromhex(
    "0001000000ca9a3b80c3c9010500000062617365000000000200000006000000656c626f770000000e00000073686f756c6465725f6c6f6e"
    "670000000200000000000000343333333333d33f343333333333e33f0200000000000000000000000000f03f000000000000004002000000"
    "00000000000000000000084000000000000008c0"
)
BIG = bytes.fromhex(
    "000000003b9aca0001c9c3800000000562617365000000000000000200000006656c626f770000000000000e73686f756c6465725f6c6f6e"
    "6700000000000002000000003fd33333333333343fe333333333333400000002000000003ff0000000000000400000000000000000000002"
    "000000004008000000000000c008000000000000"
)
NAMES = ("elbow", "shoulder_long")
T = np.arange(6) * 0.1
TABLE = {"t": T, "a": np.sin(T), "b": np.array([1.0, -2.5, 3e-7, 0.1, 1 / 3, 7.0])}


@pytest.mark.parametrize("data", [LITTLE, BIG])
def test_cdr_joint_states_decode_in_both_byte_orders(data):
    state = decode_joint_state(data)
    assert state.stamp == pytest.approx(1e9 + 0.03, abs=1e-6) and state.names == NAMES
    np.testing.assert_allclose(
        (state.position, state.velocity, state.effort), [[0.3, 0.6], [1, 2], [3, -3]], rtol=1e-15
    )
    for cut in range(len(data)):  # a truncated message is refused
        with pytest.raises(ValueError):
            decode_joint_state(data[:cut])
    with pytest.raises(ValueError, match="not that of plain CDR"):
        decode_joint_state(b"\x00\x09" + data[2:])


@pytest.mark.parametrize("order", ["<", ">"])
def test_cdr_version_2_aligns_doubles_to_four_bytes(order):
    """Bytes after OMG DDS-XTypes 1.3, table 42: version 2 limits the alignment to four bytes."""
    pack = lambda kind, *x: struct.pack(f"{order}{kind}", *x)
    text = lambda s: pack("I", len(s) + 1) + s.encode() + bytes(4 - len(s) % 4)
    body = pack("iI", 1_000_000_000, 30_000_000) + text("base") + pack("I", 2)
    body += b"".join(map(text, NAMES)) + b"".join(pack("Idd", 2, *x) for x in ([0.3, 0.6], [1, 2], [3, -3]))
    state = decode_joint_state((b"\x00\x07" if order == "<" else b"\x00\x06") + bytes(2) + body)
    assert state.names == NAMES and state.position == (0.3, 0.6) and state.effort == (3.0, -3.0)
    assert state.stamp == pytest.approx(1e9 + 0.03, abs=1e-6)


def _bag_rows(k):
    body = np.frombuffer(LITTLE, np.uint8).copy()
    body[8:12] = np.frombuffer(np.uint32(k * 10_000_000).tobytes(), np.uint8)  # nanoseconds
    return body.tobytes()


def _check_bag(tables):
    (table,) = tables
    assert table.name.endswith(":/joint_states") and table.num_rows == 5
    np.testing.assert_allclose(np.diff(table.columns["time"]), 0.01, atol=1e-6)
    np.testing.assert_array_equal(table.columns["effort.shoulder_long"], -3.0)
    np.testing.assert_array_equal(table.columns["position.elbow"], 0.30000000000000004)


def test_rosbag2_databases_and_folders_are_read(tmp_path):
    path = tmp_path / "bag" / "run.db3"
    path.parent.mkdir()
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT)")
    base.execute("CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB)")
    base.execute("INSERT INTO topics VALUES (1, '/joint_states', 'sensor_msgs/msg/JointState', 'cdr')")
    base.execute("INSERT INTO topics VALUES (2, '/chatter', 'std_msgs/msg/String', 'cdr')")
    for k in range(5):
        base.execute("INSERT INTO messages VALUES (NULL, 1, ?, ?)", (10**18 + k, _bag_rows(k)))
    base.execute("INSERT INTO messages VALUES (NULL, 2, 0, x'00')")
    base.commit()
    _check_bag(read_tables(path))
    _check_bag(read_tables(path.parent))
    base.execute("UPDATE messages SET data = x'0001' WHERE id = 3")
    base.commit()
    base.close()
    with pytest.raises(LogError, match=r"topic '/joint_states', message 2: .*record the bag again"):
        read_tables(path)
    path.write_bytes(b"nothing like it")
    with pytest.raises(LogError, match="is not a rosbag2 database"):
        read_tables(path)


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
def test_ros1_bags_are_read_and_damaged_bags_are_refused(tmp_path, compression):
    path, whole = tmp_path / "run.bag", ros1_bag(compression)
    path.write_bytes(whole)
    _check_bag(read_tables(path))
    for k in range(1, 5200, 97):  # truncated before the index records at the end
        assert not _is_readable(path, whole[:k])
    for k in range(4109, len(whole), 41):  # a damaged byte after the padding is refused or changes a number
        _is_readable(path, whole[:k] + bytes([whole[k] ^ 0x55]) + whole[k + 1 :])
    with pytest.raises(LogError, match="not a complete ROS 1 bag .*expected b'#ROSBAG V2.0"):
        path.write_bytes(b"#ROSBAG V1.2" + whole[12:])
        read_tables(path)


def _is_readable(path, content) -> bool:
    path.write_bytes(content)
    try:
        return bool(read_tables(path))
    except LogError:
        return False


def test_mcap_files_with_joint_states_and_json_are_read(tmp_path):
    writing = pytest.importorskip("mcap.writer")
    path = tmp_path / "run.mcap"
    with path.open("wb") as file:
        w = writing.Writer(file)
        w.start()
        kind = w.register_schema("sensor_msgs/msg/JointState", "ros2msg", b"")
        bag = w.register_channel("/joint_states", "cdr", kind)
        free = w.register_channel("/motor", "json", 0)
        text = w.register_channel("/text", "cdr", w.register_schema("std_msgs/msg/String", "ros2msg", b""))
        for k in range(5):
            w.add_message(bag, log_time=10**18 + k, publish_time=0, data=_bag_rows(k))
            w.add_message(
                free, log_time=k * 10**9, publish_time=0, data=json.dumps({"i": [k, 2 * k], "u": {"d": 1.5}}).encode()
            )
            w.add_message(text, log_time=0, publish_time=0, data=b"")
        w.finish()
    tables = {table.name.rpartition(":")[2]: table for table in read_tables(path)}
    assert set(tables) == {"/joint_states", "/motor"}
    _check_bag([tables["/joint_states"]])
    motor = tables["/motor"].columns
    np.testing.assert_array_equal(motor["i[1]"], 2 * np.arange(5.0))
    np.testing.assert_array_equal(motor["arrival"], np.arange(5.0))
    assert set(motor["u.d"]) == {1.5}
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(LogError, match="is not a complete MCAP file"):
        read_tables(path)


def _save(folder, ending):
    path = folder / f"log{ending}"
    lines = [",".join(TABLE), *(",".join(map(repr, map(float, row))) for row in zip(*TABLE.values(), strict=True))]
    if ending == ".csv":
        path.write_text("# a comment\n" + "\n".join(lines))
    elif ending == ".csv.gz":
        path.write_bytes(gzip.compress("\n".join(lines).replace(",", ";").encode()))
    elif ending == ".txt":
        path.write_text("# t a b\n" + "\n".join(line.replace(",", " ") for line in lines[1:]))
    elif ending == ".npz":
        np.savez(path, **TABLE, gain=3.0, about=np.array("{}"))
    elif ending == ".parquet":
        arrow = pytest.importorskip("pyarrow")
        arrow.parquet = pytest.importorskip("pyarrow.parquet")
        arrow.parquet.write_table(arrow.table({**TABLE, "mode": ["x"] * len(T)}), path)
    else:
        io = pytest.importorskip("scipy.io")
        io.savemat(path, {"log": dict(TABLE), "gain": 3.0})
    return path


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".txt", ".npz", ".parquet", ".mat"])
def test_all_formats_preserve_double_precision(tmp_path, ending):
    (table,) = read_tables(_save(tmp_path, ending))
    prefix = "log." if ending == ".mat" else ""
    for name, x in TABLE.items():
        np.testing.assert_array_equal(table.columns[prefix + name], x)
    assert set(table.columns) == {prefix + name for name in TABLE}
    assert ("mode" in table.refused) is (ending == ".parquet")


def test_matrices_of_npz_files_are_split_into_columns(tmp_path):
    np.savez(tmp_path / "x.npz", t=T, q=np.arange(12.0).reshape(6, 2))
    (table,) = read_tables(tmp_path / "x.npz")
    np.testing.assert_array_equal(table.columns["q[1]"], np.arange(12.0).reshape(6, 2)[:, 1])
    np.savez(tmp_path / "x.npz", t=T, q=np.array([object()] * 6))
    with pytest.raises(LogError, match="not a file of numeric arrays"):  # pickles are not loaded
        read_tables(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", t=T, q=T, v=T[:4])
    with pytest.raises(LogError, match=r"array 'v' has shape \(4,\), but most arrays have 6 rows"):
        read_tables(tmp_path / "x.npz")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no table"),
        ("t,q.j,effort.j\n", "has no rows"),
        ("t,q.j,q.j\n0,1,2\n", "several columns named 'q.j'"),
        ("t,q.j,effort.j\n0,1,2\n1,2\n", "line 3: has 2 cells for 3 columns"),
        ("t,q.j,effort.j\n0,1,2\n1,x,2\n2,1,1\n", "column 'q.j': line 3 contains 'x'; write a number"),
        (
            "t;q.j;effort.j\n0;1,5;2\n1;1;2\n2;1;1\n",
            "column 'q.j': line 2 contains '1,5'; use a point as decimal separator",
        ),
        ("t,q.j,effort.j\n0,1,2\n1,,2\n2,1,1\n", "column 'q.j', line 3: is not a finite number (and 0 other rows)"),
        ("t,q.j,effort.j\n0,1,2\n2,1,2\n1,1,1\n", "column 't', line 4: time decreases from 2 to 1 s"),
        ("time,q.j,effort.j\n0,1,2\n1,1,2\n", "has columns 'time', 'q.j', 'effort.j'; expected t, q.<joint>"),
        ("t,q.j,q.k,effort.k\n0,1,2,3\n1,1,2,3\n", "has no column of effort for 'j'"),
        ("t,q.j,effort.j\n0,1,2\n0,2,2\n", "all rows have the same time"),
    ],
)
def test_errors_name_file_column_row_and_remedy(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(LogError) as error:
        prepare([path], _one_joint())
    assert message in str(error.value) and "bad.csv" in str(error.value)


def test_unsupported_and_damaged_files_are_refused(tmp_path):
    with pytest.raises(LogError, match="has the extension '.xlsx', expected one of"):
        read_tables(tmp_path / "x.xlsx")
    with pytest.raises(LogError, match="is a folder without"):
        read_tables(tmp_path)
    with pytest.raises(jd.FileAccessError, match="cannot be read"):
        read_tables(tmp_path / "none.csv")
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"t,q\n" * 100)[:-9])
    with pytest.raises(LogError, match="is not a complete gzip file"):
        read_tables(tmp_path / "x.csv.gz")
    (tmp_path / "x.csv").write_text("t,q\n0,1\n")
    with pytest.raises(jd.FileFormatError, match="larger than the 3 bytes allowed"):
        read_tables(tmp_path / "x.csv", max_bytes=3)


def _one_joint():
    builder = jd.ModelBuilder()
    return builder.add_link(
        "l", "world", jd.joints.Revolute([0, 1, 0]), jd.spatial.point_mass(1.0), joint_name="j"
    ).build()


def _arm():
    b = jd.ModelBuilder()
    b.add_link("l", "world", jd.joints.Revolute([0, 1, 0]), jd.spatial.point_mass(1.0), joint_name="turn")
    b.add_link("m", "l", jd.joints.Prismatic([0, 0, 1]), jd.spatial.point_mass(1.0), joint_name="slide")
    return b.build()


def _map_run(columns, **more):
    from jaxdyn.identification import Table

    x = {"t": T, "p1": T, "p2": T + 1, "i turn": T - 1, "i slide": 2 * T, "w turn": 3 * T, "w slide": T, **more}
    recording = map_columns([Table("run", x)], _arm(), columns, "run")
    return {key: value for part in recording.parts for key, value in part.columns.items()}, recording


def test_columns_are_converted_by_unit_gear_sign_gain_and_offset():
    effort = Source(
        "i {joint}", unit="mA", gear={"turn": 100.0}, gain=[0.05, 2.0], sign={"slide": -1.0}, offset={"turn": 0.5}
    )
    columns = Columns(Source(["p1", "p2"], gear=[10, 1], sign=[-1, 1]), effort, Source(r"w (?P<joint>\w+)", unit=None))
    x, recording = _map_run(columns)
    np.testing.assert_allclose(x["q", 0], -T / 10, atol=1e-15)
    np.testing.assert_allclose(x["q", 1], T + 1, atol=1e-15)
    np.testing.assert_allclose(x["effort", 0], 1e-3 * (T - 1) * 100 * 0.05 + 0.5, atol=1e-15)
    np.testing.assert_allclose(x["effort", 1], -1e-3 * 2 * T * 2.0, atol=1e-15)
    np.testing.assert_allclose(x["v", 0], 3 * T, atol=1e-15)
    assert recording.channels[4].unit == "mA" and recording.channels[4].source == "run, column 'i turn'"


def test_column_patterns_select_joints():
    base = Source({"turn": "i turn", "slide": "i slide"})
    for pattern in ("p{number}", r"p(?P<number>\d)", ["p1", "p2"], {"turn": "p1", "slide": "p2"}):
        x, _ = _map_run(Columns(Source(pattern), base))
        np.testing.assert_array_equal(x["q", 1], T + 1)
    x, _ = _map_run(
        Columns(Source(r"p\d|i (?P<joint>.+)"), base)
    )  # the group is in an alternative that some names do not match
    np.testing.assert_array_equal(x["q", 1], 2 * T)
    x, _ = _map_run(Columns(Source("x[{index}]"), base), **{"x[0]": T, "x[1]": -T})
    np.testing.assert_array_equal(x["q", 1], -T)
    x, _ = _map_run(Columns(Source("{joint}"), base, names={"A": "turn", "B": "slide"}), A=T, B=-T)
    np.testing.assert_array_equal(x["q", 1], -T)
    x, recording = _map_run(Columns(Source("p{number}"), Source({"turn": "i turn"}, missing=0.0)))
    assert ("effort", 1) not in x and recording.constant == {("effort", 1): 0.0}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"effort": Source("i {joint}", unit="A")}, "the unit 'A' is not an effort and needs a gain"),
        (
            {"position": Source("p{number}", unit="deg")},
            "column 'p2': has the unit 'deg', which is not convertible to 'm'",
        ),
        ({"position": Source("p(.)")}, "does not identify the joint"),
        ({"position": Source("p(")}, "is not a valid regular expression"),
        ({"position": Source(["p1"])}, "1 names for 2 coordinates"),
        ({"position": Source(["p1", "p9"])}, "has no column 'p9' for q; its columns are 't', 'p1', 'p2'"),
        ({"position": Source("q{number}")}, "has no column of q for 'turn', 'slide'"),
        ({"position": Source("p{number}", gear=0.0)}, "gear 0 and factor 1; expected finite"),
        ({"position": Source("p{number}", gear={"elbow": 2.0})}, "gear of q: this model has no joint 'elbow'"),
        ({"position": Source({"elbow": "p1"})}, "this model has no joint 'elbow'"),
        ({"time": "clock"}, "has no time column 'clock'"),
        ({"valid": "ok"}, "has no column 'ok' for valid rows"),
    ],
)
def test_invalid_mappings_are_refused(columns, message):
    good = {"position": Source("p{number}"), "effort": Source("i {joint}")}
    with pytest.raises(jd.ModelError) as error:
        given = {**good, **columns}
        _map_run(Columns(**given))
    assert message in str(error.value)


def test_trajectory_files_are_read_without_a_mapping(tmp_path):
    m = _arm()
    t = np.arange(400) * 0.01
    q = np.stack([np.sin(3 * t), np.cos(2 * t)], axis=1)
    steps = jnp.zeros((), int)
    tr = jd.Trajectory(*map(jnp.asarray, (t, q, 0 * q)), None, jnp.asarray(t < 9), steps, steps, jd.System(m))
    for write, name in ((jd.simulation.to_csv, "run.csv"), (jd.simulation.to_npz, "run.npz")):
        write(tr, tmp_path / name, extra={"effort": q**2})
        (table,) = read_tables(tmp_path / name)
        assert table.units["q.turn"] == "rad" and table.units["effort.slide"] == "N"
        logs, report = prepare([tmp_path / name], m, None, Preparation(cutoff=20.0, rest_speed=0, saturation_time=9))
        np.testing.assert_allclose(logs[0].q, np.stack([np.sin(3 * logs[0].t), np.cos(2 * logs[0].t)], 1), atol=1e-5)
        assert logs[0].name == name and len(report.runs[0].notes) == 2  # the velocities are zero
