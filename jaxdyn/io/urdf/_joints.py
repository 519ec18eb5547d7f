"""Joints of a URDF: types, axes, limits, friction and mimicking joints."""

from typing import Any

import numpy as np

from jaxdyn.io.files import (
    LARGEST,
    Element,
    fail,
    parse_number,
    read_number,
    read_vector,
    require_attribute,
    with_numpy_leaves,
)
from jaxdyn.io.urdf._links import read_origin
from jaxdyn.joints import Continuous, Fixed, Free, Planar, Prismatic, Revolute
from jaxdyn.model import ModelBuilder
from jaxdyn.spatial import Inertia, hamilton_product

_ALONG_AXIS = {"revolute": Revolute, "continuous": Continuous, "prismatic": Prismatic}
_OTHERS = {"fixed": Fixed, "floating": Free, "planar": Planar}


def joint_type(joint: Element) -> str:
    """The type of a joint, one of the six of URDF."""
    kind = require_attribute(joint, "type")
    if kind not in _ALONG_AXIS and kind not in _OTHERS:
        fail(joint, f"unknown joint type {kind!r}; URDF has {', '.join([*_ALONG_AXIS, *_OTHERS])}")
    return kind


def add_joint(
    joint: Element,
    parent: str,
    child: str,
    inertia: Inertia | None,
    builder: ModelBuilder,
    *,
    is_mimic: bool,
    taken: dict[str, int],
):
    """Adds the link `child` with its joint; `is_mimic` is true if the joint mimics another one.

    `taken` holds the names in use; the names of additional links and joints are added to it.
    """
    kind, name = joint_type(joint), joint.attributes["name"]
    note = lambda what: builder.add_note(f"joint {name}", what)
    xyz, quaternion = read_origin(joint)
    placement: dict[str, Any] = {"joint_name": name, "translation": xyz, "quaternion": np.array(quaternion)}
    if kind in _ALONG_AXIS:
        axis = _unit_axis(joint, note)
        properties: dict[str, Any] = _properties(joint, kind, note)
        if is_mimic and properties:
            note(f"mimics another joint: its own {', '.join(sorted(properties))} ignored")
            properties = {}
        builder.add_link(child, parent, with_numpy_leaves(_ALONG_AXIS[kind], axis), inertia, **placement, **properties)
        return
    ignored = [tag for tag in ("limit", "dynamics") if joint.first(tag) is not None]
    if ignored and kind != "fixed":
        note(f"<{'>, <'.join(ignored)}> of a {kind} joint ignored")
    if kind == "planar":
        _add_planar(joint, parent, child, inertia, builder, placement, taken)
    else:
        builder.add_link(child, parent, _OTHERS[kind](), inertia, **placement)


def _unit_axis(joint: Element, note) -> np.ndarray:
    """The unit vector of `<axis>`; x if the element is missing."""
    element = joint.first("axis")
    if element is None or "xyz" not in element.attributes:
        note("has no axis: x assumed, the default of URDF")
        return np.array([1.0, 0.0, 0.0])
    axis = np.array(read_vector(element, "xyz", 3))
    length = float(np.linalg.norm(axis))
    if length < 1e-9:
        fail(element, "is zero; give a direction")
    if abs(length - 1) > 1e-6:
        note(f"has an axis of length {length:g}: normalised")
    return axis if abs(length - 1) < 1e-15 else axis / length


def _properties(joint: Element, kind: str, note) -> dict[str, float]:
    """Limits, damping and Coulomb friction as keyword arguments of `ModelBuilder.add_link`."""
    out = _limits(joint, kind, note)
    dynamics = joint.first("dynamics")
    if dynamics is None:
        return out
    for key in ("damping", "friction"):
        value = read_number(dynamics, key, 0.0)
        if value < 0:
            note(f"has a {key} of {value:g}, which is negative: kept")
        if value:
            out[key] = value
    return out


def _limits(joint: Element, kind: str, note) -> dict[str, float]:
    limit = joint.first("limit")
    if limit is None:
        if kind != "continuous":
            note("has no <limit>: none assumed, as MuJoCo does (urdfdom refuses the file)")
        return {}
    read = lambda key: (
        parse_number(limit, key, require_attribute(limit, key), np.inf) if key in limit.attributes else None
    )
    out: dict[str, float] = {}
    for key in ("velocity", "effort"):
        value = read(key)
        if value is None:
            note(f"<limit> has no {key}: none assumed")
        elif value < 0:
            fail(limit, f"{key} is {value:g}, which is negative; give its magnitude")
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
            note(f"<limit> has no {key}: zero assumed, the default of URDF")
    lower, upper = (0.0 if x is None else x for x in given.values())
    if lower > upper:
        note(f"lower {lower:g} is above upper {upper:g}: no range assumed")
        return out
    return out | {k: x for k, x in (("lower", lower), ("upper", upper)) if abs(x) < LARGEST}


def make_unique_name(name: str, taken: dict[str, int]) -> str:
    """Returns `name`, with an underscore or a number appended if it is in use, and adds it to `taken`.

    `taken` maps the names in use to the number to try next, which keeps the search for many equal names linear.
    """
    new = name
    while new in taken:
        k = taken[name]
        new, taken[name] = (f"{name}_{k}" if k else f"{name}_"), max(2, k + 1)
    taken[new] = 0
    return new


def _add_planar(
    joint: Element, parent: str, child: str, inertia, builder: ModelBuilder, placement, taken: dict[str, int]
):
    """Adds a joint in the plane normal to the axis: `T = A T_planar A^T`, where A rotates z to the axis.

    Unless A is the identity, a massless link with the axes of A is inserted.
    """
    axis = _unit_axis(joint, lambda what: builder.add_note(f"joint {joint.attributes['name']}", what))
    quat = _rotation_from_z(axis)
    if abs(quat[0]) == 1:
        builder.add_link(child, parent, Planar(), inertia, **placement)
        return
    plane, back = make_unique_name(f"{child}_plane", taken), make_unique_name(f"{joint.attributes['name']}_back", taken)
    builder.add_note(
        f"joint {joint.attributes['name']}",
        f"moves in a plane whose normal is not z: added the link {plane}, whose z is the normal, and the joint {back}",
    )
    placement["quaternion"] = np.array(hamilton_product(placement["quaternion"], quat))
    builder.add_link(plane, parent, Planar(), None, **placement)
    builder.add_link(child, plane, Fixed(), inertia, joint_name=back, quaternion=quat * np.array([1.0, -1, -1, -1]))


def _rotation_from_z(axis: np.ndarray) -> np.ndarray:
    """The smallest rotation from z to a unit axis, as a quaternion; about x for a half turn."""
    quat = np.array([1 + axis[2], -axis[1], axis[0], 0.0])
    length = np.linalg.norm(quat)
    return np.array([0.0, 1.0, 0.0, 0.0]) if length < 1e-8 else quat / length


# --- mimic -----------------------------------------------------------------------------------------


def read_mimics(joints: list[Element], builder: ModelBuilder) -> dict[str, tuple[str, float, float]]:
    """`{joint: (source, ratio, offset)}`; every source has an independent coordinate."""
    kinds = {joint.attributes["name"]: joint_type(joint) for joint in joints}
    direct: dict[str, tuple[str, float, float]] = {}
    for joint in joints:
        mimic, name = joint.first("mimic"), joint.attributes["name"]
        if mimic is None:
            continue
        source = require_attribute(mimic, "joint")
        problem = _mimic_problem(name, source, kinds)
        if problem:
            builder.add_note(f"joint {name}", f"{problem}: <mimic> ignored")
            continue
        direct[name] = (source, read_number(mimic, "multiplier", 1.0), read_number(mimic, "offset", 0.0))
    elements = {joint.attributes["name"]: joint for joint in joints}
    found: dict[str, tuple[str, float, float]] = {}
    for name in direct:
        _resolve_chain(name, direct, found, elements)
    for name, (source, _, _) in direct.items():
        if source in direct:
            end = found[name][0]
            builder.add_note(f"joint {name}", f"mimics {source}, which mimics another joint: follows {end} directly")
    return {name: found[name] for name in direct}


def _mimic_problem(name: str, source: str, kinds: dict[str, str]) -> str | None:
    if kinds[name] not in _ALONG_AXIS:
        return f"mimics {source!r} and is itself {kinds[name]}"
    if source not in kinds:
        return f"mimics {source!r}, which is not a joint of the file"
    if kinds[source] not in _ALONG_AXIS:
        return f"mimics {source!r}, which is {kinds[source]} and has no single coordinate"
    return None


def _resolve_chain(name: str, direct, found: dict[str, tuple[str, float, float]], elements: dict[str, Element]):
    """Resolves the chain of mimics that begins at a joint: `q = r (r' q'' + o') + o`."""
    chain: dict[str, None] = {}  # an ordered set
    while name in direct and name not in found:
        if name in chain:
            listed = ", ".join(list(chain)[:6])
            fail(elements[name], f"the joints {listed} mimic each other in a cycle; remove <mimic> from one of them")
        chain[name] = None
        name = direct[name][0]
    for name in reversed(chain):
        source, ratio, offset = direct[name]
        source, r, o = found.get(source, (source, 1.0, 0.0))
        ratio, offset = ratio * r, ratio * o + offset
        if not max(abs(ratio), abs(offset)) <= LARGEST:
            fail(elements[name], f"its chain of mimics has the ratio {ratio:g} and the offset {offset:g}; correct them")
        found[name] = (source, ratio, offset)
