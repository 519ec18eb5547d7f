"""Selection of parameters by paths and functions to leaves of a system."""

import fnmatch
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, PyTree
from jaxdyn.identification.parameters._slots import (
    COMPONENTS,
    AbstractSlot,
    GravityDirection,
    LeafPath,
    SmallRotation,
    TenParameters,
    entries,
)
from jaxdyn.model import Model
from jaxdyn.recursion import dof_carries_link
from jaxdyn.simulation import System

#: unit, lower bound and scale of each field of `model.properties`
_PROPERTIES = {
    "armature": ("kg m^2", 0.0, 0.1),
    "damping": ("N m s/rad", 0.0, 1.0),
    "friction": ("N m", 0.0, 1.0),
    "friction_velocity": ("rad/s", 1e-6, 0.1),
    "stiffness": ("N m/rad", 0.0, 10.0),
    "rest": ("rad", -np.inf, 1.0),
}
#: the same for fields of parts
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
    "rotor_inertia": ("kg m^2", 0.0, 1e-4),
    "input_inertia": ("kg m^2", 0.0, 1e-4),
    "output_inertia": ("kg m^2", 0.0, 1e-3),
    "stiffness": ("N m/rad", 0.0, 10.0),
    "damping": ("N m s/rad", 0.0, 1.0),
    "ratio": ("", -np.inf, 1.0),
    "back_emf": ("V s/rad", 0.0, 0.1),
    "viscous": ("N m s/rad", 0.0, 1e-3),
    "efficiency": ("", 0.0, 1.0),
    "reverse_efficiency": ("", 0.0, 1.0),
    "coulomb": ("N m", 0.0, 0.01),
    "static": ("N m", 0.0, 0.01),
    "winding_capacity": ("J/K", 1e-9, 100.0),
    "housing_capacity": ("J/K", 1e-9, 100.0),
    "winding_resistance": ("K/W", 1e-9, 1.0),
    "housing_resistance": ("K/W", 1e-9, 1.0),
    "ambient": ("degC", -np.inf, 10.0),
    "resistance_coefficient": ("1/K", -np.inf, 1e-3),
    "constant_coefficient": ("1/K", -np.inf, 1e-3),
}
_PATH = re.compile(r"(?P<what>\w+)(\[(?P<name>[^\]]*)\])?(\.(?P<field>\w+(\.\w+)*)(\[(?P<entry>[^\]]*)\])?)?")
_FORMS = (
    "links[NAME].inertial, .mass, .com or .inertia; joints[NAME].damping, .friction, .friction_velocity, .armature, "
    ".stiffness, .rest, .translation, .rotation or .axis; frames[NAME].translation or .rotation; mimic[NAME].ratio or "
    ".offset; gravity; gravity.direction; parts[CLASS or number].FIELD[JOINT], where FIELD may be a path a.b. "
    "Names may hold * and ?"
)


@dataclass(frozen=True)
class Selection:
    """Paths and functions to leaves that name parameters, as `select` returns it; `a + b` selects both.

    ```python
    import jaxdyn as jd
    from jaxdyn.identification import collect, select

    friction = select("joints[*].damping") + select("joints[*].friction")
    assert collect(jd.robots.pendulum(), friction).names == ("joints[rod_joint].damping", "joints[rod_joint].friction")
    ```
    """

    items: tuple[str | Callable[[System], Array], ...]

    def __add__(self, other: "Selection") -> "Selection":
        return Selection(self.items + other.items)

    def groups(self, system: System) -> tuple[tuple[str, tuple[AbstractSlot, ...]], ...]:
        """Each item as written, with the slots that it matches in a system."""
        found = tuple(_resolve_item(system, item) for item in self.items)
        selected: set[str] = set()
        for text, slots in found:
            names = [name for slot in slots for name in slot.names]
            twice = sorted(selected.intersection(names))
            if twice:
                raise ModelError(
                    f"{text!r} selects {twice[0]!r}, which is selected already; select each parameter once"
                )
            selected.update(names)
        return found


def select(*items: "Selection | str | Callable[[System], Array]") -> Selection:
    """Selects the parameters that a fit may change, by paths or by functions `system -> leaf`.

    A path has the kind of an object, in brackets its name (with `*` and `?` as in file names), and a field:

    * `links[*].inertial`: the ten inertial parameters about the link's origin of all links that move and have mass;
      `links[..].mass`, `.com`, `.inertia`: the leaves themselves
    * `joints[arm_1].damping`: one joint's damping; also `.friction`, `.friction_velocity`, `.armature`, `.stiffness`,
      `.rest`, `.axis`, and `.translation` and `.rotation` of the joint's frame in its parent link
    * `frames[..].translation`, `.rotation`; `mimic[..].ratio`, `.offset`; `gravity`, `gravity.direction`
    * `parts[JointFriction].stribeck`: a field of the part of that class; `parts[0].gain[arm_*]`: some of its entries;
      `parts[DcMotor].thermal.ambient[elbow]`: a field of a field, of the motor on one of several joints;
      `parts[TransmissionSprings].stages.0.stiffness`: of the first stage

    Arguments:

    * `items`: paths, other selections, or functions that take the `System` and return one leaf, all of whose entries
      are selected.

    Returns a `Selection`, which `fit` and `collect` take. Paths are matched there, where a wrong one is a `ModelError`.

    ```python
    import jaxdyn as jd
    from jaxdyn.identification import collect, select

    selection = select("links[rod].mass", lambda system: system.model.properties.damping)
    assert len(collect(jd.robots.pendulum(), selection).names) == 2
    ```
    """
    if not items:
        raise ModelError(f"select() was given no item; expected {_FORMS}")
    flat: list[str | Callable[[System], Array]] = []
    for item in items:
        flat += item.items if isinstance(item, Selection) else [item]
    return Selection(tuple(flat))


def _resolve_item(system: System, item: str | Callable[[System], Array]) -> tuple[str, tuple[AbstractSlot, ...]]:
    """The text of an item, and the slots that it matches."""
    if callable(item):
        return _from_function(system, item)
    match = _PATH.fullmatch(str(item).strip())
    if match is None or match["what"] not in _SLOTS_OF:
        raise ModelError(f"{item!r} is not a path to parameters; expected {_FORMS}")
    slots = tuple(_SLOTS_OF[match["what"]](system, str(item), match))
    if not slots:
        raise ModelError(f"{item!r} matches no parameter of this system; expected {_FORMS}")
    return str(item), slots


def _from_function(system: System, f: Callable[[System], Array]) -> tuple[str, tuple[AbstractSlot, ...]]:
    leaf = f(system)
    if not eqx.is_inexact_array(leaf) or not any(leaf is x for x in jax.tree.leaves(system)):
        raise ModelError(
            f"a selecting function returned {type(leaf).__name__}, which is no leaf of the system; expected a function "
            "such as lambda system: system.model.properties.damping"
        )
    named = [(jax.tree_util.keystr(path), x) for path, x in jax.tree_util.tree_leaves_with_path(system)]
    name = next(path for path, x in named if x is leaf).lstrip(".")
    size = int(np.prod(leaf.shape))
    names = tuple(f"{name}[{k}]" for k in range(size))
    slot = entries(f, tuple(range(size)), names, ("",) * size, (-np.inf,) * size, (1.0,) * size)
    return name, (slot,)


def _matching_rows(names: Sequence[str], pattern: str | None, path: str, what: str) -> list[int]:
    """Positions of the names that match a pattern."""
    if pattern is None:
        raise ModelError(f"{path!r} does not say which {what}; write {what}s[*] to select all")
    found = [k for k, name in enumerate(names) if fnmatch.fnmatchcase(name, pattern)]
    if not found:
        shown = ", ".join(names[:12])
        raise ModelError(f"{path!r}: no {what} is called {pattern!r}; there are {shown or 'none'}")
    return found


def _field_error(path: str) -> ModelError:
    return ModelError(f"{path!r} names no field that can be fitted; expected {_FORMS}")


def _links(system: System, path: str, match: re.Match[str]) -> Iterator[AbstractSlot]:
    model, field = system.model, match["field"]
    moves = np.any(dof_carries_link(model), axis=0)
    rows = _matching_rows(model.link_names, match["name"], path, "link")
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
            yield _row_entries(_com, row, f"links[{name}].com", 3, "m", 0.1)
        elif field == "inertia":
            yield _row_entries(_inertia, row, f"links[{name}].inertia", 9, "kg m^2", 0.01)
        else:
            raise _field_error(path)


def _mass(system: System) -> PyTree:
    return system.model.links.mass


def _com(system: System) -> PyTree:
    return system.model.links.com


def _inertia(system: System) -> PyTree:
    return system.model.links.inertia


def _row_entries(
    where: Callable[[System], Array], row: int, name: str, width: int, unit: str, scale: float
) -> AbstractSlot:
    """All entries of one row of a leaf."""
    index = tuple(range(width * row, width * row + width))
    names = tuple(f"{name}[{k}]" for k in range(width))
    return entries(where, index, names, (unit,) * width, (-np.inf,) * width, (scale,) * width)


def _joints(system: System, path: str, match: re.Match[str]) -> Iterator[AbstractSlot]:
    model, field = system.model, match["field"]
    for index in _matching_rows(model.joint_names, match["name"], path, "joint"):
        name = model.joint_names[index]
        if field in _PROPERTIES:
            yield from _property(model, name, field)
        elif field == "translation":
            where = LeafPath("model", "placements", "translation")
            yield _row_entries(where, index, f"joints[{name}].translation", 3, "m", 0.1)
        elif field == "rotation":
            names = _component_names(f"joints[{name}].rotation")
            yield SmallRotation(where=LeafPath("model", "placements", "rotation"), row=index, names=names)
        elif field == "axis":
            yield from _axis(model, name, index)
        else:
            raise _field_error(path)


def _component_names(name: str) -> tuple[str, ...]:
    return tuple(f"{name}[{k}]" for k in range(3))


def _property(model: Model, name: str, field: str) -> Iterator[AbstractSlot]:
    view = model.joint(name)
    rows = range(model.nq)[view.q] if field == "rest" else range(model.nv)[view.v]
    unit, lower, scale = _PROPERTIES[field]
    where = LeafPath("model", "properties", field)
    label = f"joints[{name}].{field}"
    if name in {model.joint_names[a] for a, _ in model.topology.mimics}:
        return
    for k, row in enumerate(rows):
        text = label if len(rows) == 1 else f"{label}[{k}]"
        yield entries(where, (row,), (text,), (unit,), (lower,), (scale,))


def _axis(model: Model, name: str, index: int) -> Iterator[AbstractSlot]:
    group = model.topology.groups[index]
    if group >= 0 and hasattr(model.joints[group], "axis"):
        member = model.topology.groups[:index].count(group)
        yield _row_entries(LeafPath("model", "joints", group, "axis"), member, f"joints[{name}].axis", 3, "", 0.1)


def _frames(system: System, path: str, match: re.Match[str]) -> Iterator[AbstractSlot]:
    model, field = system.model, match["field"]
    for row in _matching_rows(model.frame_names, match["name"], path, "frame"):
        name = f"frames[{model.frame_names[row]}].{field}"
        if field == "translation":
            yield _row_entries(LeafPath("model", "frames", "translation"), row, name, 3, "m", 0.1)
        elif field == "rotation":
            yield SmallRotation(where=LeafPath("model", "frames", "rotation"), row=row, names=_component_names(name))
        else:
            raise _field_error(path)


def _mimic(system: System, path: str, match: re.Match[str]) -> Iterator[AbstractSlot]:
    model, field = system.model, match["field"]
    names = [model.joint_names[a] for a, _ in model.topology.mimics]
    if field not in ("ratio", "offset"):
        raise _field_error(path)
    for row in _matching_rows(names, match["name"], path, "mimic"):
        where = LeafPath("model", "mimic", field)
        yield entries(where, (row,), (f"mimic[{names[row]}].{field}",), ("",), (-np.inf,), (1.0,))


def _gravity(system: System, path: str, match: re.Match[str]) -> Iterator[AbstractSlot]:
    if match["field"] == "direction":
        yield GravityDirection()
    elif match["field"] is None:
        names = tuple(f"gravity[{k}]" for k in range(3))
        yield entries(LeafPath("model", "gravity"), (0, 1, 2), names, ("m/s^2",) * 3, (-np.inf,) * 3, (1.0,) * 3)
    else:
        raise _field_error(path)


def _parts(system: System, path: str, match: re.Match[str]) -> Iterator[AbstractSlot]:
    labels = [type(p).__name__ for p in system.parts]
    name = match["name"]
    if name is not None and name.isdigit() and int(name) < len(labels):
        numbers = [int(name)]
    else:
        numbers = _matching_rows(labels, name, path, "part")
    numbers = _select_by_joint(system, numbers, path, match)
    for number in numbers:
        leaf = _find_field(system.parts[number], match["field"])
        if leaf is None and len(numbers) > 1:
            continue
        if leaf is None or not eqx.is_inexact_array(jnp.asarray(leaf)):
            raise _field_error(path)
        yield from _part_entries(system, path, match, number, jnp.asarray(leaf))


def _find_field(part: PyTree, field: str | None) -> PyTree:
    """The attribute at a path such as `thermal.ambient` or `stages.0.damping`, or None."""
    for step in _steps(field or ""):
        if isinstance(step, int):
            part = part[step] if isinstance(part, tuple | list) and step < len(part) else None
        else:
            part = getattr(part, step, None)
    return part


def _steps(field: str) -> list[str | int]:
    """Attributes and positions of a path."""
    return [int(name) if name.isdigit() else name for name in field.split(".")]


def _select_by_joint(system: System, numbers: list[int], path: str, match: re.Match[str]) -> list[int]:
    """The parts whose joint matches the entry of the path, among parts that drive one joint each."""
    joints = [getattr(system.parts[number], "joint", None) for number in numbers]
    if match["entry"] is None or not all(isinstance(joint, str) for joint in joints):
        return numbers
    return [numbers[k] for k in _matching_rows([str(joint) for joint in joints], match["entry"], path, "entry")]


def _part_entries(system: System, path: str, match: re.Match[str], number: int, leaf: Array) -> Iterator[AbstractSlot]:
    model, field = system.model, match["field"]
    kind, joint = type(system.parts[number]), getattr(system.parts[number], "joint", None)
    has_joint = isinstance(joint, str)
    names = dof_labels(model) if leaf.shape == (model.nv,) else [str(k) for k in range(leaf.size)]
    takes_all = match["entry"] is None or has_joint
    rows = range(leaf.size) if takes_all else _matching_rows(names, match["entry"], path, "entry")
    unit, lower, scale = _PARTS.get(field.split(".")[-1], ("", -np.inf, 1.0))
    label = f"parts[{kind.__name__}].{field}"
    if has_joint and sum(type(part) is kind for part in system.parts) > 1:
        label += f"[{joint}]"
    for row in rows:
        text = f"{label}[{names[row]}]" if leaf.ndim else label
        where = LeafPath("parts", number, *_steps(field))
        yield entries(where, (row,), (text,), (unit,), (lower,), (scale,))


def dof_labels(model: Model) -> list[str]:
    """A label of each degree of freedom, `(nv,)`: its joint, with a number if the joint has several."""
    labels = [""] * model.nv
    followers = {a for a, _ in model.topology.mimics}
    for index, name in enumerate(model.joint_names):
        rows = range(model.nv)[model.joint(name).v]
        if index not in followers:
            for k, row in enumerate(rows):
                labels[row] = name if len(rows) == 1 else f"{name}[{k}]"
    return labels


_SLOTS_OF: dict[str, Callable[[System, str, re.Match[str]], Iterator[AbstractSlot]]] = {
    "links": _links,
    "joints": _joints,
    "frames": _frames,
    "mimic": _mimic,
    "gravity": _gravity,
    "parts": _parts,
}
