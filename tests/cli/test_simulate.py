"""`jaxdyn simulate` simulates robots from files and bundled ones, or says in one line why it cannot."""

import inspect
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.cli import main
from jaxdyn.cli.robots import bundled_robots
from jaxdyn.cli.simulate import _control_table
from jaxdyn.simulation import effort_names
from tests.io._texts import arm


def output_of(capsys, *arguments) -> str:
    assert main(["simulate", *map(str, arguments)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def error_of(capsys, *arguments) -> str:
    assert main(["simulate", *map(str, arguments)]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("jaxdyn simulate: ")
    return err


@pytest.mark.slow
def test_bundled_pendulum(tmp_path, capsys):
    out = tmp_path / "run.csv"
    text = output_of(capsys, "pendulum", "--time", "2.5", "--rate", "20", "--q", "1.0", "--v", "-0.5", "--out", out)
    m = jd.robots.pendulum()
    truth = jd.simulate(m, jnp.array([1.0]), jnp.array([-0.5]), jnp.linspace(0, 2.5, 51))
    columns = _control_table._columns(out)
    joint = m.joint_names[-1]
    np.testing.assert_allclose(columns["t"], truth.t, atol=1e-15)
    np.testing.assert_allclose(columns[f"q.{joint}"], truth.q[:, 0], atol=1e-12)
    np.testing.assert_allclose(columns["energy"], truth.energy, atol=1e-11)
    assert re.search(r"^time +2\.5 s in 51 rows$", text, re.MULTILINE)
    assert re.search(rf"^steps +{int(truth.num_steps)} of Tsit5, adaptive$", text, re.MULTILINE)
    drift = float(re.search(r"^energy drift +([\d.e-]+) J", text, re.MULTILINE)[1])
    assert drift == pytest.approx(float(jnp.abs(truth.energy - truth.energy[0]).max()), rel=0.1) and drift < 1e-5
    assert re.search(r"^status +FINISHED: the last time was reached$", text, re.MULTILINE) and f"{out}" in text
    assert [p.name for p in tmp_path.iterdir()] == ["run.csv"]


@pytest.mark.exhaustive
def test_efforts_from_a_table(tmp_path, capsys):
    m = jd.robots.double_pendulum()
    names = [name for name, _ in effort_names(m)]
    table = tmp_path / "u.csv"
    table.write_text(f"# torques\nt,{names[1]}\n0,0\n0.25,5\n0.5,-3\n")
    out = tmp_path / "run.npz"
    common = ("double_pendulum", "--time", "0.5", "--rate", "8", "--q", f"{names[0]}=0.3")
    text = output_of(capsys, *common, "--control", table, "--out", out)
    assert re.search(rf"^driven +1 of 2 efforts: {names[1]}$", text, re.MULTILINE) and "efforts do work" in text
    times, efforts = jnp.array([0, 0.25, 0.5]), jnp.array([[0, 0.0], [0, 5], [0, -3]])
    signals = {
        "linear": jd.simulation.linear_signal(times, efforts),
        "cubic": jd.simulation.cubic_signal(times, efforts),
        "hold": jd.simulation.HeldSignal(efforts, 0.25),
    }
    truth = jd.simulate(m, jnp.array([0.3, 0.0]), jnp.zeros(2), jnp.linspace(0, 0.5, 5), effort=signals["linear"])
    with np.load(out) as file:
        found = np.stack([file[f"q.{n}"] for n in names], axis=1)
        np.testing.assert_allclose(found, truth.q, atol=1e-9)
        np.testing.assert_allclose(file[f"effort.{names[1]}"], truth.action.effort[:, 1], atol=1e-9)
    for name, part in signals.items():
        control = _control_table.read_control(table, m, name)
        assert control.names == names[1:] and not control.commands_actuators
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=1e-14), *map(jax.tree.leaves, (control.inputs, part))
        )


def test_written_trajectories_can_be_read_as_efforts(tmp_path):
    m = jd.robots.double_pendulum()
    t = jnp.linspace(0, 1, 3)
    rows = jnp.arange(6.0).reshape(3, 2)
    tr = jd.Trajectory(t, rows, rows, None, t < 2, jnp.zeros((), int), jnp.zeros((), int), jd.System(m))
    for write, name in ((jd.simulation.to_csv, "x.csv"), (jd.simulation.to_npz, "x.npz")):
        write(tr, tmp_path / name, extra={"effort": rows**2})
        control = _control_table.read_control(tmp_path / name, m, "linear")
        assert control.names == [n for n, _ in effort_names(m)]
        inputs = control.inputs.controller.command(m, 0.25, None, None).inputs
        np.testing.assert_allclose(inputs, (rows[0] ** 2 + rows[1] ** 2) / 2)


DRIVEN = """<mujoco><worldbody><body name="arm"><joint name="hinge" axis="0 1 0" actuatorfrcrange="-6 6"/>
<geom type="capsule" fromto="0 0 0 0 0 -1" size="0.05" mass="1"/></body></worldbody>
<actuator><motor name="drive" joint="hinge" gear="10" ctrlrange="-0.5 0.5"/></actuator></mujoco>"""


@pytest.mark.slow
def test_actuators_of_a_file_act_within_their_ranges(tmp_path, capsys):
    """Against MuJoCo: the range bounds the input, `actuatorfrcrange` the effort of the joint."""
    mujoco = pytest.importorskip("mujoco")
    path, table, out = tmp_path / "arm.xml", tmp_path / "u.csv", tmp_path / "run.npz"
    path.write_text(DRIVEN)
    run = ("--time", "0.5", "--rate", "10", "--dt", "0.005")
    assert re.search(r"^actuators +1 in the file, idle", output_of(capsys, path, "--time", "0.1"), re.MULTILINE)
    for scale, effort, word in ((0.3, 3.0, "never"), (2.0, 5.0, "drive in 6 rows")):
        table.write_text(f"t,drive\n0,{scale}\n1,{scale}\n")
        text = output_of(capsys, path, *run, "--control", table, "--out", out)
        assert re.search(r"^driven +1 of 1 actuators: drive$", text, re.MULTILINE)
        assert re.search(rf"^saturated +{word}", text, re.MULTILINE)
        spec = mujoco.MjModel.from_xml_string(DRIVEN)
        data = mujoco.MjData(spec)
        data.ctrl[:] = scale
        mujoco.mj_forward(spec, data)
        assert abs(data.qfrc_actuator[0] - effort) < 1e-12
        with np.load(out) as file:
            np.testing.assert_allclose(file["effort.hinge"], effort)


@pytest.mark.slow
def test_files_solvers_and_figures(tmp_path, capsys):
    path = tmp_path / "arm.urdf"
    path.write_text(arm("base"))
    run = ("--time", "0.1", "--rate", "50", "--dt", "0.01")
    quick = ("--solver", "semi-implicit-euler")
    files = ("--plot", tmp_path / "arm.png", "--gif", tmp_path / "arm.gif", "--html", tmp_path / "arm.html")
    text = output_of(capsys, path, *run, *quick, "--floating-base", *files)
    assert (tmp_path / "arm.gif").read_bytes().startswith(b"GIF8") and "arm.html" in text
    assert "nq 9, nv 8" in text and (tmp_path / "arm.png").read_bytes().startswith(b"\x89PNG")
    assert re.search(r"^steps +10 of SemiImplicitEuler, 0\.01 s each$", text, re.MULTILINE)
    jd.save(tmp_path / "arm.model", jd.parse_urdf(arm("base")))
    assert "10 of CanonicalMomenta" in output_of(capsys, tmp_path / "arm.model", *run, "--solver", "momentum")


@pytest.mark.exhaustive
def test_closures_are_satisfied(tmp_path, capsys):
    text = output_of(
        capsys, "four_bar", "--time", "0.5", "--rate", "20", "--dt", "0.005", "--out", tmp_path / "run.npz"
    )
    assert re.search(r"^closures +1, enforced by Lagrange multipliers$", text, re.MULTILINE)
    m = jd.robots.four_bar()
    (constraint,) = jd.constraints.described_constraints(m)
    with np.load(tmp_path / "run.npz") as file:
        q = np.stack([file[f"q.{name}"] for name, _ in jd.simulation.coordinate_names(m)], axis=1)
    assert np.ptp(q, axis=0).max() > 0.1
    for row in q:
        found = jd.constraints.assemble(m, (constraint,), jnp.asarray(row))
        np.testing.assert_allclose(found.q, row, atol=1e-8)


def test_bundled_robots_need_no_arguments():
    found = bundled_robots()
    assert {"panda", "humanoid", "pendulum", "quadruped"} <= found.keys() and "chain" not in found
    assert all(isinstance(make, type(main)) and inspect.signature(make) for make in found.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody"], "is neither a file nor a bundled robot; bundled are acrobot,"),
        (["missing.urdf"], "missing.urdf: cannot be read"),
        (["panda", "--floating-base"], "apply to .urdf files"),
        (["pendulum", "--q", "1", "2"], "--q 1 2: expected 1 numbers, or NAME=NUMBER with some of"),
        (["pendulum", "--v", "elbow=1"], "--v elbow=1: expected 1 numbers"),
        (["pendulum", "--q", "one"], "--q rod_joint is 'one', expected a finite number"),
        (["pendulum", "--q", "nan"], "--q rod_joint is nan, expected a finite number"),
        (["pendulum", "--v", "rod_joint=1e308"], "--v rod_joint is 1e+308, expected a finite number"),
        (["pendulum", "--time", "-1"], "--time is -1.0, expected a positive number of at most 1e+09"),
        (["pendulum", "--time", "1e308"], "--time is 1e+308, expected a positive number of at most 1e+09"),
        (["pendulum", "--time", "nan"], "--time is nan, expected a positive number"),
        (["pendulum", "--rate", "fast"], "--rate is 'fast', expected a positive number"),
        (["pendulum", "--rate", "1e12"], "--rate is 1000000000000.0, expected a positive number of at most 1e+09"),
        (["pendulum", "--rate", "1e9"], "give 5e+09 rows, expected at most 50000000 for this robot; lower one"),
        (["pendulum", "--dt", "0"], "--dt is 0.0, expected a positive number"),
        (["pendulum", "--tolerance", "2"], "--tolerance is 2.0, expected a positive number of at most 1"),
        (["pendulum", "--max-steps", "-1"], "--max-steps is -1, expected a whole number from 1 to 2000000000"),
        (["pendulum", "--max-steps", "9" * 5000], "--max-steps is '999"),
        (["pendulum", "--stops", "1.5"], "--stops is 1.5, expected a number from 0 to 1"),
        (["pendulum", "--out", "x.txt"], "x.txt: ends in '.txt', expected one of .csv, .npz, .parquet"),
        (["pendulum", "--plot", "nowhere/x.png"], "nowhere/x.png: there is no folder nowhere"),
        (["pendulum", "--dt", "0.1", "--tolerance", "1e-3"], "give one of the two"),
        (["pendulum", "--solver", "variational"], "Variational has no error estimate"),
        (["pendulum", "--control", "u.txt"], "u.txt: a table of efforts ends in .csv or .npz"),
        (["pendulum", "--control", "u.csv"], "u.csv: cannot be read"),
        (["pendulum", "--stops", "0.5", "--control", "u.csv"], "u.csv: cannot be read"),
    ],
)
def test_invalid_input_gives_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in error_of(capsys, *arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_trajectory_up_to_a_failure_is_written(tmp_path, capsys):
    steps = ("--dt", "0.1", "--rate", "10", "--solver", "semi-implicit-euler", "--max-steps", "3")
    out = tmp_path / "run.csv"
    assert re.search(
        r"MAX_STEPS.*The trajectory up to there is in .*run\.csv", error_of(capsys, "pendulum", *steps, "--out", out)
    )
    assert '"MAX_STEPS"' in out.read_text()
    q = next(x for name, x in _control_table._columns(out).items() if name.startswith("q."))
    assert np.isfinite(q[:4]).all() and np.isnan(q[4:]).all()


@pytest.mark.exhaustive
def test_joint_stops(tmp_path, capsys):
    path = tmp_path / "slide.urdf"
    link = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    limit = '<limit lower="-0.5" upper="1" effort="1" velocity="1"/>'
    joint = f'<joint name="j" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>{limit}</joint>'
    path.write_text(f'<robot name="r"><link name="a"/><link name="b">{link}</link>{joint}</robot>')
    run = (path, "--time", "0.5", "--rate", "100", "--dt", "0.01", "--out", tmp_path / "run.csv")
    for extra, low in (((), -0.5 - 0.6), (("--stops", "0.5"), -0.5)):
        text = output_of(capsys, *run, *extra)
        assert re.search(r"^limits +on 1 coordinates, (ignored|rebound)", text, re.MULTILINE)
        q = _control_table._columns(tmp_path / "run.csv")["q.j"]
        assert abs(q.min() - low) < 0.15 and q.min() > low - 0.15
    assert q.min() >= -0.5 - 1e-9


@pytest.mark.slow
def test_a_joint_held_by_its_stop_is_named(tmp_path, capsys):
    """A slider falls onto a plastic stop at -0.5 m."""
    builder = jd.ModelBuilder()
    builder.add_link("puck", "world", jd.joints.Prismatic([0, 0, 1]), jd.spatial.point_mass(1.0), lower=-0.5)
    jd.save(tmp_path / "slider.model", builder.build())
    main(["simulate", str(tmp_path / "slider.model"), "--time", "1", "--dt", "0.01", "--stops", "0"])
    text = "".join(capsys.readouterr())
    assert re.search(r"HELD: .*: puck_joint = -0\.5 m at its lower limit -0\.5; start within", text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has columns none; expected 't' and some of"),
        ("t,elbow\n0,1\n1,2\n", "has columns 't', 'elbow'"),
        ("{j}\n0\n1\n", "expected 't' and some of"),
        ("t,{j}\n0,1\n", "at least two rows"),
        ("t,{j}\n0,1\n0,2\n", "times that increase"),
        ("t,{j}\n0,nan\n1,2\n", "finite"),
        ("t,{j}\n0,1,2\n1,2\n", "row 1 has 3 entries for 2 columns"),
        ("t,{j}\n0,x\n1,2\n", "is not a table of numbers"),
        ("t,t\n0,1\n1,2\n", "two columns have the same name"),
    ],
)
def test_invalid_tables_give_one_line(content, message, capsys, tmp_path):
    path = tmp_path / "u.csv"
    path.write_text(content.replace("{j}", effort_names(jd.robots.pendulum())[0][0]))
    assert message in error_of(capsys, "pendulum", "--control", path)


def test_other_invalid_tables(capsys, tmp_path):
    joint = effort_names(jd.robots.pendulum())[0][0]
    (tmp_path / "u.npz").write_bytes(b"PK\x03\x04 no")
    assert "is not a table of numbers" in error_of(capsys, "pendulum", "--control", tmp_path / "u.npz")
    np.savez(tmp_path / "u.npz", **{"t": np.arange(3.0), joint: np.arange(2.0)})
    assert "expected columns of one length" in error_of(capsys, "pendulum", "--control", tmp_path / "u.npz")
    np.savez(tmp_path / "u.npz", **{"t": np.array([0, 1, 3.0]), joint: np.zeros(3)})
    hold = ("pendulum", "--control", tmp_path / "u.npz", "--interpolation", "hold")
    assert "equally spaced times that start at 0" in error_of(capsys, *hold)


@pytest.mark.parametrize("arguments", [["--solver", "magic"], []])
def test_invalid_options_print_the_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["simulate", *(["pendulum"] if arguments else []), *arguments])
    assert stop.value.code == 2 and "usage: jaxdyn simulate" in capsys.readouterr().err


@pytest.mark.slow
def test_interrupt_while_writing_leaves_no_file(tmp_path, monkeypatch, capsys):
    def interrupt(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    steps = ["--time", "0.1", "--dt", "0.1", "--solver", "semi-implicit-euler"]
    assert main(["simulate", "pendulum", *steps, "--out", str(tmp_path / "run.csv")]) == 130
    assert not (tmp_path / "run.csv").exists()
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.slow
def test_interrupt_ends_a_running_simulation(tmp_path):
    command = [sys.executable, "-c", "import sys; from jaxdyn.cli import main; sys.exit(main())", "simulate", "panda"]
    options = ["--time", "100000", "--dt", "1e-5", "--max-steps", "2000000000", "--rate", "0.01", "--out", "run.csv"]
    environment = {**os.environ, "PYTHONPATH": str(Path(jd.__file__).parents[1])}
    run = subprocess.Popen([*command, *options], cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    try:
        time.sleep(15)
        assert run.poll() is None
        run.send_signal(signal.SIGINT)
        start_time = time.monotonic()
        run.communicate(timeout=60)
        assert time.monotonic() - start_time < 10 and run.returncode != 0
    finally:
        run.kill()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_progress_bar_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    steps = ["--time", "1", "--dt", "0.005", "--solver", "semi-implicit-euler"]
    assert main(["simulate", "pendulum", *steps]) == 0
    out, err = capsys.readouterr()
    assert "100.00%|" in err and "%|" not in out and "FINISHED" in out
