"""Readable expressions over the leaves of a system: which parameters a fit may change."""

import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.dynamics._links import dof_carries_link
from jaxdyn.identification._slots import COMPONENTS, AbstractSlot, GravityDirection, Place, TenParameters, Turn, entries
from jaxdyn.model import Model
from jaxdyn.simulation import System

#: unit, lower bound and scale of the fields of `model.properties`
_PROPERTIES = {
    "armature": ("kg m^2", 0.0, 0.1),
    "damping": ("N m s/rad", 0.0, 1.0),
    "friction": ("N m", 0.0, 1.0),
    "friction_velocity": ("rad/s", 1e-6, 0.1),
    "stiffness": ("N m/rad", 0.0, 10.0),
    "rest": ("rad", -np.inf, 1.0),
}
#: the same of parts, where their sign is known
_PARTS = {
    "coulomb_forward": ("N m", 0.0, 1.0),
    "coulomb_backward": ("N m", 0.0, 1.0),
    "viscous_forward": ("N m s/rad", 0.0, 1.0),
    "viscous_backward": ("N m s/rad", 0.0, 1.0),
    "stribeck": ("N m", 0.0, 1.0),
    "stribeck_velocity": ("rad/s", 1e-6, 0.1),
    "load_coefficient": ("", 0.0, 0.1),
    "load_width": ("N m", 1e-9, 0.1),
    "width": ("rad/s", 1e-6, 0.1),
    "gain": ("", -np.inf, 1.0),
    "offset": ("N m", -np.inf, 1.0),
    "delay": ("s", 0.0, 0.01),
    "constant": ("N m/A", 0.0, 0.1),
    "resistance": ("ohm", 0.0, 1.0),
    "inductance": ("H", 0.0, 0.01),
    "gear": ("", -np.inf, 1.0),
}
_PATH = re.compile(r"(?P<what>\w+)(\[(?P<name>[^\]]*)\])?(\.(?P<field>\w+)(\[(?P<entry>[^\]]*)\])?)?")
_FORMS = (
    "links[NAME].inertial, .mass, .com or .inertia; joints[NAME].damping, .friction, .friction_velocity, .armature, "
    ".stiffness, .rest, .translation, .rotation or .axis; frames[NAME].translation or .rotation; mimic[NAME].ratio or "
    ".offset; gravity; gravity.direction; parts[CLASS or number].FIELD[JOINT]. Names may hold * and ?"
)


@dataclass(frozen=True)
class Selection:
    """What `select` returns: paths, functions to leaves, or both. Selections add up with `+`."""

    items: tuple[Any, ...]

    def __add__(self, other: "Selection") -> "Selection":
        return Selection(self.items + other.items)

    def groups(self, system: System) -> tuple[tuple[str, tuple[AbstractSlot, ...]], ...]:
        """Each item as it was written, with the places that it stands for in this system."""
        found = tuple(_resolved(system, item) for item in self.items)
        seen: set[str] = set()
        for text, slots in found:
            names = [name for slot in slots for name in slot.names]
            twice = sorted(seen.intersection(names))
            if twice:
                raise ModelError(f"{text!r} selects {twice[0]!r}, which is selected already; name each parameter once")
            seen.update(names)
        return found


def select(*items: Any) -> Selection:
    """The parameters that a fit may change, by paths over the system's leaves or by functions `system -> leaf`.

    A path names the thing, in brackets which one (with `*` and `?` as in file names), and the number:
    `links[*].inertial` are the ten inertial parameters about a link's origin of all links that move and have mass,
    `joints[arm_1].damping` one joint's damping, `parts[JointFriction].stribeck` a field of the part of that class,
    `parts[0].gain[arm_*]` some of its entries. Also: `links[..].mass`, `.com`, `.inertia`; `joints[..].friction`,
    `.friction_velocity`, `.armature`, `.stiffness`, `.rest`, `.axis`, and `.translation` and `.rotation` of the joint's
    frame in its parent link; `frames[..]` likewise; `mimic[..].ratio`; `gravity` and `gravity.direction`. A function
    gets the `System` and returns one leaf, all of whose entries are selected.
    """
    if not items:
        raise ModelError(f"select() was given nothing; name parameters by {_FORMS}")
    flat: list[Any] = []
    for item in items:
        flat += item.items if isinstance(item, Selection) else [item]
    return Selection(tuple(flat))


def _resolved(system: System, item: Any) -> tuple[str, tuple[AbstractSlot, ...]]:
    if callable(item):
        return _from_function(system, item)
    match = _PATH.fullmatch(str(item).strip())
    if match is None or match["what"] not in _READERS:
        raise ModelError(f"{item!r} is no parameter; expected {_FORMS}")
    slots = tuple(_READERS[match["what"]](system, str(item), match))
    if not slots:
        raise ModelError(f"{item!r} matches nothing in this system that can be fitted; expected {_FORMS}")
    return str(item), slots


def _from_function(system: System, f: Callable[[System], Any]):
    leaf = f(system)
    if not eqx.is_inexact_array(leaf) or not any(leaf is x for x in jax.tree.leaves(system)):
        raise ModelError(
            f"a selecting function returned {type(leaf).__name__}, which is no leaf of the system; return one, such as "
            "lambda system: system.model.properties.damping"
        )
    named = [(jax.tree_util.keystr(path), x) for path, x in jax.tree_util.tree_leaves_with_path(system)]
    name = next(path for path, x in named if x is leaf).lstrip(".")
    size = int(np.prod(leaf.shape))
    names = tuple(f"{name}[{k}]" for k in range(size))
    slot = entries(f, tuple(range(size)), names, ("",) * size, (-np.inf,) * size, (1.0,) * size)
    return name, (slot,)


def _matching(names, pattern: str | None, path: str, what: str) -> list[int]:
    """Rows whose name the pattern names."""
    if pattern is None:
        raise ModelError(f"{path!r} does not say which {what}; write {what}s[*] for all")
    found = [k for k, name in enumerate(names) if fnmatch.fnmatchcase(name, pattern)]
    if not found:
        shown = ", ".join(names[:12])
        raise ModelError(f"{path!r}: no {what} is called {pattern!r}; there are {shown or 'none'}")
    return found


def _no_field(path: str):
    return ModelError(f"{path!r} names no number that can be fitted; expected {_FORMS}")


def _links(system: System, path: str, match):
    model, field = system.model, match["field"]
    moves = np.any(dof_carries_link(model), axis=0)
    rows = _matching(model.link_names, match["name"], path, "link")
    exact = match["name"] in model.link_names
    for row in rows:
        name = model.link_names[row]
        if field == "inertial":
            if not exact and not (moves[row] and float(model.links.mass[row]) > 0):
                continue
            yield TenParameters(link=name, row=row, names=tuple(f"{c}({name})" for c in COMPONENTS))
        elif field == "mass":
            yield entries(_mass, (row,), (f"links[{name}].mass",), ("kg",), (0.0,), (1.0,))
        elif field == "com":
            yield _vector(_com, row, f"links[{name}].com", 3, "m", 0.1)
        elif field == "inertia":
            yield _vector(_inertia, row, f"links[{name}].inertia", 9, "kg m^2", 0.01)
        else:
            raise _no_field(path)


def _mass(s):
    return s.model.links.mass


def _com(s):
    return s.model.links.com


def _inertia(s):
    return s.model.links.inertia


def _vector(where, row: int, name: str, width: int, unit: str, scale: float) -> AbstractSlot:
    index = tuple(range(width * row, width * row + width))
    names = tuple(f"{name}[{k}]" for k in range(width))
    return entries(where, index, names, (unit,) * width, (-np.inf,) * width, (scale,) * width)


def _joints(system: System, path: str, match):
    model, field = system.model, match["field"]
    for index in _matching(model.joint_names, match["name"], path, "joint"):
        name = model.joint_names[index]
        if field in _PROPERTIES:
            yield from _property(model, name, field)
        elif field == "translation":
            where = Place("model", "placements", "translation")
            yield _vector(where, index, f"joints[{name}].translation", 3, "m", 0.1)
        elif field == "rotation":
            turned = _three(f"joints[{name}].rotation")
            yield Turn(where=Place("model", "placements", "rotation"), row=index, names=turned)
        elif field == "axis":
            yield from _axis(model, name, index)
        else:
            raise _no_field(path)


def _three(name: str) -> tuple[str, ...]:
    return tuple(f"{name}[{k}]" for k in range(3))


def _property(model: Model, name: str, field: str):
    view = model.joint(name)
    rows = range(model.nq)[view.q] if field == "rest" else range(model.nv)[view.v]
    unit, lower, scale = _PROPERTIES[field]
    where = Place("model", "properties", field)
    label = f"joints[{name}].{field}"
    if name in {model.joint_names[a] for a, _ in model.topology.mimics}:
        return
    for k, row in enumerate(rows):
        text = label if len(rows) == 1 else f"{label}[{k}]"
        yield entries(where, (row,), (text,), (unit,), (lower,), (scale,))


def _axis(model: Model, name: str, index: int):
    group = model.topology.groups[index]
    if group >= 0 and hasattr(model.joints[group], "axis"):
        member = model.topology.groups[:index].count(group)
        yield _vector(Place("model", "joints", group, "axis"), member, f"joints[{name}].axis", 3, "", 0.1)


def _frames(system: System, path: str, match):
    model, field = system.model, match["field"]
    for row in _matching(model.frame_names, match["name"], path, "frame"):
        name = f"frames[{model.frame_names[row]}].{field}"
        if field == "translation":
            yield _vector(Place("model", "frames", "translation"), row, name, 3, "m", 0.1)
        elif field == "rotation":
            yield Turn(where=Place("model", "frames", "rotation"), row=row, names=_three(name))
        else:
            raise _no_field(path)


def _mimic(system: System, path: str, match):
    model, field = system.model, match["field"]
    names = [model.joint_names[a] for a, _ in model.topology.mimics]
    if field not in ("ratio", "offset"):
        raise _no_field(path)
    for row in _matching(names, match["name"], path, "mimic"):
        where = Place("model", "mimic", field)
        yield entries(where, (row,), (f"mimic[{names[row]}].{field}",), ("",), (-np.inf,), (1.0,))


def _gravity(system: System, path: str, match):
    if match["field"] == "direction":
        yield GravityDirection()
    elif match["field"] is None:
        names = tuple(f"gravity[{k}]" for k in range(3))
        yield entries(Place("model", "gravity"), (0, 1, 2), names, ("m/s^2",) * 3, (-np.inf,) * 3, (1.0,) * 3)
    else:
        raise _no_field(path)


def _parts(system: System, path: str, match):
    labels = [type(p).__name__ for p in system.parts]
    chosen = match["name"]
    if chosen is not None and chosen.isdigit() and int(chosen) < len(labels):
        numbers = [int(chosen)]
    else:
        numbers = _matching(labels, chosen, path, "part")
    for number in numbers:
        leaf = getattr(system.parts[number], match["field"] or "", None)
        if leaf is None and len(numbers) > 1:
            continue
        if leaf is None or not eqx.is_inexact_array(jnp.asarray(leaf)):
            raise _no_field(path)
        yield from _part_entries(system, path, match, number, jnp.asarray(leaf))


def _part_entries(system: System, path: str, match, number: int, leaf):
    model, field = system.model, match["field"]
    names = _coordinate_labels(model) if leaf.shape == (model.nv,) else [str(k) for k in range(leaf.size)]
    rows = range(leaf.size) if match["entry"] is None else _matching(names, match["entry"], path, "entry")
    unit, lower, scale = _PARTS.get(field, ("", -np.inf, 1.0))
    label = f"parts[{type(system.parts[number]).__name__}].{field}"
    for row in rows:
        text = f"{label}[{names[row]}]" if leaf.ndim else label
        where = Place("parts", number, field)
        yield entries(where, (row,), (text,), (unit,), (lower,), (scale,))


def _coordinate_labels(model: Model) -> list[str]:
    """The joint of each velocity coordinate, numbered where it has several."""
    labels = [""] * model.nv
    followers = {a for a, _ in model.topology.mimics}
    for index, name in enumerate(model.joint_names):
        rows = range(model.nv)[model.joint(name).v]
        if index not in followers:
            for k, row in enumerate(rows):
                labels[row] = name if len(rows) == 1 else f"{name}[{k}]"
    return labels


_READERS: dict[str, Callable[..., Any]] = {
    "links": _links,
    "joints": _joints,
    "frames": _frames,
    "mimic": _mimic,
    "gravity": _gravity,
    "parts": _parts,
}
