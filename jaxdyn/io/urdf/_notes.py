"""Notes on ignored content of a URDF, and checks of all of its numbers."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from jaxdyn.io.files import Element, fail, parse_number, read_vector
from jaxdyn.io.urdf._joints import joint_type
from jaxdyn.model import ModelBuilder
from jaxdyn.spatial import Inertia


class _Schema(NamedTuple):
    """The content of one kind of element that is read: attributes, children that occur once, and repeated ones."""

    attributes: frozenset[str] = frozenset()
    one: Mapping[str, "_Schema"] = {}
    many: Mapping[str, "_Schema"] = {}


def _schema(attributes: str = "", one: Mapping[str, _Schema] | None = None, many: Mapping[str, _Schema] | None = None):
    return _Schema(frozenset(attributes.split()), one or {}, many or {})


_ORIGIN = _schema("xyz rpy quat_xyzw")
_MATERIAL = _schema("name", {"color": _schema("rgba")})
_ROUND = _schema("radius length")
_SOLIDS = {"box": _schema("size"), "cylinder": _ROUND, "capsule": _ROUND, "sphere": _schema("radius")}
_GEOMETRY = _schema("", _SOLIDS | {"mesh": _schema("filename scale")})
_SHAPE = _schema("name", {"origin": _ORIGIN, "geometry": _GEOMETRY, "material": _MATERIAL})
_INERTIAL = {"origin": _ORIGIN, "mass": _schema("value"), "inertia": _schema("ixx ixy ixz iyy iyz izz")}
_LINK = _schema("name", {"inertial": _schema("", _INERTIAL)}, {"visual": _SHAPE, "collision": _SHAPE})
_END = _schema("link")
_JOINT = _schema(
    "name type",
    {
        "parent": _END,
        "child": _END,
        "origin": _ORIGIN,
        "axis": _schema("xyz"),
        "limit": _schema("lower upper velocity effort"),
        "dynamics": _schema("damping friction"),
        "mimic": _schema("joint multiplier offset"),
    },
)
_GEARS = {"mechanicalReduction": _schema(), "mechanical_reduction": _schema()}
_GEARED = _schema("name", _GEARS)
_DRIVE = _schema("name", _GEARS, {"joint": _GEARED, "actuator": _GEARED})
_ROBOT = _schema(
    "name version",
    {},
    {
        "link": _LINK,
        "joint": _JOINT,
        "material": _MATERIAL,
        "transmission": _DRIVE,
        "ros2_control": _schema("name type", {}, {"transmission": _DRIVE}),
    },
)
_SILENT = {"mujoco"}  # settings of MuJoCo's compiler, not properties of the robot
_NUMBERS = frozenset(
    "xyz rpy quat_xyzw value ixx ixy ixz iyy iyz izz lower upper velocity effort damping friction multiplier offset "
    "rgba size radius length scale soft_lower_limit soft_upper_limit k_position k_velocity rising falling".split()
)
_UNREAD_NUMBERS = {"safety_controller", "calibration"}  # ignored, but their numbers are checked
_VERSIONS = {"1.0": 0, "1.1": 1, "1.2": 2}


def note_unread(robot: Element, builder: ModelBuilder):
    """Notes elements and attributes that are ignored; NaN and infinite numbers are refused, in these too."""
    _apply_format_version(robot, builder)
    unread = [x for x in robot.children if x.tag not in _ROBOT.many and x.tag not in _SILENT]
    for tag, n in sorted(Counter(x.tag for x in unread).items()):
        builder.add_note("robot", f"{n} <{tag}> ignored")
    for key in sorted(robot.attributes.keys() - _ROBOT.attributes):
        if not key.startswith("xmlns"):
            builder.add_note("robot", f"{key} of <robot> ignored")
    for tag, kind in _ROBOT.many.items():
        inside: dict[str, list[str]] = {}
        for element in robot.all(tag):
            for content in sorted(set(_unread_content(element, kind, top=True))):
                inside.setdefault(content, []).append(element.attributes.get("name", "an element without a name"))
        for content, names in inside.items():
            builder.add_note(f"{tag}s", f"{content} ignored in {_abbreviate(names)}")


def _unread_content(element: Element, kind: _Schema, *, top: bool = False) -> Iterator[str]:
    _check_numbers(element)
    for key in element.attributes.keys() - kind.attributes:
        yield key if top else f"{key} of <{element.tag}>"
    seen: set[str] = set()
    for child in element.children:
        tag = child.tag
        inner = kind.one.get(tag) or kind.many.get(tag)
        if tag.startswith("xacro:"):
            fail(child, "is a macro; expand the file first with `xacro file.urdf.xacro > file.urdf`")
        if inner is None:
            if tag in _UNREAD_NUMBERS:
                _check_subtree(child)
            yield f"<{tag}>"
        elif tag in kind.one and tag in seen:
            _check_subtree(child)
            yield f"another <{tag}>" if top else f"another <{tag}> of <{element.tag}>"
        else:
            yield from _unread_content(child, inner)
        seen.add(tag)


def _check_subtree(element: Element):
    _check_numbers(element)
    for child in element.children:
        _check_subtree(child)


def _check_numbers(element: Element):
    """Refuses NaN and infinite numbers; other malformed numbers are refused where they are used."""
    for key in element.attributes.keys() & _NUMBERS:
        text = element.attributes[key]
        if "n" not in text.lower() and "e" not in text.lower() and len(text) < 300:
            continue  # neither nan nor inf, and no exponent that could overflow
        for word in text.split():
            try:
                finite = math.isfinite(float(word)) if len(word) < 300 else False
            except ValueError:
                continue
            if not finite:
                parse_number(element, key, word)


def _apply_format_version(robot: Element, builder: ModelBuilder):
    """Ignores the quaternions of origins in files of version 1.0; the format has them from version 1.1 on."""
    given = robot.attributes.get("version", "1.0")
    if given not in _VERSIONS:
        builder.add_note("robot", f"version {given[:40]!r} of the format is unknown: read as 1.2")
    origins = list(_origins(robot))
    quaternions = [x for x in origins if "quat_xyzw" in x.attributes]
    if quaternions and _VERSIONS.get(given, 2) < 1:
        builder.add_note("robot", f"quat_xyzw of {len(quaternions)} <origin> ignored, as the file has version 1.0")
        for origin in quaternions:
            _check_numbers(origin)
            del origin.attributes["quat_xyzw"]
        return
    for origin in quaternions:
        if "rpy" in origin.attributes:
            fail(origin, "has both rpy and quat_xyzw; give one of the two")
        length = math.sqrt(sum(x * x for x in read_vector(origin, "quat_xyzw", 4)))
        if length < 1e-9:
            fail(origin, "quat_xyzw is zero; give a quaternion of length one")
        if abs(length - 1) > 1e-6:
            builder.add_note("robot", f"line {origin.line}: quat_xyzw has the length {length:g}: normalised")


def _origins(robot: Element) -> Iterator[Element]:
    for element in (*robot.all("link"), *robot.all("joint")):
        for child in element.children:
            if child.tag == "origin":
                yield child
            else:
                yield from (x for x in child.children if x.tag == "origin")


def _abbreviate(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:5])} and {len(names) - 5} more"


def note_massless(
    order: list[str],
    children: dict[str, list[tuple[Element, str]]],
    links: dict[str, Element],
    inertias: dict[str, Inertia | None],
    builder: ModelBuilder,
):
    """Notes links without `<inertial>`, and joints that move no mass; `order` lists parents first."""
    massless = [name for name, link in links.items() if link.first("inertial") is None and name != "world"]
    if massless:
        builder.add_note("links", f"no <inertial>, hence no mass, in {_abbreviate(massless)}")
    has_mass: dict[str, bool] = {}
    for name in reversed(order):
        body = inertias[name]
        own = body is not None and bool(np.any(np.asarray(body.mass)) or np.any(np.asarray(body.inertia)))
        has_mass[name] = own or any(has_mass[child] for _, child in children.get(name, []))
    for joint, child in (pair for pairs in children.values() for pair in pairs):
        if not has_mass.get(child, True) and joint_type(joint) != "fixed":
            text = "moves no mass and has no armature: the mass matrix is singular"
            builder.add_note(f"joint {joint.attributes['name']}", text)
