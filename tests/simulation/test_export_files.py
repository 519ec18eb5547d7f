"""Files of trajectories: round trips, names and units, and interrupted writes."""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.joints import Cylindrical, Free, Planar, Revolute, Spherical, SphericalZYX, Universal
from jaxdyn.simulation import (
    SemiImplicitEuler,
    System,
    Trajectory,
    coordinate_names,
    effort_names,
    to_csv,
    to_npz,
    to_numpy,
    to_parquet,
    velocity_names,
)
from jaxdyn.spatial import box

NQ = ["root.qw", "root.qx", "root.qy", "root.qz", "root.x", "root.y", "root.z", "elbow", "ball.w", "ball.x", "ball.y"]
NV = ["root.wx", "root.wy", "root.wz", "root.vx", "root.vy", "root.vz", "elbow", "ball.wx", "ball.wy", "ball.wz"]


def robot():
    """A free base with an elbow and a ball joint."""
    b = jd.ModelBuilder()
    body = box((0.1, 0.2, 0.3), mass=1.0)
    b.add_link("base", "world", Free(), body, joint_name="root")
    b.add_link("arm", "base", Revolute([0, 1, 0]), body, joint_name="elbow")
    b.add_link("hand", "arm", Spherical(), body, joint_name="ball")
    return b.build()


def trajectory(batch=(), times=4, dtype=np.float64) -> Trajectory:
    """A trajectory of random rows."""
    m = robot()
    rng = np.random.default_rng(0)
    draw = lambda *shape: jnp.asarray(rng.normal(size=(*batch, *shape)), dtype)
    t = jnp.broadcast_to(jnp.linspace(0, 1, times, dtype=dtype), (*batch, times))
    zero = jnp.zeros(batch, int)
    return Trajectory(
        t, draw(times, m.nq), draw(times, m.nv), None, jnp.full((*batch, times), True), zero, zero, System(m)
    )


def read_csv(path):
    about, names, *rows = path.read_text().splitlines()
    table = np.array([[float(x) for x in row.split(",")] for row in rows])
    return json.loads(about.removeprefix("# ")), dict(zip(names.split(","), table.T, strict=True))


def read_npz(path):
    with np.load(path, allow_pickle=False) as file:
        columns = dict(file)
    return json.loads(str(columns.pop("about"))), columns


def read_parquet(path):
    table = pytest.importorskip("pyarrow.parquet").read_table(path)
    assert table.schema.field("q.elbow").metadata[b"unit"] == b"rad"
    about = json.loads(table.schema.metadata[b"jaxdyn"])
    return about, {name: table[name].to_numpy() for name in table.column_names}


FORMATS = [(to_csv, read_csv), (to_npz, read_npz), (to_parquet, read_parquet)]


def test_names_and_units():
    m = robot()
    assert [n for n, _ in coordinate_names(m)] == [*NQ, "ball.z"]
    assert [n for n, _ in velocity_names(m)] == NV
    assert [u for _, u in coordinate_names(m)] == ["1"] * 4 + ["m"] * 3 + ["rad"] + ["1"] * 4
    assert [u for _, u in velocity_names(m)] == ["rad/s"] * 3 + ["m/s"] * 3 + ["rad/s"] * 4
    assert [u for _, u in effort_names(m)] == ["N m"] * 3 + ["N"] * 3 + ["N m"] * 4


def test_names_and_units_of_other_joints():
    b = jd.ModelBuilder()
    body = box((0.1, 0.2, 0.3), mass=1.0)
    parent = "world"
    for joint in (Planar(), Cylindrical([0, 0, 1]), Universal([1, 0, 0], [0, 1, 0]), SphericalZYX()):
        name = type(joint).__name__.lower()
        b.add_link(f"l{name}", parent, joint, body, joint_name=name)
        parent = f"l{name}"
    m = b.build()
    assert [n for n, _ in coordinate_names(m)] == [
        *("planar.x", "planar.y", "planar.angle", "cylindrical.angle", "cylindrical.slide"),
        *("universal.1", "universal.2", "sphericalzyx.z", "sphericalzyx.y", "sphericalzyx.x"),
    ]
    assert [u for _, u in velocity_names(m)] == ["m/s", "m/s", "rad/s", "rad/s", "m/s"] + ["rad/s"] * 5
    for names, size in ((coordinate_names, m.nq), (velocity_names, m.nv)):
        assert len(names(m)) == len({n for n, _ in names(m)}) == size


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("write", "read"), FORMATS)
def test_round_trips_are_exact(write, read, dtype, tmp_path):
    if write is to_parquet:
        pytest.importorskip("pyarrow")
    tr = trajectory(dtype=dtype)
    path = tmp_path / "run"
    extra = {"energy": tr.t**2, "effort": tr.v}
    write(tr, path, extra=extra, units={"energy": "J"})
    about, columns = read(path)
    expected = to_numpy(tr, extra=extra)
    assert list(columns) == list(expected)
    assert list(expected)[:2] == ["t", "q.root.qw"] and list(expected)[-1] == "effort.ball.wz"
    for name, x in expected.items():
        np.testing.assert_array_equal(columns[name].astype(dtype), x)
    np.testing.assert_array_equal(expected["q.elbow"], tr.q[:, 7])
    np.testing.assert_array_equal(expected["v.ball.wy"], tr.v[:, 8])
    assert about["units"].keys() == columns.keys()
    assert about["units"]["energy"] == "J" and about["units"]["effort.root.vx"] == "N"
    assert about["status"] == ["FINISHED"]
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(("write", "read"), FORMATS)
def test_round_trips_of_batches(write, read, tmp_path):
    if write is to_parquet:
        pytest.importorskip("pyarrow")
    tr = trajectory((3,))
    write(tr, tmp_path / "run")
    _, columns = read(tmp_path / "run")
    if write is to_npz:
        np.testing.assert_array_equal(columns["q.elbow"], tr.q[..., 7])
    else:
        np.testing.assert_array_equal(columns["sample"], np.repeat(np.arange(3), 4))
        np.testing.assert_array_equal(columns["q.elbow"].reshape(3, 4), tr.q[..., 7])


def test_wrong_shapes_and_paths_raise(tmp_path):
    tr = trajectory()
    with pytest.raises(jd.ShapeError, match=r"extra 'x' has shape \(3,\), expected \(4,\) or \(4, 10\)"):
        to_numpy(tr, extra={"x": np.zeros(3)})
    with pytest.raises(jd.ShapeError, match=r"not a batch of shape \(2, 3\)"):
        to_csv(trajectory((2, 3)), tmp_path / "run")
    with pytest.raises(jd.FileAccessError, match="cannot be written"):
        to_npz(tr, tmp_path / "no" / "run")


@pytest.mark.parametrize("write", [to_csv, to_npz])
def test_interrupted_write_leaves_the_previous_file(write, tmp_path, monkeypatch):
    path = tmp_path / "run"
    path.write_text("before")

    def interrupted(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(trajectory(), path)
    assert path.read_text() == "before"


def test_parquet_without_pyarrow_names_the_extra_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(jd.JaxdynError, match=r'pip install "jaxdyn\[logs\]"'):
        to_parquet(trajectory(), tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.exhaustive
def test_csv_of_a_simulated_trajectory(tmp_path):
    m = jd.robots.pendulum()
    tr = jd.simulate(m, jnp.array([1.0]), jnp.zeros(1), jnp.linspace(0, 0.2, 3), dt=0.1, solver=SemiImplicitEuler())
    to_csv(tr, tmp_path / "run.csv", extra={"energy": tr.energy})
    _, columns = read_csv(tmp_path / "run.csv")
    joint = m.joint_names[-1]
    np.testing.assert_array_equal(columns[f"q.{joint}"], tr.q[:, 0])
    np.testing.assert_array_equal(
        columns["energy"], jax.vmap(lambda q, v: jd.potential_energy(m, q) + jd.kinetic_energy(m, q, v))(tr.q, tr.v)
    )
