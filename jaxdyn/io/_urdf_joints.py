"""Joints of a URDF: kinds, axes, limits, friction, and coordinates that mimic others."""

from typing import Any

import numpy as np

from jaxdyn.io._known import known
from jaxdyn.io._urdf_links import origin_of
from jaxdyn.io._xml import LARGEST, Element, as_number, fail, number, required, vector
from jaxdyn.joints import Continuous, Fixed, Free, Planar, Prismatic, Revolute
from jaxdyn.model import ModelBuilder
from jaxdyn.spatial import Inertia

_ALONG_AXIS = {"revolute": Revolute, "continuous": Continuous, "prismatic": Prismatic}
_OTHERS = {"fixed": Fixed, "floating": Free, "planar": Planar}


def kind_of(joint: Element) -> str:
    """The type of a joint, one of the six that URDF has."""
    kind = required(joint, "type")
    if kind not in _ALONG_AXIS and kind not in _OTHERS:
        fail(joint, f"there is no joint type {kind!r}; URDF has {', '.join([*_ALONG_AXIS, *_OTHERS])}")
    return kind


def add_joint(
    joint: Element,
    parent: str,
    child: str,
    inertia: Inertia | None,
    builder: ModelBuilder,
    *,
    follows: bool,
    taken: dict[str, int],
):
    """Adds the link `child` with the joint that carries it; `follows` says that the joint mimics another.

    `taken` are the names in use, to which those of added links and joints are joined.
    """
    kind, name = kind_of(joint), joint.attributes["name"]
    note = lambda what: builder.add_note(f"joint {name}", what)
    xyz, quaternion = origin_of(joint)
    placed: dict[str, Any] = {"joint_name": name, "translation": xyz, "quaternion": np.array(quaternion)}
    if kind in _ALONG_AXIS:
        axis = _axis(joint, note)
        properties: dict[str, Any] = _properties(joint, kind, note)
        if follows and properties:
            note(f"mimics another joint: its own {', '.join(sorted(properties))} left out")
            properties = {}
        builder.add_link(child, parent, known(_ALONG_AXIS[kind], axis), inertia, **placed, **properties)
        return
    ignored = [tag for tag in ("limit", "dynamics") if joint.first(tag) is not None]
    if ignored and kind != "fixed":
        note(f"<{'>, <'.join(ignored)}> of a {kind} joint not read")
    if kind == "planar":
        _add_planar(joint, parent, child, inertia, builder, placed, taken)
    else:
        builder.add_link(child, parent, _OTHERS[kind](), inertia, **placed)


def _axis(joint: Element, note) -> np.ndarray:
    """The unit vector of `<axis>`, x where there is none."""
    element = joint.first("axis")
    if element is None or "xyz" not in element.attributes:
        note("has no axis: x, as URDF says")
        return np.array([1.0, 0.0, 0.0])
    axis = np.array(vector(element, "xyz", 3))
    length = float(np.linalg.norm(axis))
    if length < 1e-9:
        fail(element, "is zero; give it a direction")
    if abs(length - 1) > 1e-6:
        note(f"has an axis of length {length:g}: normalised")
    return axis if abs(length - 1) < 1e-15 else axis / length


def _properties(joint: Element, kind: str, note) -> dict[str, float]:
    """Limits, damping and Coulomb friction, as the builder calls them."""
    out = _limits(joint, kind, note)
    dynamics = joint.first("dynamics")
    if dynamics is None:
        return out
    for key in ("damping", "friction"):
        value = number(dynamics, key, 0.0)
        if value < 0:
            note(f"has a {key} of {value:g}, less than zero: taken as it is")
        if value:
            out[key] = value
    return out


def _limits(joint: Element, kind: str, note) -> dict[str, float]:
    limit = joint.first("limit")
    if limit is None:
        if kind != "continuous":
            note("has no <limit>: none assumed, as MuJoCo does (urdfdom refuses the file)")
        return {}
    read = lambda key: as_number(limit, key, required(limit, key), np.inf) if key in limit.attributes else None
    out: dict[str, float] = {}
    for key in ("velocity", "effort"):
        value = read(key)
        if value is None:
            note(f"<limit> has no {key}: none assumed")
        elif value < 0:
            fail(limit, f"{key} is {value:g}, less than zero; give its size")
        elif value < LARGEST:
            out[key] = value
    if kind == "continuous":
        return out
    given = {key: read(key) for key in ("lower", "upper")}
    if given["lower"] is None and given["upper"] is None:
        note("<limit> has neither lower nor upper: no range assumed, as MuJoCo does (urdfdom reads zero and zero)")
        return out
    for key, value in given.items():
        if value is None:
            note(f"<limit> has no {key}: zero, as URDF says")
    lower, upper = (0.0 if x is None else x for x in given.values())
    if lower > upper:
        note(f"lower {lower:g} is above upper {upper:g}: no range assumed")
        return out
    return out | {k: x for k, x in (("lower", lower), ("upper", upper)) if abs(x) < LARGEST}


def new_name(name: str, taken: dict[str, int]) -> str:
    """`name`, or else with an underscore or a number behind it that makes it new; it is then taken.

    `taken` has the names in use, each with the number to try next, so that many names of one kind take no longer.
    """
    new = name
    while new in taken:
        k = taken[name]
        new, taken[name] = (f"{name}_{k}" if k else f"{name}_"), max(2, k + 1)
    taken[new] = 0
    return new


def _add_planar(joint: Element, parent: str, child: str, inertia, builder: ModelBuilder, placed, taken: dict[str, int]):
    """Motion in the plane normal to the axis: `T = A T_planar A^T` with A turning z into the axis.

    Where A is not 1, a massless link with the axes of A carries the child.
    """
    axis = _axis(joint, lambda what: builder.add_note(f"joint {joint.attributes['name']}", what))
    quat = _from_z(axis)
    if abs(quat[0]) == 1:
        builder.add_link(child, parent, Planar(), inertia, **placed)
        return
    plane, back = new_name(f"{child}_plane", taken), new_name(f"{joint.attributes['name']}_back", taken)
    builder.add_note(
        f"joint {joint.attributes['name']}",
        f"moves in a plane whose normal is not z: link {plane} and fixed joint {back} added, whose z is the normal",
    )
    placed["quaternion"] = _product(placed["quaternion"], quat)
    builder.add_link(plane, parent, Planar(), None, **placed)
    builder.add_link(child, plane, Fixed(), inertia, joint_name=back, quaternion=quat * np.array([1.0, -1, -1, -1]))


def _from_z(axis: np.ndarray) -> np.ndarray:
    """The least rotation that turns z into a unit axis, as a quaternion; about x for a half turn."""
    quat = np.array([1 + axis[2], -axis[1], axis[0], 0.0])
    length = np.linalg.norm(quat)
    return np.array([0.0, 1.0, 0.0, 0.0]) if length < 1e-8 else quat / length


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    u, w = a[1:], b[1:]
    return np.concatenate([[a[0] * b[0] - u @ w], a[0] * w + b[0] * u + np.cross(u, w)])


# --- mimic -----------------------------------------------------------------------------------------


def mimics_of(joints: list[Element], builder: ModelBuilder) -> dict[str, tuple[str, float, float]]:
    """`{joint: (source, ratio, offset)}`, each source with a coordinate of its own."""
    kinds = {joint.attributes["name"]: kind_of(joint) for joint in joints}
    direct: dict[str, tuple[str, float, float]] = {}
    for joint in joints:
        mimic, name = joint.first("mimic"), joint.attributes["name"]
        if mimic is None:
            continue
        source = required(mimic, "joint")
        problem = _mimic_problem(name, source, kinds)
        if problem:
            builder.add_note(f"joint {name}", f"{problem}: <mimic> left out")
            continue
        direct[name] = (source, number(mimic, "multiplier", 1.0), number(mimic, "offset", 0.0))
    elements = {joint.attributes["name"]: joint for joint in joints}
    found: dict[str, tuple[str, float, float]] = {}
    for name in direct:
        _follow(name, direct, found, elements)
    for name, (source, _, _) in direct.items():
        if source in direct:
            end = found[name][0]
            builder.add_note(f"joint {name}", f"mimics {source}, which mimics another: geared to {end} itself")
    return {name: found[name] for name in direct}


def _mimic_problem(name: str, source: str, kinds: dict[str, str]) -> str | None:
    if kinds[name] not in _ALONG_AXIS:
        return f"mimics {source!r} and is itself {kinds[name]}"
    if source not in kinds:
        return f"mimics {source!r}, which is no joint of the file"
    if kinds[source] not in _ALONG_AXIS:
        return f"mimics {source!r}, which is {kinds[source]} and has no coordinate to follow"
    return None


def _follow(name: str, direct, found: dict[str, tuple[str, float, float]], elements: dict[str, Element]):
    """Finds the ends of all chains of mimics from here on: `q = r (r' q'' + o') + o`."""
    chain: dict[str, None] = {}  # in order, and quick to search
    while name in direct and name not in found:
        if name in chain:
            listed = ", ".join(list(chain)[:6])
            fail(elements[name], f"the joints {listed} mimic each other in a circle; free one of them")
        chain[name] = None
        name = direct[name][0]
    for name in reversed(chain):
        source, ratio, offset = direct[name]
        source, r, o = found.get(source, (source, 1.0, 0.0))
        ratio, offset = ratio * r, ratio * o + offset
        if not max(abs(ratio), abs(offset)) <= LARGEST:
            fail(
                elements[name], f"its chain of mimics has a ratio of {ratio:g} and an offset of {offset:g}; correct it"
            )
        found[name] = (source, ratio, offset)
