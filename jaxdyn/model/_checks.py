"""Checks of a description: names exist and are unique, concrete numbers are valid. Traced numbers are not checked."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._numerics import is_concrete
from jaxdyn.model._descriptions import Actuator, Closure, Coupling, Note, Shape
from jaxdyn.model._entries import LinkEntry
from jaxdyn.spatial import inertia_defect

#: note in the report on a joint without inertia
MASSLESS = "moves no mass and has no armature: the mass matrix is singular"


def check_unique(names, what: str):
    """Raises `ModelError` if a name occurs twice."""
    seen = set()
    for name in names:
        if name in seen:
            raise ModelError(f"two {what}s are called {name!r}; names of {what}s must differ")
        seen.add(name)


def _is_finite(x) -> bool:
    return bool(np.isfinite(np.asarray(x, float)).all())


def check_link(link: LinkEntry, strict: bool):
    """Raises `ModelError` if a concrete number of a link or its joint is invalid."""
    body = link.inertia
    if strict and body is not None and is_concrete(body):
        defect = inertia_defect(body.mass, body.inertia)
        if defect:
            raise ModelError(f"link {link.name!r} {defect}")
        if not _is_finite(body.com):
            raise ModelError(f"link {link.name!r} has a centre of mass that is not finite")
    _check_pose(f"joint {link.joint_name!r}", link.rotation, link.translation)
    for path, leaf in jax.tree_util.tree_flatten_with_path(link.joint)[0]:
        if not is_concrete(leaf):
            continue
        name = jax.tree_util.keystr(path)
        if not _is_finite(leaf):
            raise ModelError(f"joint {link.joint_name!r}: parameter {name} is not finite")
        if "axis" in name and np.linalg.norm(np.asarray(leaf, float)) < 1e-12:
            raise ModelError(f"joint {link.joint_name!r} has a zero axis ({name}); give a direction of non-zero length")
    _check_properties(link, strict)


#: properties that may be infinite
_UNBOUNDED = ("lower", "upper", "velocity", "effort")


def _check_properties(link: LinkEntry, strict: bool):
    where = f"joint {link.joint_name!r}"
    known = {key: np.asarray(value, float) for key, value in link.properties.items() if is_concrete(value)}
    for key, value in known.items():
        if np.isnan(value).any():
            raise ModelError(f"{where}: {key} is not a number")
        if key not in _UNBOUNDED:
            check_finite(f"{where}: {key}", value)
        if strict and key in ("armature", "friction_velocity") and (value < 0).any():
            raise ModelError(f"{where}: {key} is {value}, and cannot be negative")
    if strict and {"lower", "upper"} <= known.keys():
        shapes = known["lower"].shape, known["upper"].shape
        if () in shapes or shapes[0] == shapes[1]:  # `build` refuses other shapes
            if (known["lower"] > known["upper"]).any():
                raise ModelError(f"{where}: its lower limit {known['lower']} is above the upper one, {known['upper']}")


def check_finite(what: str, value):
    """Raises `ModelError` if concrete numbers are not finite."""
    if is_concrete(value) and not _is_finite(value):
        raise ModelError(f"{what} is not finite: {np.asarray(value)}")


def _check_pose(where: str, rotation, translation):
    for what, value in (("translation", translation), ("rotation", rotation)):
        if is_concrete(value) and not _is_finite(value):
            raise ModelError(f"{where} has a {what} that is not finite: {np.asarray(value)}")
    if is_concrete(rotation) and np.linalg.norm(np.asarray(rotation, float), axis=-1).min() < 1e-12:
        raise ModelError(f"{where} has a quaternion of length zero")


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
        if isinstance(closure, Closure):
            _check_pose(f"closure {closure.name!r}", closure.rotations, closure.translations)
            check_finite(f"closure {closure.name!r}: length", closure.length)
        else:
            check_finite(f"coupling {closure.name!r}: coefficients", closure.coefficients)
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
        check_finite(f"actuator {actuator.name!r}: gear", actuator.gear)
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
    """Raises `ModelError` if a frame shares its name with another frame or a link, or has an invalid pose."""
    check_unique([f[0] for f in frames], "frame")
    names = {link.name for link in links}
    for name, _, rotation, translation in frames:
        if name in names:
            raise ModelError(
                f"frame {name!r} has the name of a link; every link is a frame as well, so choose another name"
            )
        _check_pose(f"frame {name!r}", rotation, translation)


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
