"""Features of a model that URDF cannot express."""

from collections.abc import Iterator

import jax
import numpy as np
from jax import core

from jaxdyn._errors import ModelError
from jaxdyn.joints import Free, Planar
from jaxdyn.model import Actuator, Model, ModelBuilder

FEATURES = (
    "armature",
    "stiffness",
    "friction_velocity",
    "gravity",
    "planar_and_free",
    "closures",
    "actuators",
    "shapes",
)
_SHAPES = ("box", "sphere", "cylinder", "capsule", "mesh")


def check_concrete(model: Model):
    """Raises `ModelError` unless the model is a single one with concrete, finite numbers."""
    if any(isinstance(x, core.Tracer) for x in jax.tree.leaves(model)):
        raise ModelError("a model with traced numbers cannot be written; call write_urdf outside jit, grad and vmap")
    if model.links.mass.ndim != 1:
        raise ModelError(
            f"the model is a batch of shape {model.links.mass.shape[:-1]}; write a single one: "
            "jax.tree.map(lambda x: x[0], model)"
        )
    parts = {"links": model.links, "placements": model.placements, "joints": model.joints, "frames": model.frames}
    for path, leaf in jax.tree_util.tree_flatten_with_path(parts)[0]:
        if not np.isfinite(np.asarray(leaf)).all():
            name = f"{path[0].key}{jax.tree_util.keystr(path[1:])}"
            raise ModelError(f"the model's {name} has numbers that are not finite; correct them")


def check_supported(model: Model, without: set[str]):
    """Raises `ModelError` that names every unsupported feature that is not in `without`."""
    unknown = sorted(without - set(FEATURES))
    if unknown:
        raise ModelError(f"without contains {', '.join(unknown)}; expected some of {', '.join(FEATURES)}")
    lost = {name: text for name, text in unsupported_features(model) if name not in without}
    if lost:
        listed = "; ".join(f"{text} ({name})" for name, text in lost.items())
        raise ModelError(
            f"URDF cannot express {listed}. Keep the model with jaxdyn.save, or omit this with without={tuple(lost)!r}"
        )


def unsupported_features(model: Model) -> Iterator[tuple[str, str]]:
    """Name and description of every feature of the model that URDF cannot express."""
    p = model.properties
    has_friction = np.asarray(p.friction) != 0
    default = np.asarray(0.01, p.friction_velocity.dtype)
    if np.any(np.asarray(p.armature)):
        yield "armature", "the rotor inertia of joints"
    if np.any(np.asarray(p.stiffness)):
        yield "stiffness", "springs"
    if np.any(np.asarray(p.friction_velocity)[has_friction] != default):
        yield "friction_velocity", "the smoothing velocity of Coulomb friction"
    if np.any(np.asarray(model.gravity) != np.asarray(ModelBuilder.gravity, model.gravity.dtype)):
        yield "gravity", f"a gravity of {np.asarray(model.gravity).tolist()} m/s^2"
    if model.closures:
        yield "closures", "closures and couplings"
    restricted = [name for name in model.joint_names if has_limits_or_friction(model, name)]
    if restricted:
        yield "planar_and_free", f"limits and friction of {', '.join(map(repr, restricted))}"
    drives = [x.name for x in model.actuators if not _is_simple(model, x)]
    if drives:
        yield (
            "actuators",
            f"the actuators {', '.join(map(repr, drives))}, which have ranges or drive joints with several coordinates",
        )
    shapes = sorted({x.kind for x in model.shapes} - set(_SHAPES))
    if shapes:
        yield "shapes", f"shapes of the kinds {', '.join(shapes)}"


def has_limits_or_friction(model: Model, name: str) -> bool:
    """True if a planar or free joint has limits, damping or friction."""
    view, p, limits = model.joint(name), model.properties, model.limits
    if not isinstance(view.joint, Planar | Free):
        return False
    ranges = (limits.lower[view.q], limits.upper[view.q], limits.velocity[view.v], limits.effort[view.v])
    return bool(np.any(p.damping[view.v]) or np.any(p.friction[view.v]) or any(np.isfinite(x).any() for x in ranges))


def _is_simple(model: Model, drive: Actuator) -> bool:
    """True for an actuator without a range on an independent joint with one degree of freedom."""
    followers = {a for a, _ in model.topology.mimics}
    view = model.joint(drive.joint)
    return view.joint.nv == 1 and view.index not in followers and not np.isfinite(drive.range).any()
