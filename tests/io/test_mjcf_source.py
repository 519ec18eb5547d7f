"""MJCF that is invalid, large, or names files: typed errors, and only allowed files are read."""

import random
import re
import time

import jax
import mujoco
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.io import ParsingLimits
from jaxdyn.io.mjcf import _source as _mjcf_source
from tests.io.test_mjcf import EVERYTHING, MESH, SHAPES, body

DRIVES = """<actuator>
  <motor name="m" joint="j" ctrlrange="-1 1" gear="3"/><position joint="j" kp="2" forcerange="-5 5"/>
</actuator>
<equality><joint joint1="j" polycoef="0.5 0 0 0 0"/></equality>"""

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


@pytest.mark.parametrize(
    "name",
    [
        *("../part.xml", "{folder}/part.xml", "link.xml", "..&#47;part.xml"),
        *("&#00000046;&#x0000000000002e;/part.xml", "&#46;&#0000000000046;&#x2F;part.xml"),
    ],
)
def test_other_folders_need_permission(tmp_path, name):
    part = write(tmp_path / "part.xml", PART)
    file = write(tmp_path / "robots" / "robot.xml", INCLUDING.format(name.format(folder=tmp_path)))
    (file.parent / "link.xml").symlink_to(part)
    with pytest.raises(jd.ModelError, match=r"outside the allowed folders; add the folder .* roots="):
        jd.load_mjcf(file)
    assert jd.load_mjcf(file, roots=[tmp_path]).link_names == ("part",)


def test_roots_may_be_one_string(tmp_path):
    """It is not taken as a sequence of letters, of which `/` would be the whole disk."""
    write(tmp_path / "part.xml", PART)
    (tmp_path / "other").mkdir()
    file = write(tmp_path / "robots" / "robot.xml", INCLUDING.format("../part.xml"))
    assert jd.load_mjcf(file, roots=str(tmp_path)).link_names == ("part",)
    with pytest.raises(jd.ModelError, match="outside the allowed folders"):
        jd.load_mjcf(file, roots=str(tmp_path / "other"))


def test_included_texts_are_parsed_whatever_they_begin_with(tmp_path):
    """Texts that MuJoCo reads as XML are parsed as XML, or refused."""
    write(tmp_path / "secret.xml", PART)
    write(tmp_path / "robots" / "part.xml", "x" + INCLUDING.format("../secret.xml"))
    file = write(tmp_path / "robots" / "robot.xml", INCLUDING.format("part.xml"))
    with pytest.raises(jd.FileFormatError, match="part.xml, line 1: is not well-formed"):
        jd.load_mjcf(file)


def test_included_texts_are_followed(tmp_path):
    write(tmp_path / "mesh.obj", "v 0 0 0")
    asset = "<mujoco><compiler meshdir='..'/><asset><mesh name='m' file='mesh.obj'/></asset></mujoco>"
    write(tmp_path / "robots" / "parts.xml", asset)
    file = write(tmp_path / "robots" / "robot.xml", INCLUDING.format("parts.xml"))
    with pytest.raises(jd.ModelError, match="names the file 'mesh.obj', which lies outside"):
        jd.load_mjcf(file)


def test_texts_read_no_files(tmp_path, monkeypatch):
    write(tmp_path / "part.xml", PART)
    monkeypatch.chdir(tmp_path)
    for name in ("part.xml", str(tmp_path / "part.xml")):
        with pytest.raises(jd.ModelError, match="a text may read no files: pass the content as assets"):
            jd.parse_mjcf(INCLUDING.format(name))


def test_assets_of_a_text():
    text = INCLUDING.format("parts/part.xml")
    assert jd.parse_mjcf(text, assets={"parts/part.xml": PART.encode()}).link_names == ("part",)


def test_missing_files(tmp_path):
    with pytest.raises(jd.JaxdynError, match="cannot be read"):
        jd.load_mjcf(tmp_path / "none.xml")
    with pytest.raises(jd.ModelError, match="Error opening file .*gone.xml"):
        jd.load_mjcf(write(tmp_path / "robot.xml", INCLUDING.format("gone.xml")))


def test_compilation_writes_no_files(tmp_path, monkeypatch):
    """MuJoCo writes its warnings to a file in the working directory; jaxdyn adds them to the report."""
    monkeypatch.chdir(tmp_path)
    text = PART.replace("<mujoco>", "<mujoco><custom><numeric name='n' data='nan'/></custom>")
    _, warnings = _mjcf_source._run_compiler(mujoco, "text", lambda: mujoco.MjModel.from_xml_string(text))
    assert "XML contains a 'NaN'" in "".join(warnings)
    assert list(tmp_path.iterdir()) == []


def test_sizes_are_limited(tmp_path):
    few = lambda **k: ParsingLimits(**({"max_depth": 500} | k))
    with pytest.raises(jd.FileFormatError, match="more than the 100 allowed"):
        jd.parse_mjcf(EVERYTHING, bounds=few(max_bytes=100))
    with pytest.raises(jd.FileFormatError, match="larger than the 100 bytes"):
        jd.load_mjcf(write(tmp_path / "robot.xml", EVERYTHING), bounds=few(max_bytes=100))
    with pytest.raises(jd.FileFormatError, match="nested deeper than 3"):
        jd.parse_mjcf(EVERYTHING, bounds=few(max_depth=3))
    with pytest.raises(jd.FileFormatError, match="more than 9 elements"):
        jd.parse_mjcf(EVERYTHING, bounds=few(max_elements=9))
    with pytest.raises(jd.FileFormatError, match="bodies, more than 2;"):
        jd.parse_mjcf(EVERYTHING, bounds=few(max_links=2))


#: short texts that expand to large models
LARGE = {
    "replicas": "<worldbody><replicate count='2001'><geom size='1'/></replicate></worldbody>",
    "replicas of replicas": "<worldbody><replicate count='100'><replicate count='1e2'><geom size='1'/></replicate>"
    "</replicate></worldbody>",
    "elements of replicas": f"<worldbody><replicate count='1000'>{'<site/>' * 20}</replicate></worldbody>",
    "points": "<worldbody><flexcomp name='f' type='grid' count='100 100 100' spacing='1 1 1'/></worldbody>",
    "heights": "<asset><hfield name='h' nrow='100000' ncol='100000' size='1 1 1 1'/></asset>",
    "texture": "<asset><texture name='t' builtin='flat' width='100000' height='1000000'/></asset>",
    "numbers": "<custom><numeric name='n' size='1000000000'/></custom>",
    "user data": "<size nuser_body='1000000000'/>",
    "keys": "<size nkey='1000000000'/>",
    "memory": "<size memory='100000G'/>",
    "models": "<asset><model name='m' file='m.xml'/></asset><worldbody>" + "<attach model='m'/>" * 101 + "</worldbody>",
}


@pytest.mark.parametrize("case", LARGE)
def test_expansion_is_limited(case):
    part = f"<mujoco>{'<worldbody/>' * 200}</mujoco>".encode()
    start = time.process_time()
    with pytest.raises(jd.FileFormatError, match="more than|at most|maximum|allocate memory"):
        jd.parse_mjcf(f"<mujoco>{LARGE[case]}</mujoco>", assets={"m.xml": part})
    assert time.process_time() - start < 1


def test_names_of_files_are_limited(monkeypatch):
    monkeypatch.setattr(_mjcf_source, "MAX_NAMES", 3)
    files = "".join(f"<mesh name='m{i}' file='m{i}.obj'/>" for i in range(4))
    with pytest.raises(jd.ModelError, match="names 4 files, more than the 3"):
        jd.parse_mjcf(f"<mujoco><asset>{files}</asset></mujoco>")


def test_paths_of_files_are_limited(tmp_path):
    folders = "".join(f"<compiler meshdir='d{i}'/>" for i in range(49))
    files = "".join(f"<mesh name='m{i}' file='m/m{i}.obj'/>" for i in range(1000))
    file = write(tmp_path / "robot.xml", f"<mujoco>{folders}<asset>{files}</asset></mujoco>")
    with pytest.raises(jd.FileFormatError, match="paths of files, more than"):
        jd.load_mjcf(file)
    with pytest.raises(jd.FileFormatError, match="names 52 folders, more than the 50"):
        jd.parse_mjcf(f"<mujoco>{folders}<compiler meshdir='a' texturedir='b'/></mujoco>")


def test_included_texts_are_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(_mjcf_source, "MAX_TEXTS", 2)
    includes = "".join(f"<include file='part{i}.xml'/>" for i in range(3))
    for i in range(3):
        write(tmp_path / f"part{i}.xml", "<mujoco/>")
    with pytest.raises(jd.ModelError, match="names 3 texts to include, more than the 2"):
        jd.load_mjcf(write(tmp_path / "robot.xml", f"<mujoco>{includes}</mujoco>"))


def test_names_that_are_not_text(tmp_path):
    robot = tmp_path / "robot.xml"
    robot.write_bytes(b"<mujoco><include file='../\xff.xml'/></mujoco>")
    with pytest.raises(jd.FileFormatError, match="cannot be decoded .*save the file as UTF-8"):
        jd.load_mjcf(robot)


# --- texts -----------------------------------------------------------------------------------------

WRONG = {
    "empty": ("", "not well-formed"),
    "no XML": ("hello", "not well-formed"),
    "not closed": ("<mujoco>", "not well-formed"),
    "document type": ("<!DOCTYPE mujoco>" + PART, "document type"),
    "entity": ("<!DOCTYPE mujoco [<!ENTITY a 'b'>]><mujoco model='&a;'/>", "document type"),
    "hidden in a comment": ("<mujoco a='<!--' file='../x' b='-->'/>", "not well-formed"),
    "unclosed comments": ("<!--" * 100_000, "not well-formed"),
    "unclosed quotes": ("<mujoco a='" * 100_000, "not well-formed"),
    "limit of force": (
        PART.replace("<joint/>", "<joint name='j' actuatorfrcrange='-1 nan'/>"),
        "actuatorfrcrange has 'nan'",
    ),
    "size of a geom": (
        PART.replace("<joint/>", "<joint/><geom name='g' type='box' mass='0' contype='0' size='1 1 1e400'/>"),
        "<geom name=\"g\">: size has '1e400'",
    ),
    "range of a drive": (
        PART.replace("<joint/>", "<joint name='j'/>").replace(
            "</worldbody>", "</worldbody><actuator><motor joint='j' ctrlrange='-1 nan' forcerange='nan 1'/></actuator>"
        ),
        "<actuator> <motor>: ctrlrange has 'nan'",
    ),
    "inertia": (
        PART.replace("<geom size='0.1'/>", "<inertial pos='0 0 0' mass='1' diaginertia='nan 1 1'/>"),
        "nan|compiler refuses",
    ),
    "URDF": ("<?xml version='1.0'?><!-- a --><robot name='r'/>", "is URDF .*load_urdf"),
    "another format": ("<sdf/>", "the root element must be <mujoco>"),
    "element": ("<mujoco><worlds/></mujoco>", "compiler refuses it .*worlds"),
    "attribute": (PART.replace("<joint", "<joint colour='red'"), "compiler refuses it .*colour"),
    "joint": (PART.replace("<joint", "<joint type='screw'"), "compiler refuses it .*screw"),
    "massless": (PART.replace("<geom size='0.1'/>", ""), "mass and inertia of moving bodies"),
    "size": (PART.replace("0.1", "-1"), "compiler refuses it .*size"),
    "not a number": (PART.replace("0.1", "nan"), "size has 'nan'"),
    "two names": ("<mujoco><worldbody>" + "<body name='a'/>" * 2 + "</worldbody></mujoco>", "repeated name 'a'"),
    "inner free joint": (
        PART.replace("<joint/>", "<body><freejoint/><geom size='1'/></body>"),
        "free joint can only be",
    ),
    "deep": (
        "<mujoco><worldbody>" + "<body>" * 5000 + "</body>" * 5000 + "</worldbody></mujoco>",
        "nested deeper than 500",
    ),
    "zero": ("<mujoco>\0</mujoco>", "not well-formed"),
    "lone surrogate": ("<mujoco model='\ud800'/>", "cannot be decoded"),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_texts(case):
    text, message = WRONG[case]
    start = time.process_time()
    with pytest.raises(jd.FileFormatError, match=message):
        jd.parse_mjcf(text)
    assert time.process_time() - start < 1


def test_hyphens_in_comments():
    """XML forbids double hyphens in comments; MuJoCo accepts them."""
    ruled = f"<!-- ------ <mujoco> -- --->{PART.replace('<joint/>', '<!-- - -- > <a> --><joint/><!------>')}"
    assert jd.parse_mjcf(ruled).nv == 1


TEXTS = (EVERYTHING, SHAPES, body("<joint name='j'/>", extra=DRIVES), PART.replace("<joint/>", "<freejoint/>"))
NASTY = ("", "nan", "-1", "1e400", "1e30", "<", '"', "name=", "\0", "0 0 0", "-inf inf", "&#46;", "\xff", "9999999")


def _mutants(count: int):
    """Texts with parts removed, repeated, exchanged or overwritten; half of the parts are whole attributes."""
    rng = random.Random(0)
    for _ in range(count):
        text = rng.choice(TEXTS)
        for _ in range(rng.randint(1, 3)):
            spots = list(re.finditer(r"[\"'][^\"'<>]*[\"']", text))
            if spots and rng.random() < 0.5:
                i, j = rng.choice(spots).span()
                i, j = i + 1, j - 1
                piece = rng.choice((*NASTY, rng.choice(spots)[0][1:-1]))
            else:
                i, j = sorted(rng.sample(range(len(text)), 2))
                j = min(j, i + 30)
                piece = rng.choice((*NASTY, text[i:j] * 2))
            text = text[:i] + piece + text[j:]
        yield text


def _survives(text):
    start = time.process_time()
    try:
        model = jd.parse_mjcf(text, assets={"parts/tet.obj": MESH})
    except jd.FileFormatError as error:
        assert str(error).startswith("MJCF text") and len(str(error)) > 20
        return None
    finally:
        assert time.process_time() - start < 1
    leaves = [np.asarray(x) for x in jax.tree.leaves((model.links, model.placements, model.properties))]
    assert not any(np.isnan(x).any() for x in leaves)
    return model


def test_mutants_give_a_model_or_a_typed_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jd.parse_mjcf(PART)  # what is done once in a process takes its own time
    models = [_survives(text) for text in _mutants(100)]
    assert any(models) and not all(models)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_many_mutants(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jd.parse_mjcf(PART)
    assert sum(_survives(text) is not None for text in _mutants(2500)) > 100
