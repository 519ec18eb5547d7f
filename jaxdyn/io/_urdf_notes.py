"""What the report of a URDF says of the file as a whole, and what is checked of all of it."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from jaxdyn.io._urdf_joints import kind_of
from jaxdyn.io._xml import Element, as_number, fail, vector
from jaxdyn.model import ModelBuilder
from jaxdyn.spatial import Inertia


class _Kind(NamedTuple):
    """What is read of one kind of element: attributes, children that come once, and others."""

    attributes: frozenset[str] = frozenset()
    one: Mapping[str, "_Kind"] = {}
    many: Mapping[str, "_Kind"] = {}


def _kind(attributes: str = "", one: Mapping[str, _Kind] | None = None, many: Mapping[str, _Kind] | None = None):
    return _Kind(frozenset(attributes.split()), one or {}, many or {})


_ORIGIN = _kind("xyz rpy quat_xyzw")
_MATERIAL = _kind("name", {"color": _kind("rgba")})
_ROUND = _kind("radius length")
_SOLIDS = {"box": _kind("size"), "cylinder": _ROUND, "capsule": _ROUND, "sphere": _kind("radius")}
_GEOMETRY = _kind("", _SOLIDS | {"mesh": _kind("filename scale")})
_SHAPE = _kind("name", {"origin": _ORIGIN, "geometry": _GEOMETRY, "material": _MATERIAL})
_INERTIAL = {"origin": _ORIGIN, "mass": _kind("value"), "inertia": _kind("ixx ixy ixz iyy iyz izz")}
_LINK = _kind("name", {"inertial": _kind("", _INERTIAL)}, {"visual": _SHAPE, "collision": _SHAPE})
_END = _kind("link")
_JOINT = _kind(
    "name type",
    {
        "parent": _END,
        "child": _END,
        "origin": _ORIGIN,
        "axis": _kind("xyz"),
        "limit": _kind("lower upper velocity effort"),
        "dynamics": _kind("damping friction"),
        "mimic": _kind("joint multiplier offset"),
    },
)
_GEARS = {"mechanicalReduction": _kind(), "mechanical_reduction": _kind()}
_GEARED = _kind("name", _GEARS)
_DRIVE = _kind("name", _GEARS, {"joint": _GEARED, "actuator": _GEARED})
_ROBOT = _kind(
    "name version",
    {},
    {
        "link": _LINK,
        "joint": _JOINT,
        "material": _MATERIAL,
        "transmission": _DRIVE,
        "ros2_control": _kind("name type", {}, {"transmission": _DRIVE}),
    },
)
_SILENT = {"mujoco"}  # settings of that engine's compiler, which say nothing about the robot
_NUMBERS = frozenset(
    "xyz rpy quat_xyzw value ixx ixy ixz iyy iyz izz lower upper velocity effort damping friction multiplier offset "
    "rgba size radius length scale soft_lower_limit soft_upper_limit k_position k_velocity rising falling".split()
)
_UNREAD_NUMBERS = {"safety_controller", "calibration"}  # not read, and yet numbers of the robot
_VERSIONS = {"1.0": 0, "1.1": 1, "1.2": 2}


def note_unread(robot: Element, builder: ModelBuilder):
    """Elements and attributes that are left out; NaN and infinity are refused wherever a number stands."""
    _honour_version(robot, builder)
    unread = [x for x in robot.children if x.tag not in _ROBOT.many and x.tag not in _SILENT]
    for tag, n in sorted(Counter(x.tag for x in unread).items()):
        builder.add_note("robot", f"{n} <{tag}> not read")
    for key in sorted(robot.attributes.keys() - _ROBOT.attributes):
        if not key.startswith("xmlns"):
            builder.add_note("robot", f"{key} of <robot> not read")
    for tag, kind in _ROBOT.many.items():
        inside: dict[str, list[str]] = {}
        for element in robot.all(tag):
            for what in sorted(set(_unread(element, kind, top=True))):
                inside.setdefault(what, []).append(element.attributes.get("name", "one without a name"))
        for what, names in inside.items():
            builder.add_note(f"{tag}s", f"{what} not read, in {_some(names)}")


def _unread(element: Element, kind: _Kind, *, top: bool = False) -> Iterator[str]:
    _check_numbers(element)
    for key in element.attributes.keys() - kind.attributes:
        yield key if top else f"{key} of <{element.tag}>"
    met: set[str] = set()
    for child in element.children:
        tag = child.tag
        inner = kind.one.get(tag) or kind.many.get(tag)
        if tag.startswith("xacro:"):
            fail(child, "is a macro; expand the file first, with `xacro file.urdf.xacro > file.urdf`")
        if inner is None:
            if tag in _UNREAD_NUMBERS:
                _check_below(child)
            yield f"<{tag}>"
        elif tag in kind.one and tag in met:
            _check_below(child)
            yield f"another <{tag}>" if top else f"another <{tag}> of <{element.tag}>"
        else:
            yield from _unread(child, inner)
        met.add(tag)


def _check_below(element: Element):
    _check_numbers(element)
    for child in element.children:
        _check_below(child)


def _check_numbers(element: Element):
    """Refuses what Python takes for a number and is not finite; other words are judged where they are used."""
    for key in element.attributes.keys() & _NUMBERS:
        text = element.attributes[key]
        if "n" not in text.lower() and "e" not in text.lower() and len(text) < 300:
            continue  # neither nan nor inf, and no exponent to overflow
        for word in text.split():
            try:
                finite = math.isfinite(float(word)) if len(word) < 300 else False
            except ValueError:
                continue
            if not finite:
                as_number(element, key, word)


def _honour_version(robot: Element, builder: ModelBuilder):
    """Quaternions in origins came with version 1.1 of the format; before that, they are not read."""
    given = robot.attributes.get("version", "1.0")
    if given not in _VERSIONS:
        builder.add_note("robot", f"version {given[:40]!r} of the format is not known: read as 1.2")
    origins = list(_origins(robot))
    quaternions = [x for x in origins if "quat_xyzw" in x.attributes]
    if quaternions and _VERSIONS.get(given, 2) < 1:
        builder.add_note("robot", f"quat_xyzw of {len(quaternions)} <origin> not read, as the file is of version 1.0")
        for origin in quaternions:
            _check_numbers(origin)
            del origin.attributes["quat_xyzw"]
        return
    for origin in quaternions:
        if "rpy" in origin.attributes:
            fail(origin, "has both rpy and quat_xyzw; give one of them")
        length = math.sqrt(sum(x * x for x in vector(origin, "quat_xyzw", 4)))
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


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:5])} and {len(names) - 5} more"


def note_massless(
    order: list[str],
    children: dict[str, list[tuple[Element, str]]],
    links: dict[str, Element],
    inertias: dict[str, Inertia | None],
    builder: ModelBuilder,
):
    """Links that say nothing of their mass, and joints that move nothing; `order` has parents first."""
    silent = [name for name, link in links.items() if link.first("inertial") is None and name != "world"]
    if silent:
        builder.add_note("links", f"no <inertial>, so no mass, in {_some(silent)}")
    heavy: dict[str, bool] = {}
    for name in reversed(order):
        body = inertias[name]
        own = body is not None and bool(np.any(np.asarray(body.mass)) or np.any(np.asarray(body.inertia)))
        heavy[name] = own or any(heavy[child] for _, child in children.get(name, []))
    for joint, child in (pair for hanging in children.values() for pair in hanging):
        if not heavy.get(child, True) and kind_of(joint) != "fixed":
            what = "moves nothing that has mass: the mass matrix is singular"
            builder.add_note(f"joint {joint.attributes['name']}", what)
