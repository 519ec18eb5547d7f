"""`jaxdyn info` describes the content of a file, or says in one line why it cannot."""

import json
import re

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.cli import main
from jaxdyn.cli.info._describe import describe
from tests.io._pinocchio import ROBOTS
from tests.io._texts import arm, joint, link, robot

LIMIT = '<limit lower="-0.5" upper="1.25" effort="7" velocity="3"/>'


def output_of(capsys, *arguments) -> str:
    assert main(["info", *map(str, arguments)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_urdf(tmp_path, capsys):
    path = tmp_path / "r.urdf"
    path.write_text(
        robot(
            *(link(x) for x in "abc"),
            joint("j1", "revolute", "a", "b", f'{LIMIT}<axis xyz="0 0 1"/><dynamics damping="0.125"/>'),
            joint("j2", "revolute", "a", "c", f'{LIMIT}<axis xyz="0 0 1"/><mimic joint="j1" multiplier="-2"/>'),
            '<transmission name="t"><joint name="j1"/><actuator name="m"><mechanicalReduction>50</mechanicalReduction>'
            "</actuator></transmission><gazebo/>",
        )
    )
    text = output_of(capsys, path)
    assert re.search(r"^  mass +4\.5 kg$", text, re.MULTILINE)
    assert re.search(r"^  coordinates nq, nv +1, 1$", text, re.MULTILINE)
    assert "└─ a " in text and "├─ b " in text
    assert re.search(r"^  j1 +Revolute +0 +0 +-0\.5 +1\.25 +3 +7 +0\.125 +0 +0$", text, re.MULTILINE)
    assert "j2 = -2 * j1 + 0" in text
    assert re.search(r"^  m +j1 +50 +- +-$", text, re.MULTILINE)
    assert "robot: 1 <gazebo> ignored" in text and "joint j2: mimics another joint" in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_floating_base(tmp_path, capsys):
    path = tmp_path / "r.urdf"
    path.write_text(arm("base"))
    text = output_of(capsys, path, "--floating-base", "--package-dir", tmp_path)
    assert re.search(r"coordinates nq, nv +9, 8$", text, re.MULTILINE)
    assert re.search(r"root_joint +Free +0\.\.6 +0", text) and "nothing was assumed, changed or left out" in text


def test_absolute_mesh_paths_need_permission(tmp_path, capsys):
    mesh, path = tmp_path / "meshes" / "x.stl", tmp_path / "robot" / "r.urdf"
    for file, text in ((mesh, ""), (path, "")):
        file.parent.mkdir()
        file.write_text(text)
    path.write_text(robot(f'<link name="a"><visual><geometry><mesh filename="{mesh}"/></geometry></visual></link>'))
    assert main(["info", str(path), "--package-dir", str(path.parent)]) == 1
    assert "absolute paths are not followed" in capsys.readouterr().err
    assert re.search(r"^  shapes +1,", output_of(capsys, path, "--allow-absolute"), re.MULTILINE)
    assert main(["info", str(tmp_path / "x.xml"), "--allow-absolute"]) == 1
    assert "apply to .urdf files" in capsys.readouterr().err


def test_frames_springs_and_control_characters(tmp_path):
    b = jd.ModelBuilder(name="a\x1b[2J").add_link("arm\n", "world", jd.joints.Revolute((0, 0, 1)), stiffness=2.5)
    text = describe(b.add_frame("tool", "arm\n").build())
    assert "\x1b" not in text and r"a\x1b[2J" in text and r"└─ arm\n " in text
    assert re.search(r"^  tool +arm\\n$", text, re.MULTILINE)
    assert re.search(r"_joint +0 +2\.5 +-$", text, re.MULTILINE)


def test_saved_model(tmp_path, capsys):
    path = tmp_path / "arm.model"
    jd.save(path, jd.parse_urdf(arm("base")))
    assert re.search(r"^  elbow +Revolute +1 +1 +-1 +1 +2 +5", output_of(capsys, path), re.MULTILINE)


@pytest.mark.slow
def test_degrees_of_freedom_of_a_closed_mechanism(tmp_path, capsys):
    path = tmp_path / "linkage.model"
    jd.save(path, jd.robots.five_bar())
    assert "the closures leave 2 of 4 degrees of freedom at the neutral configuration" in output_of(capsys, path)


def test_mjcf(tmp_path, capsys):
    pytest.importorskip("mujoco")
    path = tmp_path / "arm.xml"
    path.write_text(
        '<mujoco><worldbody><body name="a"><joint name="hinge"/><geom size="0.1" mass="2"/></body></worldbody></mujoco>'
    )
    text = output_of(capsys, path)
    assert "hinge" in text and re.search(r"^  mass +2 kg$", text, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["panda_description/urdf/panda.urdf", "talos_data/robots/talos_full_v2.urdf"])
def test_real_robots(name, capsys):
    model = jd.load_urdf(ROBOTS / name)
    text = output_of(capsys, ROBOTS / name)
    for entry in (*model.link_names, *model.joint_names, *(x.name for x in model.actuators), *map(str, model.report)):
        assert entry in text
    assert f"{float(np.sum(model.links.mass)):.6g} kg" in text
    assert max(map(len, text.split("assumed, changed")[0].splitlines())) < 170


@pytest.mark.parametrize(
    ("name", "content", "arguments", "message"),
    [
        ("bad.urdf", "<robot><link/></robot>", [], "bad.urdf, line 1, <link>: has no attribute 'name'; add it"),
        ("missing.urdf", None, [], "missing.urdf: cannot be read"),
        ("not.model", "hello", [], "not a file that jaxdyn.save wrote"),
        ("bad.model", None, ["--floating-base"], "apply to .urdf files"),
    ],
)
def test_invalid_files_give_one_line(tmp_path, capsys, name, content, arguments, message):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    assert main(["info", str(path), *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("jaxdyn info: ") and message in err


def test_files_without_a_single_model(tmp_path, capsys):
    path = tmp_path / "x"
    jd.save(path, (1, 2))
    assert main(["info", str(path)]) == 1
    assert "contains a tuple, not a model" in capsys.readouterr().err
    model = jd.parse_urdf(arm("base"))
    jd.save(path, jax.tree.map(lambda x: np.stack([x, x]), model))
    assert main(["info", str(path)]) == 1
    assert "batch of shape (2,)" in capsys.readouterr().err


def test_json_of_a_bundled_robot(capsys):
    robot = json.loads(output_of(capsys, "double_pendulum", "--json"))
    model = jd.robots.double_pendulum()
    assert (robot["nq"], robot["nv"], robot["mass"]) == (2, 2, 2.0)
    assert [x["name"] for x in robot["joints"]] == list(model.joint_names)
    assert [x["q"] for x in robot["joints"]] == [[0], [1]] and robot["joints"][0]["upper"] == [None]
    assert robot["links"][1]["parent"] == model.link_names[0] and {x["name"] for x in robot["frames"]} == {
        "elbow",
        "tip",
    }


def test_the_command_alone_prints_examples(capsys):
    assert main([]) == 0
    text = capsys.readouterr().out
    assert "jaxdyn simulate panda" in text and "exit codes" in text
