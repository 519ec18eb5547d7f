"""`jaxdyn fit`: configurations, errors of one line, and the parameters of a robot recovered from noisy logs."""

import dataclasses
import inspect
import json
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxdyn as jd
from benchmarks import _identification_motors as bench
from jaxdyn import identification
from jaxdyn.actuators import DcMotor, SynchronousMotor
from jaxdyn.cli import main
from jaxdyn.cli.fit import _config, _fit, _method, _options
from jaxdyn.cli.fit._config import Config
from jaxdyn.identification import (
    Cauchy,
    FirstOrder,
    FreeStart,
    GeometricPrior,
    Huber,
    LevenbergMarquardt,
    Linear,
    Log,
    LowPassed,
    OutputError,
    Physical,
    Preparation,
    Source,
)

JOINTS = ("shoulder", "elbow")


def _arm(factor=1.0, damping=0.0, friction=0.0):
    b = jd.ModelBuilder()
    for k, (joint, parent) in enumerate(zip(JOINTS, ("world", "l0"), strict=True)):
        body = jd.spatial.cylinder(0.04, 0.4, mass=factor * (2.0 - k)).moved([0.01, 0.02, -0.2 * factor])
        place = {"translation": [0, 0, -0.4]} if k else {}
        b.add_link(
            f"l{k}",
            parent,
            jd.joints.Revolute([0, 1, 0.2 * k]),
            body,
            joint_name=joint,
            damping=damping,
            friction=friction,
            **place,
        )
    return b.build()


def _motion(t, order=0):
    w = 2 * np.pi * np.array([[0.31, 0.83], [0.47, 1.1]])
    size = np.array([[0.9, 0.3], [0.8, 0.4]])
    return (size * w**order * np.sin(w * np.asarray(t)[:, None, None] + order * np.pi / 2 + [[0.3, 1], [2, 0]])).sum(
        axis=2
    )


def _write_log(path, model, seed, noise=0.02):
    """A log in degrees and milliseconds, with motor efforts before a gear of ratio -50."""
    rng = np.random.default_rng(seed)
    t = np.arange(4000) * 0.005 + rng.uniform(-0.001, 0.001, 4000)
    x = [jnp.asarray(_motion(t, k)) for k in range(3)]
    effort = jax.jit(jax.vmap(lambda q, v, a: jd.rnea(model, q, v, a) - jd.passive_forces(model, q, v)))(*x)
    effort = effort + noise * rng.normal(size=effort.shape)
    q = np.rad2deg(_motion(t)) + 1e-4 * rng.normal(size=effort.shape)
    rows = np.column_stack([1e3 * t, q, -np.asarray(effort) / 50])
    head = "clock," + ",".join(f"deg_{j}" for j in JOINTS) + "," + ",".join(f"motor_{j}" for j in JOINTS)
    np.savetxt(path, rows, delimiter=",", header=head, comments="")


CONFIG = """
[columns]
time = "clock"
time_unit = "ms"
position = { pattern = "deg_{joint}", unit = "deg" }
effort = { pattern = "motor_{joint}", gear = 50, sign = -1 }

[preparation]
cutoff = 25

[hold_out]
runs = ["b.csv"]

[fit]
parameters = ["links[*].inertial", "joints[*].damping", "joints[*].friction"]
method = "physical"
"""


def _files(folder):
    real = _arm(1.3, damping=0.4, friction=0.3)
    for seed, name in enumerate(("a.csv", "b.csv")):
        _write_log(folder / name, real, seed)
    prior = _arm(1.0, damping=0.1, friction=0.1)
    jd.write_urdf(prior, folder / "arm.urdf")
    (folder / "fit.toml").write_text(CONFIG)
    return real, [
        "fit",
        *(str(folder / n) for n in ("arm.urdf", "a.csv", "b.csv")),
        "--config",
        str(folder / "fit.toml"),
    ]


@pytest.mark.slow
def test_parameters_are_recovered_from_noisy_logs(tmp_path, capsys, monkeypatch):
    real, arguments = _files(tmp_path)
    out = tmp_path / "out"
    assert main([*arguments, "--out", str(out)]) == 0
    text, err = capsys.readouterr()
    assert "status: CONVERGED" in text and "read back and equal" in text and "fitting" in err
    assert "base parameters of 24 parameters" in text and " +- " in text and "(l1)" in text
    assert "unobservable directions" in text and "fit: pass 1 of 3: cost" in err
    assert {p.name for p in out.iterdir()} == {"identified.jaxdyn", "identified.urdf", "report.json", "report.html"}
    report = json.loads((out / "report.json").read_text())
    assert report["logs"]["held_out"].keys() == {"b.csv"} and report["preparation"]["runs"][0]["cutoff"] == 25
    assert all(link["physical"] for link in report["physical"])
    for joint in report["errors"]["held_out"]:
        assert joint["rmse"] < 0.06  # jumps of Coulomb friction, 0.3 N m, are smoothed in the log alone
    for found in (jd.load(out / "identified.jaxdyn").model, jd.load_urdf(out / "identified.urdf")):
        np.testing.assert_allclose(found.properties.damping, 0.4, atol=0.02)
        np.testing.assert_allclose(found.properties.friction, 0.3, atol=0.03)
        for q in np.random.default_rng(0).uniform(-1.5, 1.5, (3, 2)):
            scale = np.abs(jd.mass_matrix(real, jnp.asarray(q))).max()
            np.testing.assert_allclose(
                jd.mass_matrix(found, jnp.asarray(q)), jd.mass_matrix(real, jnp.asarray(q)), atol=0.05 * scale
            )
            np.testing.assert_allclose(
                jd.gravity_forces(found, jnp.asarray(q)), jd.gravity_forces(real, jnp.asarray(q)), atol=0.05
            )
    # an interrupt while the third file is written keeps the files that are complete
    fsync, calls = os.fsync, []

    def interrupt(handle):
        calls.append(handle)
        if len(calls) == 3:
            raise KeyboardInterrupt
        fsync(handle)

    monkeypatch.setattr(os, "fsync", interrupt)
    assert main([*arguments, "--out", str(tmp_path / "again")]) == 130
    assert {p.name for p in (tmp_path / "again").iterdir()} == {"identified.jaxdyn", "identified.urdf"}
    assert "interrupted" in capsys.readouterr().err


def _error_of(capsys, *arguments):
    assert main(["fit", *map(str, arguments)]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.strip().splitlines()[-1].startswith("jaxdyn fit: ")
    return err


def test_invalid_input_gives_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("clock,deg_shoulder,deg_elbow,motor_shoulder,motor_elbow\n0,1,2,3,4\n5,6,7,8,9\n")
    Path("fit.toml").write_text(CONFIG.replace("deg_", "angle_"))
    jd.write_urdf(_arm(), "arm.urdf")
    assert "nobody: is neither a file nor a bundled robot" in _error_of(capsys, "nobody", "a.csv", "--out", "out")
    assert "there is no folder nowhere" in _error_of(capsys, "arm.urdf", "a.csv", "--out", "nowhere/out")
    assert "a.csv: is not a folder" in _error_of(capsys, "arm.urdf", "a.csv", "--out", "a.csv")
    assert "none.csv: cannot be read" in _error_of(capsys, "arm.urdf", "none.csv", "--out", "out")
    assert "for other names pass columns=" in _error_of(capsys, "arm.urdf", "a.csv", "--out", "out")
    text = _error_of(capsys, "arm.urdf", "a.csv", "--out", "out", "--config", "fit.toml")
    assert "has no column of q for 'shoulder', 'elbow'" in text
    assert "b.csv: cannot be read" in _error_of(capsys, "arm.urdf", "a.csv+b.csv", "--out", "out")
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[fit", "is not valid TOML"),
        ("[fitt]", "has an entry 'fitt'; expected some of robot, columns"),
        ("fit = 3", "fit is 3, expected a table with some of method"),
        ("[fit]\nmethod = 'magic'", "fit.method: 'magic' is unknown; expected one of linear, physical"),
        ("[fit]\nparameters = 'links'", "fit.parameters is 'links', expected a list of 1 to"),
        ("[preparation]\ncut_off = 3", "has an entry 'preparation.cut_off'; expected some of rate,"),
        ("[preparation]\nlow_pass = 1", "preparation.low_pass is 1, expected true or false"),
        ("[preparation]\ncutoff = true", "preparation.cutoff is true, expected a positive number"),
        (
            "[preparation]\neffort_delay = 'some'",
            "effort_delay is 'some', expected a number from -1e+06 to 1e+06",
        ),
        ("[preparation]\nwindow = [1]", "preparation.window is [1], expected a pair of numbers"),
        ("[preparation]\norder = 0", "order is 0, expected a whole number from 1 to 100"),
        ("[hold_out]\nshare = 0.2\nruns = ['a']", "give one of runs, times, share"),
        ("[hold_out]\ntimes = [3, 4]", "hold_out.times[0] is 3, expected a pair"),
        ("[columns]\nposition = 'q{index}'", "columns has no 'effort'"),
        (
            "[columns]\nposition = 'q{index}'\n[columns.inputs]\nvoltage = 3",
            "columns.inputs.voltage is 3, expected a text",
        ),
        (
            "[columns]\nposition = 'q{index}'\neffort = 'e{index}'\n[columns.measured]\ncurrent = '('",
            "columns.measured.current: pattern '(' is not a valid regular",
        ),
        (
            "[fit.motors.rod_joint]\nconstant = 0.1",
            "fit.motors.rod_joint has no 'resistance'; give the resistance, ohm",
        ),
        ("[fit.motors.wrist]\nconstant = 0.1\nresistance = 1", "fit.motors.wrist: this robot has no such joint"),
        (
            "[fit.motors.rod_joint]\nconstant = 0.1\nresistance = 1\ninductance = 1\ninput_quantity = 'current'",
            "fit.motors.rod_joint: a motor whose input is the current has no voltage",
        ),
        ("[fit.motors.rod_joint]\nconstant = 0.1\nresistance = 1\nthermal = {}", "thermal has no 'winding_capacity'"),
        ("[fit.inputs]\ndelay = 0.1", "fit.inputs calibrates the inputs of motors, and there are none"),
        (
            "[fit]\nmethod = 'output-error'\nstart = { name = 'free', scales = { c = 0 } }",
            "start.scales.c is 0, expected a positive number",
        ),
        ("[columns]\nposition = {unit='deg'}\neffort = 'e{index}'", "columns.position has no 'pattern'"),
        ("[columns]\nposition = {pattern='q', gears=2}\neffort = 'e'", "has an entry 'columns.position.gears'"),
        (
            "[fit]\noptions = { windows = { length = 1 } }",
            "'fit.options.windows'; expected some of reweight,",
        ),
        ("[fit]\noptions = { reweight = 2.5 }", "fit.options.reweight is 2.5, expected a whole number"),
        ("[fit]\noptions = { rtol = 'low' }", "fit.options.rtol is 'low', expected a number"),
        ("[fit]\nloss = 'hubert'", "fit.loss.name: 'hubert' is unknown; expected one of huber, cauchy"),
        ("[fit]\nloss = { name = 'huber', size = 1 }", "has an entry 'fit.loss.size'; expected some of limit"),
        ("[fit]\nprior = { strong = 1 }", "has an entry 'fit.prior.strong'; expected some of strength, spread"),
        ("[fit]\nbounds = { 'm(*)' = 3 }", "fit.bounds.'m(*)' is 3, expected a pair of numbers [lower, upper]"),
        ("[fit]\nwindows = { length = 1 }", "fit.windows applies to the method output-error, not to 'physical'"),
        ("[fit]\nmethod = 'first-order'", "the method first-order needs fit.optimiser"),
        ("[fit]\nmethod = 'first-order'\noptimiser = 'adamant'", "'adamant' is not an optimiser of optax"),
        ("[fit]\nmethod = 'first-order'\noptimiser = { name = 'adam', rate = 1 }", "fit.optimiser: "),
        (
            "[fit]\nmethod = 'output-error'\nsolver = { method = 'low-passed' }",
            "solver.method: 'low-passed' is unknown",
        ),
        ("[fit]\nmethod = 'low-passed'", "fit.options has no 'cutoff'"),
        ("[fit]\nmethod = 'first-order'\noptimiser = 'lbfgs'", "fit.optimiser: "),
        ("[fit]\nmethod = 'first-order'\noptimiser = { name = 'adam', learning_rate = 'x' }", "fit.optimiser: "),
        ("a = " + "9" * 5000, "is not valid TOML"),
        ("[fit]\nweights = [0x" + "f" * 9000 + "]", "weights[0] is a whole number of 36000 bits"),
        ("[preparation]\nwindow = [" + "9" * 400 + ", 1]", "window[0] is a whole number of 1329 bits"),
        ("a = " + "[" * 20_000, "nested deeper than 8 levels"),
        ("a = " + "[" * 9 + "]" * 9, "nested deeper than 8 levels"),
        ("a" + ".a" * 20_000 + " = 1", "nested deeper than 8 levels"),
        ("a = '" + "x" * 60_000 + "'", "is larger than the 50000 bytes allowed"),
        ("[robot]\nlock = [[1]]", "robot.lock[0] is [1], expected a text"),
        ("[robot]\nlock = { rod_joint = [[1]] }", "robot.lock.rod_joint[0] is [1], expected a finite number"),
        ("[robot]\nlock = { rod_joint = [1, 2] }", "the configuration of joint 'rod_joint' has shape (2,)"),
        ("[robot]\nremove = ['rod']", "leave no joint that moves"),
        ("[robot]\nlock = ['rod_joint']", "leave no joint that moves"),
        ("[fit]\nweights = ['a']", "fit.weights[0] is 'a', expected a number of at least 0"),
        ("[fit]\nweights = [1, 2]", "fit.weights has 2 numbers, expected 1"),
        ("[fit]\nparameters = ['links[*']", "is not a path to parameters"),
        ("[fit]\nfriction = { stribeck = [1, 2] }", "fit.friction: stribeck has shape (2,)"),
        ("[columns]\nposition = { pattern = 'q', gear = ['a'] }\neffort = 'e'", "gear[0] is 'a', expected a finite"),
        ("[columns]\nposition = { pattern = 'q', gear = nan }\neffort = 'e'", "gear is nan, expected a finite"),
        ("[columns]\nposition = '{joint}'\neffort = { pattern = '{joint}', table = '(' }", "table '(' is not a valid"),
        ("[columns]\nposition = '('\neffort = 'e'", "columns.position: pattern '(' is not a valid regular"),
        ("[columns]\nposition = 'q{99999999999}'\neffort = 'e'", "is not a valid regular expression"),
        ("[columns]\nposition = '" + "(" * 900 + ")" * 90 + "'\neffort = 'e'", "is not a valid regular expression"),
        ("[columns]\nposition = 'q'\neffort = 'e'", "columns.position: pattern 'q' does not identify the joint"),
        ("[preparation]\nrate = 1e12", "rate is 1000000000000.0, expected a positive number of at most 1e+06"),
        ("[preparation]\nlongest_delay = 1e9", "longest_delay is 1000000000.0, expected a number from 0 to 1e+06"),
        ("[hold_out]\nshare = 0.5\nblocks = 1000000000", "blocks is 1000000000, expected a whole number from 1"),
        ("[fit]\nprior = { strength = nan }", "prior.strength is nan, expected a number of at least 0"),
        ("[fit]\nmethod = 'linear'\nprior = { strength = -1 }", "prior.strength is -1, expected a number of at"),
        ("[fit]\nmethod = 'linear'\nprior = { strength = 1 }", "fit.prior does not apply to the method 'linear'"),
        ("[fit]\nmethod = 'linear'\nbounds = { gravity = [0, 1] }", "fit.bounds does not apply to the method 'linear'"),
    ],
)
def test_invalid_configurations_give_one_line(tmp_path, capsys, text, message):
    path = tmp_path / "fit.toml"
    path.write_text(text)
    assert message in _error_of(capsys, "pendulum", "x.csv", "--config", path, "--out", tmp_path / "out")


def test_entries_of_a_configuration(tmp_path):
    path = tmp_path / "fit.toml"
    path.write_text(
        CONFIG + "friction = { stribeck = 0.1 }\nweights = [1, 2]\n[robot]\nlock = ['wrist']\nremove = ['tool']\n"
    )
    config = _config.read_config(path)
    assert config.lock == {"wrist": None} and config.remove == ["tool"] and config.friction == {"stribeck": 0.1}
    assert config.columns.position == Source("deg_{joint}", unit="deg") and config.columns.time_unit == "ms"
    assert config.columns.effort == Source("motor_{joint}", gear=50, sign=-1)
    assert config.preparation == Preparation(cutoff=25) and config.method == "physical"
    t = np.arange(100) * 0.01
    logs = [Log(t, t[:, None], t[:, None], None, t[:, None], name=name) for name in ("a.csv", "b.csv")]
    assert [log.name for log in config.hold_out(logs).held_out] == ["b.csv"]
    path.write_text("[hold_out]\ntimes = [[0.2, 0.4]]\nguard = 0.05\n[preparation]\neffort_delay = 'estimate'\n")
    config = _config.read_config(path)
    assert len(config.hold_out(logs[:1]).fit) == 2 and config.preparation.effort_delay is None
    path.write_text("[hold_out]\nshare = 0.5\nblocks = 1\nguard = 0\n")
    assert _config.read_config(path).hold_out(logs[:1]).held_out[0].num_samples == 50


def test_methods_are_built_from_names_and_numbers(tmp_path):
    path = tmp_path / "fit.toml"

    def read(text):
        path.write_text(text)
        config = _config.read_config(path)
        return config, _method.build_method(config)

    config, method = read("[fit]\nloss = 'huber'\n[fit.prior]\nstrength = 0.1\n[fit.bounds]\n'm(*)' = [0.1, 5]\n")
    assert isinstance(method, Physical) and method.loss == Huber() and config.bounds == {"m(*)": (0.1, 5.0)}
    assert _method.build_prior(config) == GeometricPrior(0.1) and _method.build_prior(Config()) is None
    _, method = read(
        "[fit]\nmethod = 'output-error'\nstart = 'free'\nloss = { name = 'cauchy', limit = 2 }\n"
        "options = { chunk = 4 }\n"
        "[fit.windows]\nlength = 0.3\n[fit.solver]\nmethod = 'levenberg-marquardt'\nstarts = 3\n"
    )
    assert isinstance(method, OutputError) and method.chunk == 4 and method.windows.length == 0.3
    assert isinstance(method.solver, LevenbergMarquardt) and method.solver.starts == 3
    assert method.solver.loss == Cauchy(2.0) and isinstance(method.start, FreeStart)
    _, method = read("[fit]\nmethod = 'low-passed'\noptions = { cutoff = 3 }\nsolver = { method = 'linear' }\n")
    assert isinstance(method, LowPassed) and method.cutoff == 3 and isinstance(method.solver, Linear)
    _, method = read("[fit]\nmethod = 'first-order'\noptimiser = { name = 'adam', learning_rate = 0.1 }\n")
    assert isinstance(method, FirstOrder) and isinstance(method.optimiser, optax.GradientTransformation)


MOTORS = """
[columns]
position = "enc_{joint}"
[columns.inputs]
voltage = "u_{joint}"
[columns.measured]
current = { pattern = { elbow = "i_elbow" }, unit = "mA" }
[fit]
parameters = ["parts[*].resistance", "parts[Inputs].controller.delay"]
inputs = { delay = 1e-3 }
[fit.motors.elbow]
constant = 0.05
resistance = 1.2
inductance = 2e-3
friction = { coulomb = 4e-3 }
cogging = { amplitude = 1e-3, periods = 12 }
thermal = { winding_capacity = 20, winding_resistance = 2 }
[fit.synchronous_motors.shoulder]
pole_pairs = 7
flux_linkage = 0.005
resistance = 0.2
input_quantity = "voltage"
"""


def test_motors_are_built_from_tables(tmp_path):
    path = tmp_path / "fit.toml"
    path.write_text(MOTORS)
    config = _config.read_config(path)
    assert config.columns == identification.Columns(
        Source("enc_{joint}"),
        inputs={"voltage": Source("u_{joint}")},
        measured={"current": Source({"elbow": "i_elbow"}, unit="mA")},
    )
    system = _method.build_system(_arm(), config)
    dc, synchronous, inputs = system.parts
    assert isinstance(dc, DcMotor) and dc.joint == "elbow" and dc.friction.static == dc.friction.coulomb
    assert dc.thermal.winding_capacity == 20 and dc.cogging.periods == 12 and dc.gear == 1
    assert isinstance(synchronous, SynchronousMotor) and synchronous.pole_pairs == 7
    np.testing.assert_allclose(inputs.controller.delay, 1e-3)
    _fit._check_parameters(system, config)
    for name, entries in (("motors", DcMotor), ("synchronous_motors", SynchronousMotor)):
        described = set(_options.describe_file("physical", "physical").entries["fit"].entries[name].item.entries)
        fields = {f.name for f in dataclasses.fields(entries) if f.init}
        assert described == fields - {"joint", "voltage", "phase_factor"}


DRIVEN = """
[columns]
position = "q.{joint}"
[columns.inputs]
voltage = "voltage.{joint}"
[columns.measured]
current = { pattern = "current.{joint}", unit = "A" }
rotor_velocity = "rotor_velocity.{joint}"
[preparation]
cutoff = 100
[hold_out]
runs = ["b.csv"]
[fit]
method = "low-passed"
options = { cutoff = 20 }
solver = { method = "levenberg-marquardt", reweight = 3 }
parameters = ["parts[DcMotor].constant", "parts[DcMotor].gear", "parts[Inputs].controller.delay"]
inputs = { delay = 1e-3 }
"""
MOTOR = """
[fit.motors.{joint}]
constant = 0.04
resistance = 1.2
inductance = 2e-3
gear = 16
rotor_inertia = 1.5e-5
viscous = 2e-5
friction = {{ coulomb = 4e-3, width = 5.0 }}
"""


@pytest.mark.exhaustive
def test_motors_are_identified_from_voltages_and_currents(tmp_path, capsys):
    for seed, name in enumerate(("a.csv", "b.csv")):
        columns = bench.measure(bench.exact_rows(seed), seed).columns
        rows = np.column_stack(list(columns.values()))
        np.savetxt(tmp_path / name, rows, delimiter=",", header=",".join(columns), comments="")
    jd.write_urdf(bench.arm(), tmp_path / "arm.urdf")
    (tmp_path / "fit.toml").write_text(DRIVEN + "".join(MOTOR.format(joint=joint) for joint in bench.JOINTS))
    files = [str(tmp_path / name) for name in ("arm.urdf", "a.csv", "b.csv")]
    assert main(["fit", *files, "--config", str(tmp_path / "fit.toml"), "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "current.elbow rate: error" in text and "status: CONVERGED" in text
    for motor in jd.load(tmp_path / "out" / "identified.jaxdyn").parts[:2]:
        np.testing.assert_allclose(motor.constant, 0.05, rtol=1e-3)
        np.testing.assert_allclose(motor.gear, 20.0, rtol=1e-3)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    channels = {row["joint"]: row for row in report["channels"]}
    assert channels["rotor_velocity.elbow"]["held_out"] < 0.1 and len(channels) == 6


def _numbers_of(cls, *others) -> set[str]:
    """Fields of a dataclass that are numbers."""
    kinds = {f.name: str(f.type) for f in dataclasses.fields(cls) if f.init}
    return {name for name, kind in kinds.items() if "int" in kind or "float" in kind} - set(others)


def test_every_number_of_a_method_is_described():
    for name, fields in _options.METHOD_OPTIONS.items():
        assert set(fields.entries) == _numbers_of(getattr(identification, _method.METHODS[name])), name
    classes = {**_method.LOSSES, **_method.STARTS}
    for name, fields in {**_options.LOSSES, **_options.STARTS}.items():
        assert set(fields.entries) == _numbers_of(getattr(identification, classes[name]), "spent"), name
    assert set(_options.WINDOWS.entries) == _numbers_of(identification.Windows)
    assert set(_options.PRIOR.entries) == _numbers_of(GeometricPrior)
    entries = _options.describe_file("physical", "physical").entries
    assert set(entries["preparation"].entries) == {f.name for f in dataclasses.fields(Preparation)}
    assert set(entries["columns"].entries) == {f.name for f in dataclasses.fields(identification.Columns)}
    fit = {f.name for f in dataclasses.fields(Config)} - {"lock", "remove", "columns", "preparation", "hold_out"}
    assert set(entries["fit"].entries) == fit
    for make, part in ((jd.actuators.joint_friction, "friction"), (jd.actuators.drive, "drive")):
        arguments = set(inspect.signature(make).parameters) - {"model", "command"}
        assert set(entries["fit"].entries[part].entries) == arguments


def test_runs_of_several_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a+b.csv").write_text("t\n0\n")
    assert _fit._split_run("a+b.csv") == "a+b.csv"
    assert _fit._split_run("q.csv+tau.csv") == ("q.csv", "tau.csv")
