"""What of a model a URDF cannot hold."""

from collections.abc import Iterator

import jax
import numpy as np
from jax import core

from jaxdyn._errors import ModelError
from jaxdyn.joints import Free, Planar
from jaxdyn.model import Model, ModelBuilder

KINDS = ("armature", "stiffness", "friction_velocity", "gravity", "planar_and_free", "closures", "actuators", "shapes")
_SHAPES = ("box", "sphere", "cylinder", "capsule", "mesh")


def check_concrete(model: Model):
    """One model with known numbers, or `ModelError`."""
    if any(isinstance(x, core.Tracer) for x in jax.tree.leaves(model)):
        raise ModelError(
            "a model is written from known numbers; this one is being traced: write it outside jit and grad"
        )
    if model.links.mass.ndim != 1:
        raise ModelError(
            f"a model is written one at a time; this is a batch of shape {model.links.mass.shape[:-1]}: "
            "write jax.tree.map(lambda x: x[0], model)"
        )
    parts = {"links": model.links, "placements": model.placements, "joints": model.joints, "frames": model.frames}
    for path, leaf in jax.tree_util.tree_flatten_with_path(parts)[0]:
        if not np.isfinite(np.asarray(leaf)).all():
            name = f"{path[0].key}{jax.tree_util.keystr(path[1:])}"
            raise ModelError(f"the model's {name} has numbers that are not finite; correct them")


def check_expressible(model: Model, without: set[str]):
    """Raises `ModelError` with all that would be lost and is not in `without`."""
    unknown = sorted(without - set(KINDS))
    if unknown:
        raise ModelError(f"without names {', '.join(unknown)}; what can be left out is {', '.join(KINDS)}")
    lost = {kind: what for kind, what in _lost(model) if kind not in without}
    if lost:
        listed = "; ".join(f"{what} ({kind})" for kind, what in lost.items())
        raise ModelError(
            f"URDF has no place for {listed}. Keep the model with jaxdyn.save, or leave this out with "
            f"without={tuple(lost)!r}"
        )


def _lost(model: Model) -> Iterator[tuple[str, str]]:
    """`(kind, what)` of everything that URDF has no place for."""
    p = model.properties
    rubbed = np.asarray(p.friction) != 0
    default = np.asarray(0.01, p.friction_velocity.dtype)
    if np.any(np.asarray(p.armature)):
        yield "armature", "the rotor inertia of joints"
    if np.any(np.asarray(p.stiffness)):
        yield "stiffness", "springs"
    if np.any(np.asarray(p.friction_velocity)[rubbed] != default):
        yield "friction_velocity", "the velocity over which Coulomb friction changes sign"
    if np.any(np.asarray(model.gravity) != np.asarray(ModelBuilder.gravity, model.gravity.dtype)):
        yield "gravity", f"a gravity of {np.asarray(model.gravity).tolist()} m/s^2"
    if model.closures:
        yield "closures", "closures and couplings"
    loaded = [name for name in model.joint_names if _is_loaded(model, name)]
    if loaded:
        yield "planar_and_free", f"limits and friction of {', '.join(map(repr, loaded))}"
    drives = [x.name for x in model.actuators if not _is_simple(model, x)]
    if drives:
        yield (
            "actuators",
            f"the actuators {', '.join(map(repr, drives))}, with ranges or on joints that share coordinates",
        )
    shapes = sorted({x.kind for x in model.shapes} - set(_SHAPES))
    if shapes:
        yield "shapes", f"shapes of the kinds {', '.join(shapes)}"


def _is_loaded(model: Model, name: str) -> bool:
    view, p, limits = model.joint(name), model.properties, model.limits
    if not isinstance(view.joint, Planar | Free):
        return False
    ranges = (limits.lower[view.q], limits.upper[view.q], limits.velocity[view.v], limits.effort[view.v])
    return bool(np.any(p.damping[view.v]) or np.any(p.friction[view.v]) or any(np.isfinite(x).any() for x in ranges))


def _is_simple(model: Model, drive) -> bool:
    followers = {a for a, _ in model.topology.mimics}
    view = model.joint(drive.joint)
    return view.joint.nv == 1 and view.index not in followers and not np.isfinite(drive.range).any()
