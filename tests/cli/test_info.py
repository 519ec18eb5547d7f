"""`jaxdyn info` shows what is in a file, and says in one line why it cannot."""

import re

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.cli import main
from jaxdyn.cli._info import describe
from tests.io._pinocchio import ROBOTS
from tests.io._texts import arm, joint, link, robot

LIMIT = '<limit lower="-0.5" upper="1.25" effort="7" velocity="3"/>'


def shown(capsys, *arguments) -> str:
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
    text = shown(capsys, path)
    assert re.search(r"^  mass +4\.5 kg$", text, re.MULTILINE)
    assert re.search(r"^  coordinates nq, nv +1, 1$", text, re.MULTILINE)
    assert "└─ a " in text and "├─ b " in text
    assert re.search(r"^  j1 +Revolute +0 +0 +-0\.5 +1\.25 +3 +7 +0\.125 +0 +0$", text, re.MULTILINE)
    assert "j2 = -2 * j1 + 0" in text
    assert re.search(r"^  m +j1 +50 +- +-$", text, re.MULTILINE)
    assert "robot: 1 <gazebo> not read" in text and "joint j2: mimics another joint" in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_floating_base(tmp_path, capsys):
    path = tmp_path / "r.urdf"
    path.write_text(arm("base"))
    text = shown(capsys, path, "--floating-base", "--package-dir", tmp_path)
    assert re.search(r"coordinates nq, nv +9, 8$", text, re.MULTILINE)
    assert re.search(r"root_joint +Free +0\.\.6 +0", text) and "nothing was assumed" in text


def test_absolute_names_of_meshes_are_followed_where_allowed(tmp_path, capsys):
    mesh, path = tmp_path / "meshes" / "x.stl", tmp_path / "robot" / "r.urdf"
    for file, text in ((mesh, ""), (path, "")):
        file.parent.mkdir()
        file.write_text(text)
    path.write_text(robot(f'<link name="a"><visual><geometry><mesh filename="{mesh}"/></geometry></visual></link>'))
    assert main(["info", str(path), "--package-dir", str(path.parent)]) == 1
    assert "absolute paths are not followed" in capsys.readouterr().err
    assert re.search(r"^  shapes +1,", shown(capsys, path, "--allow-absolute"), re.MULTILINE)
    assert main(["info", str(tmp_path / "x.xml"), "--allow-absolute"]) == 1
    assert "are for files that end in .urdf" in capsys.readouterr().err


def test_frames_springs_and_names_from_anywhere(tmp_path):
    b = jd.ModelBuilder(name="a\x1b[2J").add_link("arm\n", "world", jd.joints.Revolute((0, 0, 1)), stiffness=2.5)
    text = describe(b.add_frame("tool", "arm\n").build())
    assert "\x1b" not in text and r"a\x1b[2J" in text and r"└─ arm\n " in text
    assert re.search(r"^  tool +arm\\n$", text, re.MULTILINE)
    assert re.search(r"_joint +0 +2\.5 +-$", text, re.MULTILINE)


def test_saved_model(tmp_path, capsys):
    path = tmp_path / "arm.model"
    jd.save(path, jd.parse_urdf(arm("base")))
    assert re.search(r"^  elbow +Revolute +1 +1 +-1 +1 +2 +5", shown(capsys, path), re.MULTILINE)


@pytest.mark.slow
def test_freedom_left_by_closures(tmp_path, capsys):
    path = tmp_path / "linkage.model"
    jd.save(path, jd.robots.five_bar())
    assert "they leave 2 of 4 degrees of freedom at zero" in shown(capsys, path)


def test_mjcf(tmp_path, capsys):
    pytest.importorskip("mujoco")
    path = tmp_path / "arm.xml"
    path.write_text(
        '<mujoco><worldbody><body name="a"><joint name="hinge"/><geom size="0.1" mass="2"/></body></worldbody></mujoco>'
    )
    text = shown(capsys, path)
    assert "hinge" in text and re.search(r"^  mass +2 kg$", text, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["panda_description/urdf/panda.urdf", "talos_data/robots/talos_full_v2.urdf"])
def test_real_robots(name, capsys):
    model = jd.load_urdf(ROBOTS / name)
    text = shown(capsys, ROBOTS / name)
    for entry in (*model.link_names, *model.joint_names, *(x.name for x in model.actuators), *map(str, model.report)):
        assert entry in text
    assert f"{float(np.sum(model.links.mass)):.6g} kg" in text
    assert max(map(len, text.split("assumed, changed")[0].splitlines())) < 170


@pytest.mark.parametrize(
    ("name", "content", "arguments", "message"),
    [
        ("bad.urdf", "<robot><link/></robot>", [], "bad.urdf, line 1, <link>: has no attribute 'name'; give it one"),
        ("missing.urdf", None, [], "missing.urdf: cannot be read"),
        ("not.model", "hello", [], "not a file that jaxdyn.save wrote"),
        ("bad.model", None, ["--floating-base"], "are for files that end in .urdf"),
    ],
)
def test_bad_files(tmp_path, capsys, name, content, arguments, message):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    assert main(["info", str(path), *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("jaxdyn info: ") and message in err


def test_what_is_no_model(tmp_path, capsys):
    path = tmp_path / "x"
    jd.save(path, (1, 2))
    assert main(["info", str(path)]) == 1
    assert "holds a tuple, not a model" in capsys.readouterr().err
    model = jd.parse_urdf(arm("base"))
    jd.save(path, jax.tree.map(lambda x: np.stack([x, x]), model))
    assert main(["info", str(path)]) == 1
    assert "batch of shape (2,)" in capsys.readouterr().err
