"""What the report of a URDF says of the file as a whole."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from jaxdyn.io._urdf_joints import kind_of
from jaxdyn.io._xml import Element
from jaxdyn.model import ModelBuilder
from jaxdyn.spatial import Inertia

_READ = {
    # <mujoco> has settings of that engine's compiler, which say nothing about the robot
    "robot": {"link", "joint", "material", "transmission", "ros2_control", "mujoco"},
    "link": {"inertial", "visual", "collision"},
    "joint": {"parent", "child", "origin", "axis", "limit", "dynamics", "mimic"},
}
_ATTRIBUTES = {"dynamics": {"damping", "friction"}, "limit": {"lower", "upper", "velocity", "effort"}}


def note_unread(robot: Element, builder: ModelBuilder):
    """Elements and attributes that are left out."""
    for tag, n in sorted(Counter(x.tag for x in robot.children if x.tag not in _READ["robot"]).items()):
        builder.add_note("robot", f"{n} <{tag}> not read")
    for tag in ("link", "joint"):
        inside: dict[str, list[str]] = {}
        for element in robot.all(tag):
            for what in sorted(set(_unread(element, _READ[tag]))):
                inside.setdefault(what, []).append(element.attributes["name"])
        for what, names in inside.items():
            builder.add_note(f"{tag}s", f"{what} not read, in {_some(names)}")


def _unread(element: Element, read: set[str]) -> Iterator[str]:
    for child in element.children:
        if child.tag not in read:
            yield f"<{child.tag}>"
        for key in sorted(child.attributes.keys() - _ATTRIBUTES.get(child.tag, child.attributes.keys())):
            yield f"{key} of <{child.tag}>"


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
