"""What a model may be made of: known numbers must make sense, and names must fit. Traced numbers are the caller's."""

from typing import Any

import jax
import numpy as np
from jax import core

from jaxdyn._errors import ModelError
from jaxdyn.model._descriptions import Closure, Note
from jaxdyn.spatial import inertia_defect

#: what the report says of a joint without inertia
WEIGHTLESS = "moves nothing that has mass: the mass matrix is singular"


def unique(names, what: str):
    seen = set()
    for name in names:
        if name in seen:
            raise ModelError(f"two {what}s are called {name!r}; names of {what}s must differ")
        seen.add(name)


def is_concrete(x) -> bool:
    return not any(isinstance(leaf, core.Tracer) for leaf in jax.tree.leaves(x))


def _finite(x) -> bool:
    return bool(np.isfinite(np.asarray(x, float)).all())


def check_link(link: Any, strict: bool):
    """Numbers that are known now must make sense; traced ones are the caller's."""
    body = link.inertia
    if strict and body is not None and is_concrete(body):
        defect = inertia_defect(body.mass, body.inertia)
        if defect:
            raise ModelError(f"link {link.name!r} {defect}")
        if not _finite(body.com):
            raise ModelError(f"link {link.name!r} has a centre of mass that is not finite")
    _check_pose(f"joint {link.joint_name!r}", link.rotation, link.translation)
    for path, leaf in jax.tree_util.tree_flatten_with_path(link.joint)[0]:
        if not is_concrete(leaf):
            continue
        name = jax.tree_util.keystr(path)
        if not _finite(leaf):
            raise ModelError(f"joint {link.joint_name!r}: parameter {name} is not finite")
        if "axis" in name and np.linalg.norm(np.asarray(leaf, float)) < 1e-12:
            raise ModelError(f"joint {link.joint_name!r} has a zero axis ({name}); give it a direction")
    _check_properties(link, strict)


#: properties that may be infinite
_UNBOUNDED = ("lower", "upper", "velocity", "effort")


def _check_properties(link: Any, strict: bool):
    where = f"joint {link.joint_name!r}"
    known = {key: np.asarray(value, float) for key, value in link.extras.items() if is_concrete(value)}
    for key, value in known.items():
        if np.isnan(value).any():
            raise ModelError(f"{where}: {key} is not a number")
        if key not in _UNBOUNDED:
            check_finite(f"{where}: {key}", value)
        if strict and key in ("armature", "friction_velocity") and (value < 0).any():
            raise ModelError(f"{where}: {key} is {value}, and cannot be negative")
    if strict and {"lower", "upper"} <= known.keys():
        shapes = known["lower"].shape, known["upper"].shape
        if () in shapes or shapes[0] == shapes[1]:  # others are refused with the shape that is wanted
            if (known["lower"] > known["upper"]).any():
                raise ModelError(f"{where}: its lower limit {known['lower']} is above the upper one, {known['upper']}")


def check_finite(what: str, value):
    """Raises where known numbers are not finite."""
    if is_concrete(value) and not _finite(value):
        raise ModelError(f"{what} is not finite: {np.asarray(value)}")


def _check_pose(where: str, rotation, translation):
    for what, value in (("translation", translation), ("rotation", rotation)):
        if is_concrete(value) and not _finite(value):
            raise ModelError(f"{where} has a {what} that is not finite: {np.asarray(value)}")
    if is_concrete(rotation) and np.linalg.norm(np.asarray(rotation, float), axis=-1).min() < 1e-12:
        raise ModelError(f"{where} has a quaternion of length zero")


def check_descriptions(builder: Any, links: list[Any]):
    """Descriptions name links and joints of the model, and their sizes fit."""
    bodies = {"world"} | {link.name for link in links}
    joints = {link.joint_name: link.joint for link in links}
    for closure in builder._closures:
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
    for drive in builder._actuators:
        if drive.joint not in joints:
            raise ModelError(f"actuator {drive.name!r} drives {drive.joint!r}, which is not a joint of this model")
        if drive.gear.shape != (joints[drive.joint].nv,):
            raise ModelError(
                f"actuator {drive.name!r}: gear has shape {drive.gear.shape}, but joint {drive.joint!r} has "
                f"{joints[drive.joint].nv} velocity coordinates"
            )
        check_finite(f"actuator {drive.name!r}: gear", drive.gear)
        if is_concrete(drive.range) and not np.less_equal(*np.asarray(drive.range)):
            raise ModelError(f"actuator {drive.name!r}: its range {np.asarray(drive.range)} has no control in it")
    for shape in builder._shapes:
        if shape.link not in bodies:
            raise ModelError(f"shape {shape.name!r} is on {shape.link!r}, which is not a link of this model")
    for what, entries in (("closure", builder._closures), ("actuator", builder._actuators)):
        unique([x.name for x in entries], what)


def check_frames(frames: list[tuple[str, str, Any, Any]], links: list[Any]):
    """Frames have names of their own, among links too, and poses."""
    unique([f[0] for f in frames], "frame")
    names = {link.name for link in links}
    for name, _, rotation, translation in frames:
        if name in names:
            raise ModelError(
                f"frame {name!r} has the name of a link; a link is a frame already, so give it another name"
            )
        _check_pose(f"frame {name!r}", rotation, translation)


def weightless_joints(links: list[Any], mimics: list[Any], said: list[Note]) -> list[Note]:
    """Notes on joints whose coordinate moves nothing with mass and no armature, as far as is known.

    Parents come first in `links`; what has been `said` is not repeated.
    """
    heavy: set[str] = set()
    for link in reversed(links):
        body = link.inertia
        if link.name in heavy or (body is not None and _any((body.mass, body.inertia))):
            heavy |= {link.name, link.parent}
    rotor = lambda link: _any(link.extras.get("armature", 0.0), every=True)
    light = [x.joint_name for x in links if x.joint.nv and x.name not in heavy and not rotor(x)]
    driven = {source for follower, source, *_ in mimics if follower not in light}
    still = driven | {follower for follower, *_ in mimics}
    notes = [Note(f"joint {x}", WEIGHTLESS) for x in light if x not in still]
    return [note for note in notes if note not in said]


def _any(tree, *, every: bool = False) -> bool:
    """Whether numbers are other than zero, which those are taken to be that are not known."""
    if not is_concrete(tree):
        return True
    parts = [np.asarray(x, float) for x in jax.tree.leaves(tree)]
    return all(x.all() for x in parts) if every else any(x.any() for x in parts)
