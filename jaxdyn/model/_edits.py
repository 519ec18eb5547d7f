"""Edits: functions from models to a new model, whose leaves are functions of the old ones.

A model is taken apart into the entries of a `ModelBuilder`, these are changed, and a model is built again.
What changes is decided by structure alone, so that edits work on traced leaves, inside `jit` and `grad`
as well. A leaf that an edit does not concern is carried over as it is.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import jax.numpy as jnp
from jax import core

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._types import Array, Float
from jaxdyn.joints import AbstractJoint, Continuous, Cylindrical, Fixed, Free, Helical, Prismatic, Revolute
from jaxdyn.model._builder import ModelBuilder, _Link, placement
from jaxdyn.model._descriptions import Closure, Coupling
from jaxdyn.model._model import Model
from jaxdyn.spatial import (
    Inertia,
    matrix_to_quaternion,
    quaternion_conjugate,
    quaternion_multiply,
    quaternion_normalize,
    quaternion_to_matrix,
)

_REVERSIBLE = (Revolute, Continuous, Prismatic, Helical, Cylindrical)


def to_builder(model: Model) -> ModelBuilder:
    """The entries from which `build` makes this model again."""
    builder = ModelBuilder(gravity=model.gravity, name=model.name, strict=False)
    builder._closures, builder._actuators = list(model.closures), list(model.actuators)
    builder._shapes, builder._notes = list(model.shapes), list(model.report)
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
    becomes `T_placement @ T_joint(q)`. Joints that mimic a locked one are locked where it puts them.
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
    builder._actuators = [a for a in builder._actuators if a.joint not in configuration]
    for closure in builder._closures:
        if isinstance(closure, Coupling) and {closure.joint, closure.source} & set(configuration):
            raise ModelError(
                f"coupling {closure.name!r} ties {closure.joint!r} to {closure.source!r}; neither can be locked"
            )
    return builder.build(model.dtype)


def reduce_joints(model: Model, keep: Iterable[str], q: Float[Array, " nq"] | None = None) -> Model:
    """The model in which only the joints in `keep` move; the others are locked at q (default neutral).

    A joint that mimics one of `keep` goes on moving with it.
    """
    keep = set(keep)
    for name in keep:
        model.joint(name)  # says which names there are
    t = model.topology
    drivers = dict(t.mimics)
    q = None if q is None else check_shape("q", q, (model.nq,))
    at = {}
    for i, name in enumerate(t.joint_names):
        if i in drivers:
            if name in keep and t.joint_names[drivers[i]] not in keep:
                raise ModelError(f"joint {name!r} mimics {t.joint_names[drivers[i]]!r}: keep that one too")
        elif t.groups[i] >= 0 and name not in keep:
            at[name] = None if q is None else q[model.joint(name).q]
    return lock_joints(model, at)


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
    root = dataclasses.replace(builder._links[0], parent="world")
    builder._links[0] = root if joint is None else dataclasses.replace(root, joint=joint, extras={})
    return builder.build(model.dtype)


def change_base(
    model: Model,
    link: str,
    joint: AbstractJoint | None = None,
    *,
    translation=(0.0, 0.0, 0.0),
    rotation=None,
    quaternion=None,
    rpy=None,
) -> Model:
    """The model held at another link: `joint` (fixed by default) at the given pose carries `link`, which
    carries the rest.

    The joints between the old base and `link` are turned around. Their names, coordinates, signs,
    properties, limits and mimics stay, and so does every link frame, with the inertia, frames and other
    children in it. A joint moves its child about the child's origin; turned around, that is the frame
    where the joint sits on its former parent. For each such joint that moves, a massless link
    `<parent>_carrier` with that frame is added, to which `<parent>` is fixed by the joint
    `<parent>_mount` (with a further underscore where such a name is taken).

    Joints that can be turned around have axes that stand still in both links: revolute, continuous,
    prismatic, helical, cylindrical and fixed ones. What held the old base must be a fixed or a free
    joint; its name goes to the joint that holds the new one. Coordinates are numbered depth first, as
    always, so their order changes.
    """
    path = _path_to_root(model, link)
    t = model.topology
    builder = to_builder(model)
    entries = builder._links
    root = entries[path[-1]]
    if not isinstance(root.joint, Fixed | Free):
        raise ModelError(
            f"joint {root.joint_name!r} ties the old base to the world and moves by a "
            f"{type(root.joint).__name__} joint, which would be lost; add a base link below it"
        )
    turned: dict[int, list[_Link]] = {}
    for child, parent in itertools.pairwise(path):
        turned[parent] = _reversed(entries[child], entries[parent], model)
    quat, at = _pose(placement(translation, rotation=rotation, quaternion=quaternion, rpy=rpy), model.dtype)
    base = dataclasses.replace(
        entries[path[0]],
        parent="world",
        joint=Fixed() if joint is None else joint,
        joint_name=root.joint_name,
        rotation=quat,
        translation=at,
        extras={},
    )
    turned[path[0]] = [base]
    builder._links = [new for i in range(len(t.parents)) for new in turned.get(i, [entries[i]])]
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


def _inverse(a):
    return quaternion_conjugate(quaternion_normalize(a[0])), -(quaternion_to_matrix(a[0]).T @ a[1])


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
    builder._actuators = [a for a in builder._actuators if a.joint in joints]
    builder._closures = [c for c in builder._closures if _stays(c, links | {"world"}, joints | {None})]
    builder._shapes = [s for s in builder._shapes if s.link in links]
    for joint, source, *_ in builder._mimics:
        if source not in joints:
            raise ModelError(f"joint {joint!r} mimics {source!r}, which is on a removed link; lock it first")
    return builder


def _stays(closure: Closure | Coupling, links, joints) -> bool:
    if isinstance(closure, Coupling):
        return {closure.joint, closure.source} <= joints
    return set(closure.links) <= links


def _path_to_root(model: Model, link: str) -> list[int]:
    path = [model.link_index(link)]
    while model.topology.parents[path[-1]] >= 0:
        path.append(model.topology.parents[path[-1]])
    return path


def _new_name(name: str, taken: tuple[str, ...]) -> str:
    return _new_name(f"{name}_", taken) if name in taken else name


def _reversed(child: _Link, parent: _Link, model: Model) -> list[_Link]:
    """The entries by which `child` carries its former parent, `T_joint^-1 @ T_placement^-1`."""
    quat, at = _inverse(_placed(child))
    if child.joint.nv == 0:
        return [
            dataclasses.replace(
                parent,
                parent=child.name,
                joint=child.joint,
                joint_name=child.joint_name,
                rotation=quat,
                translation=at,
                extras={},
            )
        ]
    if not isinstance(child.joint, _REVERSIBLE):
        names = ", ".join(kind.__name__ for kind in _REVERSIBLE)
        raise ModelError(
            f"joint {child.joint_name!r} is a {type(child.joint).__name__} joint, which cannot be turned "
            f"around; those that can are Fixed, {names}"
        )
    carrier = dataclasses.replace(
        child,
        name=_new_name(f"{parent.name}_carrier", model.link_names),
        parent=child.name,
        joint=dataclasses.replace(child.joint, axis=-child.joint.axis),
        inertia=None,
        rotation=jnp.zeros_like(quat).at[0].set(1),
        translation=jnp.zeros_like(at),
    )
    held = dataclasses.replace(
        parent,
        parent=carrier.name,
        joint=Fixed(),
        joint_name=_new_name(f"{parent.name}_mount", model.joint_names),
        rotation=quat,
        translation=at,
        extras={},
    )
    return [carrier, held]
