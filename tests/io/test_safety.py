"""Reading any text as URDF gives a model or a typed error within a short time."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn import FileAccessError, FileFormatError, JaxdynError, Model
from jaxdyn.io import ParsingLimits
from tests.io._texts import arm, inertial, joint, link, robot

LIMIT = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
PAIR = link("a") + link("b")
LAUGHS = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 10))


def ab(kind: str, inside: str = "") -> str:
    return robot(PAIR, joint("j", kind, "a", "b", inside))


#: texts, and the messages that they cause
MALFORMED = {
    "empty": ("", "not well-formed"),
    "text": ("hello", "not well-formed"),
    "binary": (b"\x00\xff\x00\xff", "not well-formed"),
    "cut off": (arm("base")[:300], "not well-formed"),
    "two roots": ("<robot/><robot/>", "not well-formed"),
    "undefined entity": ("<robot>&nothing;</robot>", "not well-formed"),
    "twice an attribute": ('<robot name="a" name="b"/>', "not well-formed"),
    "unknown encoding": (b'<?xml version="1.0" encoding="klingon"?><robot/>', "not well-formed|cannot be decoded"),
    "wrong encoding": (b'<?xml version="1.0" encoding="utf-8"?><robot name="\xff"/>', "not well-formed"),
    "surrogate": ('<robot name="\ud800"/>', "cannot be decoded"),
    "document type": ("<!DOCTYPE robot><robot/>", "document type"),
    "external entity": ('<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"/>', "document type"),
    "billion laughs": (f'<!DOCTYPE r [<!ENTITY l0 "ha">{LAUGHS}]><robot name="&l9;"/>', "document type"),
    "deep": ("<robot>" + "<a>" * 100 + "</a>" * 100 + "</robot>", "nested deeper than 64"),
    "many transmissions": (arm("base", '<transmission name="t"/>' * 2001), "more than 2000 transmissions"),
    "many links": (robot(*(f'<link name="{k}"/>' for k in range(2001))), "more than 2000 links"),
    "other root": ("<html/>", "root element of a URDF is <robot>"),
    "MJCF": ("<mujoco/>", "load_mjcf"),
    "xacro": ('<robot><xacro:include filename="x"/></robot>', "expand them first"),
    "no links": ("<robot/>", "has no links"),
    "link without name": ("<robot><link/></robot>", "no attribute 'name'"),
    "empty name": ('<robot><link name=" "/></robot>', "no attribute 'name'"),
    "two links of one name": (robot(link("a"), link("a")), 'name="a">: the link on line 1 has the same name'),
    "two joints of one name": (
        robot(PAIR, link("c"), joint("j", "fixed", "a", "b"), joint("j", "fixed", "a", "c")),
        "has the same name",
    ),
    "no type": (robot(PAIR, '<joint name="j"><parent link="a"/><child link="b"/></joint>'), "no attribute 'type'"),
    "unknown type": (ab("ball"), "unknown joint type 'ball'"),
    "no parent": (robot(PAIR, '<joint name="j" type="fixed"><child link="b"/></joint>'), "has no <parent>"),
    "no child": (robot(PAIR, '<joint name="j" type="fixed"><parent link="a"/></joint>'), "has no <child>"),
    "unknown parent": (robot(PAIR, joint("j", "fixed", "z", "b")), '<joint name="j"> <parent>.*no link \'z\''),
    "unknown child": (robot(PAIR, joint("j", "fixed", "a", "z")), "no link 'z'"),
    "two parents": (
        robot(PAIR, link("c"), joint("j", "fixed", "a", "c"), joint("k", "fixed", "b", "c")),
        "as 'j' has; a link has one parent",
    ),
    "own parent": (robot(link("a"), joint("j", "fixed", "a", "a")), "has no root"),
    "circle": (robot(PAIR, joint("j", "fixed", "a", "b"), joint("k", "fixed", "b", "a")), "has no root"),
    "circle beside a root": (
        robot(PAIR, link("c"), joint("j", "fixed", "a", "b"), joint("k", "fixed", "b", "a")),
        "form a cycle",
    ),
    "zero axis": (ab("continuous", '<axis xyz="0 0 0"/>'), '<joint name="j"> <axis>: is zero'),
    "axis of two": (ab("continuous", '<axis xyz="0 1"/>'), "xyz has 2 numbers, expected 3"),
    "axis of words": (ab("continuous", '<axis xyz="up and away"/>'), "xyz is 'up', expected a finite number"),
    "NaN": (ab("continuous", '<origin xyz="0 nan 0"/>'), "xyz is 'nan'"),
    "Inf": (ab("continuous", '<origin rpy="0 -inf 0"/>'), "rpy is '-inf'"),
    "hidden Inf": (ab("continuous", '<origin xyz="0 1e999 0"/>'), "larger than 1e"),
    "underscore": (ab("continuous", '<origin xyz="0 1_0 0"/>'), "'1_0'"),
    "other digits": (ab("continuous", '<origin xyz="0 \u0663 0"/>'), "'\u0663'"),
    "huge": (ab("continuous", '<origin xyz="0 1e200 0"/>'), "physical size"),
    "NaN mass": (robot(f'<link name="a">{inertial(mass="nan")}</link>'), '<link name="a"> <inertial> <mass>: value'),
    "negative mass": (robot(f'<link name="a">{inertial(mass=-1)}</link>'), "negative"),
    "infinite inertia": (robot(f'<link name="a">{inertial(moments=(1, 1, "inf"))}</link>'), "izz is 'inf'"),
    "NaN behind what is missing": (
        robot('<link name="a"><inertial><inertia ixx="nan"/></inertial></link>'),
        "ixx is 'nan'",
    ),
    "limit of words": (ab("revolute", '<limit lower="low" upper="1" effort="1" velocity="1"/>'), "lower is 'low'"),
    "negative effort": (ab("revolute", '<limit effort="-1" velocity="1"/>'), "effort is -1"),
    "damping of words": (ab("revolute", f'{LIMIT}<dynamics damping="much"/>'), "damping is 'much'"),
    "NaN limit of a free joint": (ab("floating", '<limit lower="nan"/>'), "lower is 'nan'"),
    "NaN limit of a continuous joint": (ab("continuous", '<limit upper="1 -inf"/>'), "upper is '-inf'"),
    "NaN axis of a fixed joint": (ab("fixed", '<axis xyz="0 0 NaN"/>'), "xyz is 'NaN'"),
    "NaN of a mimic of nothing": (ab("fixed", '<mimic joint="z" multiplier="Infinity"/>'), "multiplier is 'Infinity'"),
    "NaN of an ignored element": (ab("floating", '<safety_controller k_velocity="1e999"/>'), "k_velocity is 1e999"),
    "NaN behind the first": (ab("continuous", '<axis xyz="1 0 0"/><axis xyz="nan 0 0"/>'), "xyz is 'nan'"),
    "long number": (ab("continuous", f'<origin xyz="{"1" * 300_000}x 0 0"/>'), "expected a finite number"),
    "longer number": (ab("continuous", f'<origin xyz="0 0 {"1" * 3_000_000}"/>'), "expected a finite number"),
    "xacro inside": (robot('<link name="a"><xacro:mass value="1"/></link>'), "expand the file first"),
    "both rotations": (
        ab("fixed", '<origin rpy="0 0 0" quat_xyzw="0 0 0 1"/>').replace("<robot", '<robot version="1.1"'),
        "both rpy and quat_xyzw",
    ),
    "zero quaternion": (
        ab("fixed", '<origin quat_xyzw="0 0 0 0"/>').replace("<robot", '<robot version="1.2"'),
        "quat_xyzw is zero",
    ),
    "mimic without joint": (ab("revolute", f"{LIMIT}<mimic/>"), "no attribute 'joint'"),
    "mimic of itself": (ab("revolute", f'{LIMIT}<mimic joint="j"/>'), "cycle"),
    "mimic in a circle": (
        robot(PAIR, link("c"), joint("j", "revolute", "a", "b", LIMIT + '<mimic joint="k"/>'),
              joint("k", "revolute", "b", "c", LIMIT + '<mimic joint="j"/>')),
        "mimic each other in a cycle",
    ),
    "mimic by NaN": (ab("revolute", f'{LIMIT}<mimic joint="j" multiplier="NaN"/>'), "multiplier is 'NaN'"),
    "gear of words": (
        arm("base", '<transmission name="t"><joint name="elbow"/><actuator name="m">'
            "<mechanicalReduction>x</mechanicalReduction></actuator></transmission>"),
        "<mechanicalReduction> is 'x'",
    ),
    "mesh without a file": (robot('<link name="a"><visual><geometry><mesh/></geometry></visual></link>'), "'filename'"),
    "box of one": (robot('<link name="a"><visual><geometry><box size="1"/></geometry></visual></link>'), "expected 3"),
}  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed(case, tmp_path):
    """Files and texts are refused alike, by name."""
    text, message = MALFORMED[case]
    path = tmp_path / "robot.urdf"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    start = time.process_time()
    with pytest.raises(FileFormatError) as error:
        jd.parse_urdf(text, source="the text")
    assert time.process_time() - start < 1
    assert str(error.value).startswith("the text") and re.search(message, str(error.value)), str(error.value)
    with pytest.raises(FileFormatError, match=re.escape(str(path))):
        jd.load_urdf(path)


def test_message_names_line_and_element():
    text = robot("\n", PAIR, "\n\n", joint("elbow", "revolute", "a", "b", '\n<limit lower="x"/>'))
    with pytest.raises(FileFormatError) as error:
        jd.parse_urdf("\n" + text, source="arm.urdf")
    assert str(error.value) == (
        "arm.urdf, line 6, <joint name=\"elbow\"> <limit>: lower is 'x', expected a finite number such as 0.25"
    )


def test_limits(tmp_path):
    path = tmp_path / "big.urdf"
    path.write_text(arm("base"))
    with pytest.raises(FileFormatError, match="larger than the 100 bytes"):
        jd.load_urdf(path, bounds=ParsingLimits(max_bytes=100))
    with pytest.raises(FileFormatError, match="more than the 100 allowed"):
        jd.parse_urdf(arm("base"), bounds=ParsingLimits(max_bytes=100))
    with pytest.raises(FileFormatError, match="more than 50000 elements"):
        jd.parse_urdf("<robot>" + "<a/>" * 50_001 + "</robot>")
    with pytest.raises(FileFormatError, match="more than 5 elements"):
        jd.load_urdf(path, bounds=ParsingLimits(max_elements=5))
    assert jd.load_urdf(path).nv == 2


def test_files_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "nothing.urdf", tmp_path, tmp_path / "x" / "y", "\0"):
        with pytest.raises(FileAccessError, match="cannot be read|is not a file"):
            jd.load_urdf(path)


def test_long_chains_need_no_recursion():
    n = 1500
    text = robot(*(f'<link name="l{k}"/>' for k in range(n)),
                 *(joint(f"j{k}", "fixed", f"l{k}", f"l{k + 1}") for k in range(n - 1)))  # fmt: skip
    assert jd.parse_urdf(text).num_links == n


MOVING = f'{LIMIT}<axis xyz="0 1 0"/>'


def chain(n: int, inside=lambda k: "") -> str:
    """A chain of links with moving joints."""
    joints = (joint(f"j{k}", "revolute", f"l{k}", f"l{k + 1}", MOVING + inside(k)) for k in range(n - 1))
    return robot(*(link(f"l{k}") for k in range(n)), *joints)


TRANSMISSION = '<transmission><joint name="elbow"/><actuator name="m"/></transmission>'
SHAPE = '<visual><origin rpy="1 2 3"/><geometry><sphere radius="1"/></geometry></visual>'
#: as much as the bounds allow, where time could grow with more than the size
AT_THE_BOUNDS = {
    "names of one kind": arm("base", TRANSMISSION * 2_000),
    "shapes": robot(f'<link name="a">{SHAPE * 12_000}</link>'),
    "elements": arm("base", "<a/>" * 49_000),
    "elements of a link": robot(f'<link name="a">{"<a/>" * 49_000}</link>'),
    "mimics": chain(1_900, lambda k: f'<mimic joint="j{k - 1}"/>' if k else ""),
}


MEASURED = """
import sys, time
import jaxdyn as jd
jd.parse_urdf("<robot><link name='a'/></robot>")  # what the first file of a process waits for
for path in sys.argv[1:]:
    start = time.process_time()
    model = jd.load_urdf(path)
    print(model.nv, time.process_time() - start)
"""


@pytest.mark.slow
def test_files_at_the_limits(tmp_path):
    """Time grows linearly with size; measured in a separate process without the type checker of the tests."""
    paths = []
    for k, text in enumerate(AT_THE_BOUNDS.values()):
        paths.append(tmp_path / f"{k}.urdf")
        paths[-1].write_text(text)
    out = subprocess.run([sys.executable, "-c", MEASURED, *map(str, paths)], capture_output=True, text=True, check=True)
    rows = dict(zip(AT_THE_BOUNDS, (line.split() for line in out.stdout.splitlines()), strict=True))
    assert all(int(nv) < 3 and float(seconds) < 1 for nv, seconds in rows.values()), rows


# --- fuzz ------------------------------------------------------------------------------------------------

SEEDS = [
    arm("base"),
    arm("world", world=True),
    ab("planar", '<axis xyz="0 1 1"/>'),
    ab("floating"),
    robot(PAIR, link("c"), joint("j", "revolute", "a", "b", LIMIT),
          joint("k", "prismatic", "a", "c", f'{LIMIT}<mimic joint="j" multiplier="2" offset="1"/>')),
    arm("base", '<transmission name="t"><joint name="elbow"/><actuator name="m"><mechanicalReduction>3'
        '</mechanicalReduction></actuator></transmission><material name="red"><color rgba="1 0 0 1"/></material>'
        '<link name="s"><visual><geometry><box size="1 2 3"/></geometry><material name="red"/></visual></link>'),
]  # fmt: skip
TOKENS = [re.findall(r'<[^>]*>|"[^"]*"|[^<>"]+', text) for text in SEEDS]
VALUES = re.compile(r'"[^"]*"')
NASTY = [
    "nan", "inf", "-1e999", "1e-320", "0", "-0.0", "1e29", "", " ", "a", "b", "j", "k", "world", "root_joint", "fixed",
    "planar", "floating", "continuous", "mimic", "0 0 0", "1 1 1", "1e-300 0 0", "&lt;", "&#0;", "0x10", "١", "upper",
]  # fmt: skip


@st.composite
def mutations(draw):
    """A URDF with some tags moved, repeated or removed, and some attributes exchanged."""
    tokens = list(draw(st.sampled_from(TOKENS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(tokens) - 1))
        match draw(st.integers(0, 5)):
            case 0:
                del tokens[at]
                if not tokens:
                    return ""
            case 1:
                tokens.insert(at, draw(st.sampled_from(tokens)))
            case 2:
                other = draw(st.integers(0, len(tokens) - 1))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3:
                tokens[at] = draw(st.text(max_size=12))
            case _:
                values = VALUES.findall(tokens[at])
                if values:
                    new = draw(
                        st.sampled_from(NASTY) | st.sampled_from([x[1:-1] for x in values]) | st.floats().map(repr)
                    )
                    tokens[at] = tokens[at].replace(draw(st.sampled_from(values)), f'"{new}"', 1)
    return "".join(tokens)


@st.composite
def exchanges(draw):
    """A well-formed URDF with exchanged attributes."""
    text = draw(st.sampled_from(SEEDS))
    values = sorted(set(VALUES.findall(text)))
    for _ in range(draw(st.integers(1, 3))):
        spots = list(VALUES.finditer(text))
        spot = draw(st.sampled_from(spots))
        new = draw(st.sampled_from(values) | st.sampled_from(NASTY).map(lambda x: f'"{x}"'))
        text = text[: spot.start()] + new + text[spot.end() :]
    return text


ANYTHING = st.text(max_size=200) | st.binary(max_size=200) | mutations() | exchanges()


def read(text, floating: bool) -> bool:
    """True if a text is accepted; errors other than typed ones are raised."""
    start = time.process_time()
    try:
        model = jd.parse_urdf(text, floating_base=floating)
    except FileFormatError as error:
        assert str(error).startswith("URDF text")
        return False
    finally:
        assert time.process_time() - start < 1
    assert isinstance(model, Model) and np.isfinite(np.asarray(model.links.inertia)).all()
    assert (
        np.isfinite(np.asarray(model.links.mass)).all() and np.isfinite(np.asarray(model.placements.translation)).all()
    )
    return True


CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=CHECKS)
@given(ANYTHING, st.booleans())
def test_fuzz(text, floating):
    read(text, floating)


def fuzz(count: int) -> dict[bool, int]:
    """Numbers of accepted and of refused inputs."""
    counts = {True: 0, False: 0}

    @settings(max_examples=count, deadline=None, derandomize=True, database=None, suppress_health_check=CHECKS)
    @given(ANYTHING, st.booleans())
    def run(text, floating):
        counts[read(text, floating)] += 1

    run()
    return counts


@pytest.mark.exhaustive
def test_fuzz_long():
    """More than ten thousand inputs, many accepted and many refused; without the type checker of the tests."""
    code = "from tests.io.test_safety import fuzz; print(*fuzz(10_500).values())"
    out = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"JAX_ENABLE_X64": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert out.returncode == 0, out.stderr[-5000:]
    accepted, refused = map(int, out.stdout.split())
    assert accepted + refused >= 10_000 and min(accepted, refused) > 1_000, (accepted, refused)


def test_errors_are_typed():
    assert issubclass(FileFormatError, jd.ModelError) and issubclass(FileAccessError, JaxdynError)
