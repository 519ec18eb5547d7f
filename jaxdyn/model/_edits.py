"""Edits: functions from models to a new model, whose leaves are functions of the old ones.

A model is taken apart into the entries of a `ModelBuilder`, these are changed, and a model is built again.
What changes is decided by structure alone, so that edits work on traced leaves, inside `jit` and `grad`
as well. A leaf that an edit does not concern is carried over as it is.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import jax.numpy as jnp
from jax import core

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._types import Array, Float
from jaxdyn.joints import AbstractJoint, Fixed
from jaxdyn.model._builder import ModelBuilder, _Link, placement
from jaxdyn.model._checks import WEIGHTLESS
from jaxdyn.model._descriptions import Closure, Coupling
from jaxdyn.model._model import Model
from jaxdyn.spatial import (
    Inertia,
    matrix_to_quaternion,
    quaternion_multiply,
    quaternion_to_matrix,
)


def to_builder(model: Model) -> ModelBuilder:
    """The entries from which `build` makes this model again."""
    builder = ModelBuilder(gravity=model.gravity, name=model.name, strict=False)
    builder._closures, builder._actuators = list(model.closures), list(model.actuators)
    builder._shapes = list(model.shapes)
    builder._notes = [note for note in model.report if note.what != WEIGHTLESS]  # said anew where it is true
    t = model.topology
    followers = {a for a, _ in t.mimics}
    for i, name in enumerate(t.link_names):
        view = model.joint(t.joint_names[i])
        link = model.link(name)
        builder.add_link(
            name,
            link.parent,
            view.joint,
            Inertia(link.mass, link.com, link.inertia),
            joint_name=view.name,
            translation=model.placements.translation[i],
            quaternion=model.placements.rotation[i],
            **({} if i in followers or t.groups[i] < 0 else _properties(model, view.q, view.v)),
        )
    for k, name in enumerate(t.frame_names):
        builder.add_frame(
            name,
            t.link_names[t.frame_links[k]],
            translation=model.frames.translation[k],
            quaternion=model.frames.rotation[k],
        )
    for k, (joint, source) in enumerate(t.mimics):
        builder.add_mimic(
            t.joint_names[joint],
            t.joint_names[source],
            ratio=model.mimic.ratio[k],
            offset=model.mimic.offset[k],
        )
    return builder


def lock_joints(model: Model, at: Mapping[str, Any]) -> Model:
    """The model with the joints named in `at` fixed, each at its value there or, for None, at its neutral.

    A value is the joint's configuration, `(nq,)` or a number where nq is 1. The placement of the link
    becomes `T_placement @ T_joint(q)`. Joints that mimic a locked one are locked where it puts them, and a coupling
    to a locked joint holds the other one there. Actuators of locked joints are left out, with a note.
    """
    names = model.joint_names
    mimics = {names[a]: (names[b], k) for k, (a, b) in enumerate(model.topology.mimics)}
    configuration: dict[str, Any] = {}
    for name, value in at.items():
        view = model.joint(name)
        if name in mimics:
            raise ModelError(f"joint {name!r} mimics {mimics[name][0]!r} and cannot be locked without it")
        q: Any = view.joint.neutral(model.dtype) if value is None else jnp.asarray(value, model.dtype)
        if q.shape == () and view.joint.nq == 1:
            q = q[None]
        configuration[name] = check_shape(f"the configuration of joint {name!r}", q, (view.joint.nq,))
    for name, (source, k) in mimics.items():
        if source in configuration:
            configuration[name] = model.mimic.ratio[k] * configuration[source] + model.mimic.offset[k]
    builder = to_builder(model)
    builder._links = [
        _locked(link, configuration[link.joint_name]) if link.joint_name in configuration else link
        for link in builder._links
    ]
    builder._mimics = [m for m in builder._mimics if m[0] not in configuration]
    _keep(builder, "_actuators", lambda a: a.joint not in configuration, "drives a joint that was locked: left out")
    builder._closures = [_with_locked(c, configuration) for c in builder._closures]
    still = lambda c: not (isinstance(c, Coupling) and c.joint in configuration)
    _keep(builder, "_closures", still, "ties joints that were locked: left out")
    return builder.build(model.dtype)


def _with_locked(closure: Closure | Coupling, configuration: Mapping[str, Any]) -> Closure | Coupling:
    """A coupling whose source is locked holds its joint where the source puts it."""
    if not isinstance(closure, Coupling) or closure.source is None:
        return closure
    if closure.source in configuration:
        value = jnp.polyval(closure.coefficients[::-1], configuration[closure.source])
        return Coupling(closure.name, closure.joint, None, value)
    if closure.joint in configuration:
        raise ModelError(
            f"coupling {closure.name!r} ties {closure.joint!r} to {closure.source!r}, which would be held by it; "
            "lock that one, or both"
        )
    return closure


def reduce_joints(model: Model, keep: Iterable[str], q: Float[Array, " nq"] | None = None) -> Model:
    """The model in which only the joints in `keep` move; the others are locked at q (default neutral).

    A joint that mimics one of `keep`, or that a coupling ties to one, goes on moving with it. One that a coupling
    ties to a joint that is locked at its neutral is locked where that puts it.
    """
    keep = set(keep)
    for name in keep:
        model.joint(name)  # says which names there are
    t = model.topology
    drivers = dict(t.mimics)
    q = None if q is None else check_shape("q", q, (model.nq,))
    tied = {c.joint: c for c in model.closures if isinstance(c, Coupling) and c.source is not None}
    at: dict[str, Any] = {}
    for i, name in enumerate(t.joint_names):
        if i in drivers:
            if name in keep and t.joint_names[drivers[i]] not in keep:
                raise ModelError(f"joint {name!r} mimics {t.joint_names[drivers[i]]!r}: keep that one too")
        elif t.groups[i] >= 0 and not _moves_with(name, keep, tied):
            at[name] = _coupled(name, model, tied) if q is None else q[model.joint(name).q]
    return lock_joints(model, at)


def _moves_with(name: str | None, keep: set[str], tied: Mapping[str, Coupling]) -> bool:
    """Whether a joint is kept, or tied to one that is."""
    seen = set()
    while name is not None and name not in keep | seen and name in tied:
        seen.add(name)
        name = tied[name].source
    return name in keep


def _coupled(name: str, model: Model, tied: Mapping[str, Coupling], seen: tuple[str, ...] = ()):
    """The neutral of a joint, or where its coupling puts it when all others are at theirs."""
    joint = model.joint(name).joint
    if name not in tied or name in seen:
        return joint.neutral(model.dtype)
    source = _coupled(str(tied[name].source), model, tied, (*seen, name))
    return jnp.polyval(tied[name].coefficients[::-1], source)


def _keep(builder: ModelBuilder, entries: str, stays, why: str):
    """Leaves out the descriptions for which `stays` is false, each with a note."""
    kind = {"_actuators": "actuator", "_closures": "closure", "_shapes": "shape"}[entries]
    for x in getattr(builder, entries):
        if not stays(x):
            builder.add_note(f"{kind} {x.name}", why)
    setattr(builder, entries, [x for x in getattr(builder, entries) if stays(x)])


def attach(
    model: Model,
    other: Model,
    link: str,
    *,
    translation=(0.0, 0.0, 0.0),
    rotation=None,
    quaternion=None,
    rpy=None,
    prefix: str = "",
) -> Model:
    """The model with the world of `other` put on `link` (or on "world") at the given pose.

    `prefix` goes before every name of `other`. Gravity and precision are those of `model`.
    """
    if link != "world":
        model.link_index(link)
    pose = _pose(placement(translation, rotation=rotation, quaternion=quaternion, rpy=rpy), model.dtype)
    builder, added = to_builder(model), to_builder(other.astype(model.dtype))
    for entry in added._links:
        root = entry.parent == "world"
        quat, at = _compose(pose, (entry.rotation, entry.translation)) if root else _placed(entry)
        entry = dataclasses.replace(
            entry,
            name=prefix + entry.name,
            joint_name=prefix + entry.joint_name,
            parent=link if root else prefix + entry.parent,
            rotation=quat,
            translation=at,
        )
        builder._links.append(entry)
    builder._frames += [(prefix + name, prefix + on, *rest) for name, on, *rest in added._frames]
    builder._mimics += [(prefix + a, prefix + b, *rest) for a, b, *rest in added._mimics]
    _add_descriptions(builder, added, prefix, link, pose)
    return builder.build(model.dtype)


def merge(model: Model, other: Model, *, prefix: str = "", **placed) -> Model:
    """Both models on one world, `other` at the pose `placed` (as in `attach`) and with `prefix`."""
    return attach(model, other, "world", prefix=prefix, **placed)


def remove_link(model: Model, link: str) -> Model:
    """The model without `link` and without everything that it carries."""
    gone = _carried(model, link)
    return _only(model, [i for i in range(model.num_links) if i not in gone]).build(model.dtype)


def subtree(model: Model, link: str, joint: AbstractJoint | None = None) -> Model:
    """`link` and everything that it carries, on the world by `joint`, or by its own joint where it is."""
    builder = _only(model, _carried(model, link))
    if model.link(link).parent != "world":  # whose frame is then where that of the parent was
        apart = lambda c: isinstance(c, Coupling) or "world" not in c.links
        _keep(builder, "_closures", apart, "ties to the world, which is elsewhere for a subtree: left out")
        _keep(builder, "_shapes", lambda s: s.link != "world", "is on the world, which is elsewhere: left out")
    root = dataclasses.replace(builder._links[0], parent="world")
    builder._links[0] = root if joint is None else dataclasses.replace(root, joint=joint, extras={})
    return builder.build(model.dtype)


# --- pieces --------------------------------------------------------------------------------------


def _properties(model: Model, q: slice, v: slice) -> dict[str, Any]:
    p, limits = model.properties, model.limits
    return {
        "armature": p.armature[v],
        "damping": p.damping[v],
        "friction": p.friction[v],
        "friction_velocity": p.friction_velocity[v],
        "stiffness": p.stiffness[v],
        "rest": p.rest[q],
        "lower": limits.lower[q],
        "upper": limits.upper[q],
        "velocity": limits.velocity[v],
        "effort": limits.effort[v],
    }


def _pose(pose, dtype):
    quaternion, translation = pose
    return jnp.asarray(quaternion, dtype), jnp.asarray(translation, dtype)


def _placed(link: _Link):
    return link.rotation, link.translation


def _compose(a, b):
    """`T_a @ T_b` of poses `(quaternion, translation)`."""
    return quaternion_multiply(a[0], b[0]), a[1] + quaternion_to_matrix(a[0]) @ b[1]


def _locked(link: _Link, q) -> _Link:
    pose: Any = link.joint.transform(q)
    quat, at = _compose(_placed(link), (matrix_to_quaternion(pose[0]), pose[1]))
    return dataclasses.replace(link, joint=Fixed(), rotation=quat, translation=at, extras={})


def _carried(model: Model, link: str) -> list[int]:
    """`link` and its descendants, which depth-first numbering makes contiguous."""
    first = model.link_index(link)
    out = [first]
    for i in range(first + 1, model.num_links):
        if model.topology.parents[i] not in out:
            break
        out.append(i)
    return out


def _add_descriptions(builder: ModelBuilder, added: ModelBuilder, prefix: str, link: str, pose):
    """Closures, actuators, shapes and notes of `added`, whose world is now `link` at `pose`."""
    for closure in added._closures:
        if isinstance(closure, Coupling):
            source = None if closure.source is None else prefix + closure.source
            moved = Coupling(prefix + closure.name, prefix + closure.joint, source, closure.coefficients)
        else:
            ends = zip(closure.links, closure.rotations, closure.translations, strict=True)
            names, poses = [], []
            for name, quat, at in ends:
                names.append(link if name == "world" else prefix + name)
                poses.append(_compose(pose, (quat, at)) if name == "world" else (quat, at))
            quats, ats = (jnp.stack(x) for x in zip(*poses, strict=True))
            moved = Closure(prefix + closure.name, closure.kind, (names[0], names[1]), quats, ats, closure.length)
        builder._closures.append(moved)
    builder._actuators += [
        dataclasses.replace(a, name=prefix + a.name, joint=prefix + a.joint) for a in added._actuators
    ]
    for shape in added._shapes:
        if shape.link == "world":
            if not _concrete(pose):
                raise ModelError(f"shape {shape.name!r} of the attached world cannot be placed at a traced pose")
            moved = _compose(pose, (jnp.asarray(shape.quaternion), jnp.asarray(shape.translation)))
            quat, at = (tuple(float(x) for x in part) for part in moved)
            shape = dataclasses.replace(shape, link=link, quaternion=quat, translation=at)
        else:
            shape = dataclasses.replace(shape, link=prefix + shape.link)
        builder._shapes.append(dataclasses.replace(shape, name=prefix + shape.name))
    builder._notes += [dataclasses.replace(n, where=prefix + n.where) for n in added._notes]


def _concrete(tree) -> bool:
    return not any(isinstance(x, core.Tracer) for x in tree)


def _only(model: Model, keep: Iterable[int]) -> ModelBuilder:
    builder = to_builder(model)
    builder._links = [builder._links[i] for i in keep]
    links = {link.name for link in builder._links}
    joints = {link.joint_name for link in builder._links}
    builder._frames = [f for f in builder._frames if f[1] in links]
    builder._mimics = [m for m in builder._mimics if m[0] in joints]
    _keep(builder, "_actuators", lambda a: a.joint in joints, "drives a joint that was removed: left out")
    whole = lambda c: _stays(c, links | {"world"}, joints | {None})
    _keep(builder, "_closures", whole, "ties to what was removed: left out")
    builder._shapes = [s for s in builder._shapes if s.link in links | {"world"}]
    for joint, source, *_ in builder._mimics:
        if source not in joints:
            raise ModelError(f"joint {joint!r} mimics {source!r}, which is on a removed link; lock it first")
    return builder


def _stays(closure: Closure | Coupling, links, joints) -> bool:
    if isinstance(closure, Coupling):
        return {closure.joint, closure.source} <= joints
    return set(closure.links) <= links
