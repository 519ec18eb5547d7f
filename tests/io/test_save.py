"""Saved and loaded trees: equal bits, no code executed, unsupported content refused by name."""

import copy
import io
import json
import os
import pickle
import signal
import time
import zipfile
from typing import NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn import FileAccessError, FileFormatError, ModelError, simulation
from jaxdyn.identification import FitResult, FitStatus
from jaxdyn.joints import AbstractVectorJoint, Custom, Revolute
from jaxdyn.simulation import SimulationStatus
from tests.io._texts import arm
from tests.oracles import random_model


class Pair(NamedTuple):
    first: object
    second: object


class Mine(AbstractVectorJoint):
    """A joint from outside the library."""

    axis: jax.Array
    nq = 1
    nv = 1
    translates = False

    def transform(self, q):
        return Revolute(self.axis).transform(q)

    def subspace(self, q):
        return Revolute(self.axis).subspace(q)

    def bias(self, q, v):
        return None


def rolling(params, q):
    return jnp.eye(3), q


def same(a, b):
    """Same structure, static parts, types and bits."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert type(x) is type(y)
        if isinstance(x, jax.Array | np.ndarray | np.generic):
            assert x.dtype == y.dtype and getattr(x, "weak_type", None) == getattr(y, "weak_type", None)
            assert x.shape == y.shape and np.asarray(x).tobytes() == np.asarray(y).tobytes()
        else:
            assert repr(x) == repr(y)


def round_trip(path, tree, **options):
    jd.save(path, tree, **options)
    return jd.load(path, **options)


@pytest.mark.parametrize("floating", [False, True])
def test_models(tmp_path, floating):
    kinds = ("revolute", "universal", "helical", "planar", "spherical", "cylindrical", "free")
    model = random_model(1, 9, kinds=kinds, fixed_fraction=0.2, floating=floating)
    same(round_trip(tmp_path / "m", model), model)


@pytest.mark.slow
def test_descriptions_and_reports(tmp_path):
    text = arm("base", '<gazebo/><link name="s"><visual><geometry><sphere radius="1"/></geometry></visual></link>'
               '<transmission name="t"><joint name="elbow"/><actuator name="m"/></transmission>')  # fmt: skip
    model = jd.parse_urdf(text)
    back = round_trip(tmp_path / "m", model)
    same(back, model)
    assert back.shapes == model.shapes and back.report == model.report and back.topology == model.topology
    assert (len(back.shapes), len(back.actuators), back.nv) == (1, 1, 2) and len(back.report) > 1
    q = jnp.array([0.1, 0.2])
    np.testing.assert_array_equal(jd.mass_matrix(back, q), jd.mass_matrix(model, q))


@pytest.mark.slow
def test_batches_and_other_precisions(tmp_path):
    model = jd.parse_urdf(arm("base"))
    batch = jax.tree.map(lambda x: jnp.stack([x, 2 * x, jnp.nan * x]), model.astype(jnp.float32))
    same(round_trip(tmp_path / "m", batch), batch)
    half = jnp.arange(3, dtype=jnp.bfloat16)
    same(round_trip(tmp_path / "m", half), half)


def test_all_kinds_of_nodes(tmp_path):
    tree = {
        "numbers": (1, -(2**70), 0.1, float("inf"), -0.0, True, None),
        "list": ["text é\n\0", (), [], {}],
        "turned": np.arange(6, dtype=np.int16).reshape(2, 3)[:, ::-1],
        "empty": jnp.zeros((0, 3)),
        "scalars": (np.float32(0.1), np.int8(3), jnp.asarray(1.0), jnp.array(True), np.complex128(1 + 2j)),
        "pose": jd.spatial.Pose.identity(),
    }
    back = round_trip(tmp_path / "t", tree)
    same(back, tree)
    assert list(back) == list(tree) and back["numbers"] == tree["numbers"]
    assert str(back["numbers"][4]) == "-0.0" and type(back["turned"]) is np.ndarray
    keys = {3: "a", ("b", 1.5): "c", None: "d", False: "e"}
    assert repr(round_trip(tmp_path / "t", keys)) == repr(keys)
    assert np.isnan(round_trip(tmp_path / "t", float("nan")))


def test_enumerations_and_interpolations(tmp_path):
    """They are saved by name, so the number of a status may change."""
    kinds = (diffrax.Tsit5, diffrax.Dopri5, diffrax.Heun, diffrax.Euler, diffrax.Kvaerno5)
    tree = {
        "fit": FitStatus(0),
        "all": [*FitStatus, *SimulationStatus],
        "kinds": [k.interpolation_cls for k in kinds],
        "chart": simulation.OnManifold(diffrax.Tsit5()).interpolation_cls,
    }
    back = round_trip(tmp_path / "x", tree)
    assert back == tree and type(back["fit"]) is FitStatus


def test_results_of_fits(tmp_path):
    model = jd.robots.pendulum()
    fit = FitResult(
        jd.System(model), FitStatus(0), 3, 2.0, 1.0, (), (), ("nothing",), 10.0, (), (), np.eye(2), history=(2.0, 1.0)
    )
    back = round_trip(tmp_path / "x", fit)
    assert back.status is FitStatus(0) and back.history == fit.history and back.unobservable == ("nothing",)
    assert jax.tree.structure(back.system) == jax.tree.structure(fit.system)
    np.testing.assert_array_equal(back.covariance, fit.covariance)


@pytest.mark.slow
def test_trajectories(tmp_path):
    """A loaded trajectory has the same interpolant."""
    model = jd.robots.pendulum()
    run = jd.simulate(
        model, jnp.array([0.3]), jnp.zeros(1), jnp.linspace(0.0, 0.1, 3), solver=diffrax.Tsit5(), dense=True
    )
    back = round_trip(tmp_path / "x", run)
    for got, want in zip(back.interpolant(0.037), run.interpolant(0.037), strict=True):
        np.testing.assert_array_equal(got, want)


def test_foreign_classes_must_be_listed(tmp_path):
    model = jd.ModelBuilder().add_link("a", "world", Mine(jnp.array([0.0, 0, 1]))).build()
    with pytest.raises(
        ModelError, match=r"tree\.joints\[0\] is a .*Mine, which is not a class of jaxdyn; list it: allow="
    ):
        jd.save(tmp_path / "m", model)
    same(round_trip(tmp_path / "m", model, allow=(Mine,)), model)
    with pytest.raises(FileFormatError, match=r"names the class '.*Mine', which is not a class of jaxdyn"):
        jd.load(tmp_path / "m")
    pair = Pair(jnp.ones(2), "x")
    same(round_trip(tmp_path / "p", pair, allow=(Pair,)), pair)


def test_foreign_functions_must_be_listed(tmp_path):
    joint = Custom({"r": jnp.array(0.1)}, rolling, 3)
    model = jd.ModelBuilder().add_link("a", "world", joint).build()
    with pytest.raises(ModelError, match=r"tree\.joints\[0\]\.transform_fn is the function .*\.rolling"):
        jd.save(tmp_path / "m", model)
    assert not (tmp_path / "m").exists()
    same(round_trip(tmp_path / "m", model, allow=(rolling,)), model)
    with pytest.raises(FileFormatError, match="names the function"):
        jd.load(tmp_path / "m")
    assert round_trip(tmp_path / "f", (jd.aba, jd.rnea)) == (jd.aba, jd.rnea)
    for wrong in (len, os.system, lambda x: x, jnp.tanh):
        with pytest.raises(ModelError, match="is the function"):
            jd.save(tmp_path / "f", wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        b"bytes",
        {1, 2},
        object(),
        np.array([object()]),
        np.array(["a"]),
        1 + 2j,
        range(3),
        jax.random.key(0),
        Revolute,
        signal.SIGTERM,
    ],
    ids=lambda x: type(x).__name__,
)
def test_unsupported_values_are_refused(tmp_path, wrong):
    if isinstance(wrong, complex):
        assert round_trip(tmp_path / "t", wrong) == wrong
        return
    with pytest.raises(ModelError, match=r"tree\[1\] is"):
        jd.save(tmp_path / "t", (0, wrong))
    assert list(tmp_path.iterdir()) == []


def test_cycles_and_tracers_are_refused(tmp_path):
    cycle: list = []
    cycle.append(cycle)
    with pytest.raises(ModelError, match="nested deeper"):
        jd.save(tmp_path / "t", cycle)
    with pytest.raises(ModelError, match="is traced"):
        jax.jit(lambda x: (jd.save(tmp_path / "t", x), 0)[1])(1.0)


def test_writing_is_atomic(tmp_path, monkeypatch):
    path = tmp_path / "m"
    jd.save(path, (1, 2))
    before = path.read_bytes()
    jd.save(path, (1, 2))
    assert path.read_bytes() == before  # equal trees give equal files

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileAccessError, match="No space left"):
        jd.save(path, (3, 4))
    assert [x.name for x in tmp_path.iterdir()] == ["m"] and jd.load(path) == (1, 2)
    with pytest.raises(FileAccessError, match="cannot be written"):
        jd.save(tmp_path / "missing" / "m", 1)


# --- files that save did not write ---------------------------------------------------------------------


def write_archive(path, tree="null", arrays=(), method=zipfile.ZIP_STORED, **head):
    """Writes an archive with any content."""
    structure = {"format": "jaxdyn tree", "version": 1, "jaxdyn": "0", "tree": json.loads(tree)} | head
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("structure.json", json.dumps(structure))
        for k, content in enumerate(arrays):
            archive.writestr(f"{k}.npy", content)
    return path


def npy(array, **options) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def write_overlapping_members(path):
    """Writes an archive whose directory lists one member many times."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("structure.json", b" " * 10_000)
        first = archive.infolist()[0]
        for k in range(50):
            twin = copy.copy(first)
            twin.filename = f"{k}.npy"
            archive.filelist.append(twin)


ARRAY = '{"array": 0, "kind": "jax", "dtype": "float64", "weak": false}'


class Bomb:
    def __reduce__(self):
        return (os.system, ("echo unpickled",))


HOSTILE = {
    "a pickle": npy(np.array([Bomb()], dtype=object), allow_pickle=True),
    "a huge shape": npy(np.zeros(3)).replace(b"(3,)", b"(9999999999999,)")[:4096],
    "a negative shape": npy(np.zeros(3)).replace(b"(3,), ", b"(-3,),"),
    "cut off": npy(np.zeros(300))[:-8],
    "too long": npy(np.zeros(3)) + b"12345678",
    "no npy": b"hello",
    "nothing": b"",
    "text in an array": npy(np.array(["abc"])),
    "code for a header": npy(np.zeros(3)).replace(b"'descr'", b"__impo+"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_arrays(tmp_path, case):
    path = write_archive(tmp_path / "m", ARRAY, [HOSTILE[case]])
    with pytest.raises(FileFormatError, match="m, member '0.npy': cannot be read"):
        jd.load(path)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ('{"class": "os.system", "fields": {}}', "names the class 'os.system'"),
        ('{"class": "builtins:eval", "fields": {}}', "names the class"),
        ('{"class": "jaxdyn.model.structure._model.Model", "fields": {}}', "names the class"),
        ('{"class": "jaxdyn.model.Model.astype", "fields": {}}', "names the class"),
        ('{"class": "jaxdyn.os.system", "fields": {}}', "names the class"),
        ('{"class": "jaxdyn.joints.jax", "fields": {}}', "names the class"),
        ('{"enum": "jaxdyn.model.Model", "member": "build"}', "not an enumeration"),
        ('{"enum": "jaxdyn.simulation.SimulationStatus", "member": "__class__"}', "not an enumeration"),
        ('{"interpolation": "os.system"}', "names the solver"),
        ('{"class": "jaxdyn.Model", "fields": {}}', "names the class"),
        ('{"class": "jaxdyn.model.Model", "fields": {}}', "has the fields \\[\\]"),
        ('{"class": "jaxdyn.joints.AbstractJoint", "fields": {}}', "has the fields"),
        ('{"class": "jaxdyn.model.Note", "fields": {"where": "a", "what": "b", "more": "c"}}', "has the fields"),
        ('{"function": "jaxdyn.save"}', "names the function"),
        ('{"function": "jaxdyn.io.save"}', "names the function"),
        ('{"function": "jaxdyn.model.Model"}', "names the function"),
        ('{"function": "subprocess.run"}', "names the function"),
        ('{"array": 7, "kind": "jax", "dtype": "float64", "weak": false}', "refers to array 7, but the file has 1"),
        ('{"array": -1, "kind": "jax", "dtype": "float64", "weak": false}', "refers to array -1"),
        ('{"array": 0, "kind": "jax", "dtype": "float32", "weak": false}', "array of float64 where one of float32"),
        ('{"array": 0, "kind": "cupy", "dtype": "float64", "weak": false}', "unknown kind 'cupy'"),
        ('{"int": "' + "9" * 5000 + '"}', "not a number"),
        ('{"float": "1.5"}', "an unknown node"),
        ("3", "a bare int"),
        ("[1]", "a bare list"),
        ('{"dict": [["a"]]}', "not a list of pairs"),
        ('{"dict": [[{"list": []}, null]]}', "dictionary with a list for a key"),
        ('{"tuple": [], "list": []}', "an unknown node"),
        ('{"tuple": [' * 120 + "]}" * 120, "nested deeper"),
    ],
)
def test_hostile_structures(tmp_path, tree, message):
    path = write_archive(tmp_path / "m", tree, [npy(np.zeros(3))])
    with pytest.raises(FileFormatError, match=message):
        jd.load(path)


def test_other_files(tmp_path):
    path = tmp_path / "m"
    for content in (b"", b"hello", b"PK\x03\x04 not an archive", pickle.dumps({"a": 1})):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match="not a file that jaxdyn.save wrote"):
            jd.load(path)
    with pytest.raises(FileFormatError, match="has version 2 of the format, and this jaxdyn reads version 1"):
        jd.load(write_archive(path, version=2))
    with pytest.raises(FileFormatError, match="is not of the format"):
        jd.load(write_archive(path, format="other"))
    with pytest.raises(FileFormatError, match="is compressed"):
        jd.load(write_archive(path, ARRAY, [npy(np.zeros(100_000))], zipfile.ZIP_DEFLATED))
    write_overlapping_members(path)
    with pytest.raises(FileFormatError, match="its members are larger than the file"):
        jd.load(path)
    np.savez(path, a=np.zeros(3))
    with pytest.raises(FileFormatError, match="has no structure.json"):
        jd.load(f"{path}.npz")
    jd.save(path, jnp.zeros(1000))
    with pytest.raises(FileFormatError, match="larger than the 1000 bytes"):
        jd.load(path, max_bytes=1000)
    with pytest.raises(FileAccessError, match="cannot be read"):
        jd.load(tmp_path / "nothing")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("structure.json", "[" * 100_000)
    with pytest.raises(FileFormatError, match=r"structure\.json: cannot be read"):
        jd.load(path)


@pytest.mark.parametrize("name", ["a\0b", "n" * 5000, "\ud800", "", "none/at/all", "/"])
def test_impossible_names(tmp_path, name):
    path = name if name in ("", "/") else tmp_path / name
    with pytest.raises(FileAccessError, match="cannot be written"):
        jd.save(path, 1.0)
    with pytest.raises(FileAccessError):
        jd.load(path)
    assert list(tmp_path.iterdir()) == []


def test_integers_of_many_digits(tmp_path):
    with pytest.raises(jd.ModelError, match=r"tree\['a'\]\[0\] is an integer with too many digits"):
        jd.save(tmp_path / "m", {"a": [10**5000]})
    with pytest.raises(jd.ModelError, match="tree key <class 'int'> is an integer with too many digits"):
        jd.save(tmp_path / "m", {10**5000: 1})


def test_places_below_long_keys_take_linear_time(tmp_path):
    tree = {"k" * 500_000: [[float(k)] for k in range(5000)]}  # the text of all places has 5 GB
    start = time.perf_counter()
    jd.save(tmp_path / "m", tree)
    assert jd.load(tmp_path / "m") == tree
    assert time.perf_counter() - start < 5
    with pytest.raises(jd.ModelError, match=r"tree\['kkk.*\.\.\.\[1\] is a builtins.object"):
        jd.save(tmp_path / "m", {"k" * 500_000: [1.0, object()]})


@pytest.mark.parametrize(
    ("tree", "arrays", "message"),
    [
        ('{"dict": [["a", null], ["a", true]]}', [], r"tree\['a'\]: occurs twice"),
        ('{"array": 0, "kind": "jax", "dtype": "float128", "weak": false}', [np.zeros(2, np.longdouble)], "float128"),
        ('{"array": 0, "kind": "jax", "dtype": "uint64", "weak": true}', [np.array(2**64 - 1, np.uint64)], "uint64"),
    ],
)
def test_trees_that_save_does_not_write(tmp_path, tree, arrays, message):
    with pytest.raises(FileFormatError, match=message):
        jd.load(write_archive(tmp_path / "m", tree, [npy(x) for x in arrays]))


def test_robot_files_are_recognised(tmp_path):
    """The command line reads a URDF with another suffix as a saved tree."""
    path = tmp_path / "robot.urdf.xacro"
    path.write_bytes(b'\xef\xbb\xbf\n<robot name="r"/>')
    with pytest.raises(FileFormatError, match=r"looks like XML: read URDF with jaxdyn.load_urdf"):
        jd.load(path)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damaged_files(tmp_path, data):
    """A changed byte or a truncated file gives a tree or a typed error."""
    path = tmp_path / "m"
    jd.save(path, (jnp.arange(3.0), {"a": [1, "x", None]}, jd.spatial.Pose.identity()))
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[at] = data.draw(st.integers(0, 255))
    else:
        del content[at:]
    path.write_bytes(content)
    try:
        jd.load(path)
    except FileFormatError:
        pass


def test_numpy_reads_the_arrays(tmp_path):
    """The file is an archive of npy members that other tools can open."""
    path = tmp_path / "m"
    jd.save(path, (jnp.arange(3.0), np.eye(2)))
    with zipfile.ZipFile(path) as archive:
        np.testing.assert_array_equal(np.load(io.BytesIO(archive.read("1.npy"))), np.eye(2))


def test_loaded_models_share_compiled_code(tmp_path):
    """They can be edited too."""
    model = jd.parse_urdf(arm("base"))
    back = round_trip(tmp_path / "m", model)
    traces = []

    @jax.jit
    def mass(m):
        traces.append(m)
        return m.links.mass.sum()

    assert mass(model) == mass(back) and len(traces) == 1
    assert jd.lock_joints(back, {"elbow": 0.1}).nv == 1
    assert eqx.tree_equal(model, back)
