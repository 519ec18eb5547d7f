"""MJCF that is wrong, large, or names files: typed errors, and nothing read that was not allowed."""

import os
import random
import sys

import pytest

import jaxdyn as jd
from jaxdyn.io import _mjcf_source
from tests.io.test_mjcf import EVERYTHING

PART = "<mujoco><worldbody><body name='part'><joint/><geom size='0.1'/></body></worldbody></mujoco>"
INCLUDING = "<mujoco><include file='{}'/></mujoco>"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# --- files -----------------------------------------------------------------------------------------


def test_includes_below_the_folder(tmp_path):
    write(tmp_path / "parts" / "part.xml", PART)
    model = jd.load_mjcf(write(tmp_path / "robot.xml", INCLUDING.format("parts/part.xml")))
    assert model.link_names == ("part",)


@pytest.mark.parametrize("name", ["../part.xml", "{folder}/part.xml", "link.xml", "..&#47;part.xml"])
def test_other_files_only_where_the_caller_says(tmp_path, name):
    part = write(tmp_path / "part.xml", PART)
    file = write(tmp_path / "robots" / "robot.xml", INCLUDING.format(name.format(folder=tmp_path)))
    (file.parent / "link.xml").symlink_to(part)
    with pytest.raises(jd.ModelError, match=r"outside what may be read; add the folder .* roots="):
        jd.load_mjcf(file)
    assert jd.load_mjcf(file, roots=[tmp_path]).link_names == ("part",)


def test_included_texts_are_followed(tmp_path):
    write(tmp_path / "mesh.obj", "v 0 0 0")
    asset = "<mujoco><compiler meshdir='..'/><asset><mesh name='m' file='mesh.obj'/></asset></mujoco>"
    write(tmp_path / "robots" / "parts.xml", asset)
    file = write(tmp_path / "robots" / "robot.xml", INCLUDING.format("parts.xml"))
    with pytest.raises(jd.ModelError, match="names the file 'mesh.obj', which lies outside"):
        jd.load_mjcf(file)


def test_a_text_reads_no_file(tmp_path, monkeypatch):
    write(tmp_path / "part.xml", PART)
    monkeypatch.chdir(tmp_path)
    for name in ("part.xml", str(tmp_path / "part.xml")):
        with pytest.raises(jd.ModelError, match="a text reads no files: pass the content in assets"):
            jd.parse_mjcf(INCLUDING.format(name))


def test_assets_of_a_text():
    text = INCLUDING.format("parts/part.xml")
    assert jd.parse_mjcf(text, assets={"parts/part.xml": PART.encode()}).link_names == ("part",)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(jd.JaxdynError, match="cannot be read"):
        jd.load_mjcf(tmp_path / "none.xml")
    with pytest.raises(jd.ModelError, match="Error opening file .*gone.xml"):
        jd.load_mjcf(write(tmp_path / "robot.xml", INCLUDING.format("gone.xml")))


def test_nothing_is_written(tmp_path, monkeypatch):
    """MuJoCo puts its warnings into a file in the working directory; here they are in the report."""
    monkeypatch.chdir(tmp_path)
    model = jd.parse_mjcf(PART.replace("<mujoco>", "<mujoco><custom><numeric name='n' data='nan'/></custom>"))
    assert "XML contains a 'NaN'" in "".join(note.what for note in model.report)
    assert list(tmp_path.iterdir()) == []


def test_sizes_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(_mjcf_source, "MAX_BYTES", 100)
    with pytest.raises(jd.ModelError, match="at most 100 are read"):
        jd.parse_mjcf(EVERYTHING)
    with pytest.raises(jd.ModelError, match="larger than the 100 bytes"):
        jd.load_mjcf(write(tmp_path / "robot.xml", EVERYTHING))


def test_names_of_files_are_bounded(monkeypatch):
    monkeypatch.setattr(_mjcf_source, "MAX_NAMES", 3)
    files = "".join(f"<mesh name='m{i}' file='m{i}.obj'/>" for i in range(4))
    with pytest.raises(jd.ModelError, match="names 4 files, at most 3"):
        jd.parse_mjcf(f"<mujoco><asset>{files}</asset></mujoco>")


def test_included_texts_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(_mjcf_source, "MAX_TEXTS", 2)
    includes = "".join(f"<include file='part{i}.xml'/>" for i in range(3))
    for i in range(3):
        write(tmp_path / f"part{i}.xml", "<mujoco/>")
    with pytest.raises(jd.ModelError, match="names 3 texts to include, at most 2"):
        jd.load_mjcf(write(tmp_path / "robot.xml", f"<mujoco>{includes}</mujoco>"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names of files are text there")
def test_names_that_are_not_text(tmp_path):
    inner = tmp_path / "robots"
    inner.mkdir()
    target = os.path.join(os.fsencode(tmp_path), b"\xff.xml")
    with open(target, "w") as file:
        file.write(PART)
    robot = inner / "robot.xml"
    robot.write_bytes(b"<mujoco><include file='../\xff.xml'/></mujoco>")
    with pytest.raises(jd.ModelError, match="outside what may be read"):
        jd.load_mjcf(robot)


# --- texts -----------------------------------------------------------------------------------------

WRONG = {
    "empty": ("", "is not MJCF"),
    "no XML": ("hello", "is not MJCF"),
    "not closed": ("<mujoco>", "compiler refuses it"),
    "URDF": ("<?xml version='1.0'?><!-- a --><robot name='r'/>", "is URDF .*load_urdf"),
    "another format": ("<sdf/>", "its first element must be <mujoco>"),
    "element": ("<mujoco><worlds/></mujoco>", "compiler refuses it .*worlds"),
    "attribute": (PART.replace("<joint", "<joint colour='red'"), "compiler refuses it .*colour"),
    "joint": (PART.replace("<joint", "<joint type='screw'"), "compiler refuses it .*screw"),
    "massless": (PART.replace("<geom size='0.1'/>", ""), "mass and inertia of moving bodies"),
    "size": (PART.replace("0.1", "-1"), "compiler refuses it .*size"),
    "not a number": (PART.replace("0.1", "nan"), "compiler refuses it .*nan"),
    "two names": ("<mujoco><worldbody>" + "<body name='a'/>" * 2 + "</worldbody></mujoco>", "repeated name 'a'"),
    "inner free joint": (
        PART.replace("<joint/>", "<body><freejoint/><geom size='1'/></body>"),
        "free joint can only be",
    ),
    "deep": ("<mujoco><worldbody>" + "<body>" * 5000 + "</body>" * 5000 + "</worldbody></mujoco>", "too deep"),
    "zero": ("<mujoco>\0</mujoco>", "compiler refuses it"),
    "lone surrogate": ("<mujoco model='\ud800'/>", "compiler refuses it"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_texts(case):
    text, message = WRONG[case]
    with pytest.raises(jd.ModelError, match=message):
        jd.parse_mjcf(text)


def _mutants(count: int):
    """The text with pieces cut, doubled, exchanged or overwritten."""
    rng = random.Random(0)
    for _ in range(count):
        text = EVERYTHING
        for _ in range(rng.randint(1, 3)):
            i, j = sorted(rng.sample(range(len(text)), 2))
            j = min(j, i + 30)
            piece = rng.choice(("", text[i:j] * 2, "nan", "-1", "1e400", "<", '"', "name=", "\0", "0 0 0"))
            text = text[:i] + piece + text[j:]
        yield text


def _survives(text):
    try:
        return jd.parse_mjcf(text)
    except jd.JaxdynError as error:
        assert len(str(error)) > 20
        return None


def test_mutants_give_a_model_or_a_typed_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    models = [_survives(text) for text in _mutants(150)]
    assert any(models) and not all(models)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_many_mutants(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert sum(_survives(text) is not None for text in _mutants(5000)) > 100
