"""Checks of a description: names exist and are unique, concrete numbers are valid. Traced numbers are not checked."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxdyn._errors import ModelError, check_instance
from jaxdyn._numerics import is_concrete
from jaxdyn.joints import AbstractJoint, parameter_shapes
from jaxdyn.model.assembly._arguments import BOUND, DIRECTION, FINITE, MAGNITUDE, NON_NEGATIVE, check_numbers
from jaxdyn.model.assembly._entries import LinkEntry
from jaxdyn.model.structure import Actuator, Closure, Coupling, Note, Shape
from jaxdyn.spatial import Inertia, inertia_defect

#: note in the report on a joint without inertia
MASSLESS = "moves no mass and has no armature: the mass matrix is singular"


def check_unique(names, what: str):
    """Raises `ModelError` if a name occurs twice."""
    seen = set()
    for name in names:
        if name in seen:
            raise ModelError(f"two {what}s are called {name!r}; names of {what}s must differ")
        seen.add(name)


#: properties of joints by the rule that their numbers obey
_PROPERTY_RULES = {
    **dict.fromkeys(("armature", "damping", "friction", "friction_velocity"), NON_NEGATIVE),
    **dict.fromkeys(("stiffness", "rest"), FINITE),
    **dict.fromkeys(("lower", "upper"), BOUND),
    **dict.fromkeys(("velocity", "effort"), MAGNITUDE),
}
#: the same for models that are not checked strictly
_LENIENT_RULES = {NON_NEGATIVE: FINITE, MAGNITUDE: BOUND}


def check_link(link: LinkEntry, strict: bool):
    """Raises `ModelError` if an argument of `ModelBuilder.add_link` has a wrong shape or value."""
    where = f"joint {link.joint_name!r}"
    check_instance(f"{where}: joint", link.joint, AbstractJoint, "pass a joint of jaxdyn.joints", error=ModelError)
    _check_joint(where, link.joint)
    for name, value in link.properties.items():
        rule = _PROPERTY_RULES[name]
        size = link.joint.nq if name in ("rest", "lower", "upper") else link.joint.nv
        check_numbers(where, name, value, rule if strict else _LENIENT_RULES.get(rule, rule), (size,), ())
    if strict:
        _check_range(where, link.properties)
    if link.inertia is not None:
        _check_inertia(f"link {link.name!r}", link.inertia)


def _check_joint(where: str, joint: AbstractJoint):
    shapes = dict(parameter_shapes(type(joint)))
    for path, leaf in jax.tree_util.tree_flatten_with_path(joint)[0]:
        name = jax.tree_util.keystr(path).lstrip(".")
        shape = (shapes[name],) if name in shapes else ()
        check_numbers(where, name, leaf, DIRECTION if "axis" in name else FINITE, *shape)


def _check_range(where: str, properties: Mapping[str, Any]):
    """Raises if a lower limit is above the upper one; their shapes have been checked."""
    known = {key: np.asarray(x, float) for key, x in properties.items() if key in ("lower", "upper") and is_concrete(x)}
    if len(known) == 2 and (known["lower"] > known["upper"]).any():
        raise ModelError(f"{where}: its lower limit {known['lower']} is above the upper one, {known['upper']}")


def _check_inertia(where: str, body: Any):
    check_instance(f"{where}: inertia", body, Inertia, "make one with jaxdyn.spatial", error=ModelError)
    for name, value, shape in (("mass", body.mass, ()), ("com", body.com, (3,)), ("inertia", body.inertia, (3, 3))):
        check_numbers(where, name, value, FINITE, shape)


def inertia_notes(links: list[LinkEntry], existing: Sequence[Note], *, strict: bool, allowed: bool) -> list[Note]:
    """Notes on concrete inertias that no rigid body has, if they are allowed; raises `ModelError` if strict."""
    notes: list[Note] = []
    if not (strict or allowed):
        return notes
    for link in links:
        body = link.inertia
        defect = None if body is None or not is_concrete(body) else inertia_defect(body.mass, body.inertia)
        if defect is None:
            continue
        if not allowed:
            raise ModelError(
                f"link {link.name!r} {defect}; correct it, or pass allow_unphysical_inertia=True to keep it"
            )
        where = f"link {link.name}"
        if not any(note.where == where and note.what.startswith(defect) for note in existing):
            notes.append(Note(where, f"{defect}: kept, though no rigid body has it"))
    return notes


def check_descriptions(
    closures: Sequence[Closure | Coupling],
    actuators: Sequence[Actuator],
    shapes: Sequence[Shape],
    links: list[LinkEntry],
):
    """Raises `ModelError` if a closure, coupling, actuator or shape has an unknown link or joint, or a wrong size."""
    bodies = {"world"} | {link.name for link in links}
    joints = {link.joint_name: link.joint for link in links}
    for closure in closures:
        named = closure.links if isinstance(closure, Closure) else (closure.joint, closure.source)
        known = bodies if isinstance(closure, Closure) else {*joints, None}
        for name in named:
            if name not in known:
                what = "link" if isinstance(closure, Closure) else "joint"
                raise ModelError(f"closure {closure.name!r} names the {what} {name!r}, which this model does not have")
    for actuator in actuators:
        if actuator.joint not in joints:
            raise ModelError(
                f"actuator {actuator.name!r} acts on {actuator.joint!r}, which is not a joint of this model"
            )
        if actuator.gear.shape != (joints[actuator.joint].nv,):
            raise ModelError(
                f"actuator {actuator.name!r}: gear has shape {actuator.gear.shape}, but joint {actuator.joint!r} has "
                f"{joints[actuator.joint].nv} velocity coordinates"
            )
        if is_concrete(actuator.range) and not np.less_equal(*np.asarray(actuator.range)):
            raise ModelError(
                f"actuator {actuator.name!r}: its range {np.asarray(actuator.range)} is empty; give (lower, upper)"
            )
    for shape in shapes:
        if shape.link not in bodies:
            raise ModelError(f"shape {shape.name!r} is on {shape.link!r}, which is not a link of this model")
    for what, entries in (("closure", closures), ("actuator", actuators)):
        check_unique([x.name for x in entries], what)


def check_frames(frames: list[tuple[str, str, Any, Any]], links: list[LinkEntry]):
    """Raises `ModelError` if a frame shares its name with another frame or a link."""
    check_unique([f[0] for f in frames], "frame")
    names = {link.name for link in links}
    for name, *_ in frames:
        if name in names:
            raise ModelError(
                f"frame {name!r} has the name of a link; every link is a frame as well, so choose another name"
            )


def massless_joint_notes(links: list[LinkEntry], mimics: list[Any], existing: list[Note]) -> list[Note]:
    """Notes on joints that move no mass and have no armature; traced numbers count as non-zero.

    `links` are in depth-first order; notes in `existing` are not repeated.
    """
    heavy: set[str] = set()
    for link in reversed(links):
        body = link.inertia
        if link.name in heavy or (body is not None and _may_be_nonzero((body.mass, body.inertia))):
            heavy |= {link.name, link.parent}
    rotor = lambda link: _may_be_nonzero(link.properties.get("armature", 0.0), every=True)
    massless = [x.joint_name for x in links if x.joint.nv and x.name not in heavy and not rotor(x)]
    driven = {source for follower, source, *_ in mimics if follower not in massless}
    not_reported = driven | {follower for follower, *_ in mimics}
    notes = [Note(f"joint {x}", MASSLESS) for x in massless if x not in not_reported]
    return [note for note in notes if note not in existing]


def _may_be_nonzero(tree, *, every: bool = False) -> bool:
    """True if any number (with `every`, all of them) is not zero; traced numbers count as non-zero."""
    if not is_concrete(tree):
        return True
    parts = [np.asarray(x, float) for x in jax.tree.leaves(tree)]
    return all(x.all() for x in parts) if every else any(x.any() for x in parts)
