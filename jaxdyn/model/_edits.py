"""Edits: functions that return a new model, whose leaves are functions of the leaves of the old one.

An edit converts the model to a `ModelBuilder`, changes the entries of the builder, and builds a model again. Edits
depend on structure only, so that they work on traced leaves, inside `jit` and `grad` as well. Unaffected leaves are
unchanged.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import jax.numpy as jnp

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._numerics import is_concrete
from jaxdyn._types import Array, Float
from jaxdyn.joints import AbstractJoint, Fixed
from jaxdyn.model.assembly import MASSLESS, LinkEntry, ModelBuilder, placement
from jaxdyn.model.structure import Closure, Coupling, Model
from jaxdyn.spatial import (
    Inertia,
    matrix_to_quaternion,
    quaternion_multiply,
    quaternion_to_matrix,
)


def to_builder(model: Model) -> ModelBuilder:
    """Returns a `ModelBuilder` whose `build` gives this model again."""
    builder = ModelBuilder(gravity=model.gravity, name=model.name, strict=False)
    builder._closures, builder._actuators = list(model.closures), list(model.actuators)
    builder._shapes = list(model.shapes)
    builder._notes = [note for note in model.report if note.what != MASSLESS]  # `build` adds these notes again
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
            **({} if i in followers or t.groups[i] < 0 else _properties_of(model, view.q, view.v)),
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
    """Returns the model with some joints fixed at given configurations.

    The placement of the link becomes `T_placement @ T_joint(q)`. Mimics of a locked joint are locked at
    `ratio * q + offset`; a coupling whose source is locked fixes the other joint at the value of the polynomial.
    Actuators of locked joints and couplings between them are dropped, each with a note in `Model.report`.

    Arguments:

    * `model`: the robot; its leaves may be traced.
    * `at`: configuration of each joint to lock, by name: `(nq_joint,)`, a number if that is 1, or None for the neutral
      configuration (rad or m).

    Raises `ModelError` for an unknown joint, a mimic joint, or a coupled joint without its source, and `ShapeError` for
    a configuration of a wrong shape. Example:

    ```python
    import jax.numpy as jnp
    from jaxdyn import lock_joints, mass_matrix, robots

    arm = robots.double_pendulum()
    stiff = lock_joints(arm, {arm.joint_names[1]: 0.5})
    assert stiff.nv == 1 and jnp.isclose(mass_matrix(stiff, jnp.zeros(1))[0, 0], 3 + 2 * jnp.cos(0.5))
    ```
    """
    names = model.joint_names
    mimics = {names[a]: (names[b], k) for k, (a, b) in enumerate(model.topology.mimics)}
    configuration: dict[str, Any] = {}
    for name, value in at.items():
        view = model.joint(name)
        if name in mimics:
            source = mimics[name][0]
            raise ModelError(f"joint {name!r} mimics {source!r} and cannot be locked on its own; lock {source!r}")
        q: Any = view.joint.neutral(model.dtype) if value is None else jnp.asarray(value, model.dtype)
        if q.shape == () and view.joint.nq == 1:
            q = q[None]
        configuration[name] = check_shape(f"the configuration of joint {name!r}", q, (view.joint.nq,))
    for name, (source, k) in mimics.items():
        if source in configuration:
            configuration[name] = model.mimic.ratio[k] * configuration[source] + model.mimic.offset[k]
    builder = to_builder(model)
    builder._links = [
        _lock_link(link, configuration[link.joint_name]) if link.joint_name in configuration else link
        for link in builder._links
    ]
    builder._mimics = [m for m in builder._mimics if m[0] not in configuration]
    _filter_descriptions(
        builder, "_actuators", lambda a: a.joint not in configuration, "acts on a locked joint: dropped"
    )
    builder._closures = [_lock_coupling(c, configuration) for c in builder._closures]
    is_free = lambda c: not (isinstance(c, Coupling) and c.joint in configuration)
    _filter_descriptions(builder, "_closures", is_free, "couples locked joints: dropped")
    return builder.build(model.dtype)


def _lock_coupling(closure: Closure | Coupling, configuration: Mapping[str, Any]) -> Closure | Coupling:
    """Replaces the source of a coupling by its value if the source is locked."""
    if not isinstance(closure, Coupling) or closure.source is None:
        return closure
    if closure.source in configuration:
        value = jnp.polyval(closure.coefficients[::-1], configuration[closure.source])
        return Coupling(closure.name, closure.joint, None, value)
    if closure.joint in configuration:
        raise ModelError(
            f"coupling {closure.name!r} ties {closure.joint!r} to {closure.source!r}, which would be locked as well; "
            f"lock {closure.source!r}, or both"
        )
    return closure


def reduce_joints(model: Model, keep: Iterable[str], q: Float[Array, " nq"] | None = None) -> Model:
    """Returns the model in which only the joints in `keep` move; the others are locked at q, neutral by default.

    Joints that mimic a joint of `keep`, or are coupled to one, stay free. Without q, a joint that is coupled to a
    locked one is locked at the value of the polynomial. Raises `ModelError` for an unknown joint, or for a mimic joint
    in `keep` without its source.
    """
    keep = set(keep)
    for name in keep:
        model.joint(name)  # raises for an unknown name
    t = model.topology
    drivers = dict(t.mimics)
    q = None if q is None else check_shape("q", q, (model.nq,))
    couplings = {c.joint: c for c in model.closures if isinstance(c, Coupling) and c.source is not None}
    at: dict[str, Any] = {}
    for i, name in enumerate(t.joint_names):
        if i in drivers:
            if name in keep and t.joint_names[drivers[i]] not in keep:
                raise ModelError(f"joint {name!r} mimics {t.joint_names[drivers[i]]!r}: add that joint to `keep`")
        elif t.groups[i] >= 0 and not _follows_kept_joint(name, keep, couplings):
            at[name] = _neutral_configuration(name, model, couplings) if q is None else q[model.joint(name).q]
    return lock_joints(model, at)


def _follows_kept_joint(name: str | None, keep: set[str], couplings: Mapping[str, Coupling]) -> bool:
    """True if a joint is in `keep`, or coupled to a joint that is, directly or through others."""
    seen = set()
    while name is not None and name not in keep | seen and name in couplings:
        seen.add(name)
        name = couplings[name].source
    return name in keep


def _neutral_configuration(name: str, model: Model, couplings: Mapping[str, Coupling], seen: tuple[str, ...] = ()):
    """Neutral configuration of a joint; of a coupled joint, the value of its polynomial at the neutral source."""
    joint = model.joint(name).joint
    if name not in couplings or name in seen:
        return joint.neutral(model.dtype)
    source = _neutral_configuration(str(couplings[name].source), model, couplings, (*seen, name))
    return jnp.polyval(couplings[name].coefficients[::-1], source)


def _filter_descriptions(builder: ModelBuilder, entries: str, is_kept, why: str):
    """Drops the descriptions for which `is_kept` is false, each with a note."""
    kind = {"_actuators": "actuator", "_closures": "closure", "_shapes": "shape"}[entries]
    for x in getattr(builder, entries):
        if not is_kept(x):
            builder.add_note(f"{kind} {x.name}", why)
    setattr(builder, entries, [x for x in getattr(builder, entries) if is_kept(x)])


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
    """Returns `model` with `other` mounted on one of its links; `other` brings joints, frames, closures and actuators.

    Arguments:

    * `model`, `other`: robots; gravity and precision are those of `model`.
    * `link`: name of a link of `model`, or "world".
    * `translation`, and one of `rotation`, `quaternion`, `rpy`: pose of the world frame of `other` in the link, as in
      `ModelBuilder.add_link`.
    * `prefix`: prepended to every name of `other`.

    Raises `ModelError` for an unknown link, and for names that exist in both models. Example:

    ```python
    from jaxdyn import ModelBuilder, attach, robots
    from jaxdyn.spatial import box

    tool = ModelBuilder().add_link("gripper", "world", None, box([0.1, 0.1, 0.2], mass=0.5)).build()
    arm = robots.double_pendulum()
    both = attach(arm, tool, arm.link_names[-1], translation=[0, 0, -1.0], prefix="tool/")
    assert both.link_names[-1] == "tool/gripper" and both.nv == 2
    ```
    """
    if link != "world":
        model.link_index(link)
    pose = _cast_pose(placement(translation, rotation=rotation, quaternion=quaternion, rpy=rpy), model.dtype)
    builder, added = to_builder(model), to_builder(other.astype(model.dtype))
    for entry in added._links:
        root = entry.parent == "world"
        quat, at = _compose(pose, (entry.rotation, entry.translation)) if root else _placement_of(entry)
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


def merge(model: Model, other: Model, *, prefix: str = "", **pose) -> Model:
    """Returns both models in one world, `other` at `pose` and with `prefix` as in `attach`."""
    return attach(model, other, "world", prefix=prefix, **pose)


def remove_link(model: Model, link: str) -> Model:
    """Returns the model without `link` and its descendants."""
    removed = _descendants(model, link)
    return _keep_links(model, [i for i in range(model.num_links) if i not in removed]).build(model.dtype)


def subtree(model: Model, link: str, joint: AbstractJoint | None = None) -> Model:
    """Returns `link` and its descendants; `joint`, by default the joint of `link`, connects them to the world."""
    builder = _keep_links(model, _descendants(model, link))
    if model.link(link).parent != "world":  # the world frame of the subtree is the frame of the former parent
        is_internal = lambda c: isinstance(c, Coupling) or "world" not in c.links
        why = "refers to the world, which a subtree does not keep: dropped"
        _filter_descriptions(builder, "_closures", is_internal, why)
        _filter_descriptions(builder, "_shapes", lambda s: s.link != "world", why)
    root = dataclasses.replace(builder._links[0], parent="world")
    builder._links[0] = root if joint is None else dataclasses.replace(root, joint=joint, properties={})
    return builder.build(model.dtype)


# --- helpers -------------------------------------------------------------------------------------


def _properties_of(model: Model, q: slice, v: slice) -> dict[str, Any]:
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


def _cast_pose(pose, dtype):
    quaternion, translation = pose
    return jnp.asarray(quaternion, dtype), jnp.asarray(translation, dtype)


def _placement_of(link: LinkEntry):
    return link.rotation, link.translation


def _compose(a, b):
    """`T_a @ T_b` of poses `(quaternion, translation)`."""
    return quaternion_multiply(a[0], b[0]), a[1] + quaternion_to_matrix(a[0]) @ b[1]


def _lock_link(link: LinkEntry, q) -> LinkEntry:
    pose: Any = link.joint.transform(q)
    quat, at = _compose(_placement_of(link), (matrix_to_quaternion(pose[0]), pose[1]))
    return dataclasses.replace(link, joint=Fixed(), rotation=quat, translation=at, properties={})


def _descendants(model: Model, link: str) -> list[int]:
    """`link` and its descendants, contiguous in depth-first numbering."""
    first = model.link_index(link)
    out = [first]
    for i in range(first + 1, model.num_links):
        if model.topology.parents[i] not in out:
            break
        out.append(i)
    return out


def _add_descriptions(builder: ModelBuilder, added: ModelBuilder, prefix: str, link: str, pose):
    """Adds closures, actuators, shapes and notes of `added`, whose world frame is at `pose` in `link`."""
    for closure in added._closures:
        if isinstance(closure, Coupling):
            source = None if closure.source is None else prefix + closure.source
            renamed = Coupling(prefix + closure.name, prefix + closure.joint, source, closure.coefficients)
        else:
            ends = zip(closure.links, closure.rotations, closure.translations, strict=True)
            names, poses = [], []
            for name, quat, at in ends:
                names.append(link if name == "world" else prefix + name)
                poses.append(_compose(pose, (quat, at)) if name == "world" else (quat, at))
            quats, ats = (jnp.stack(x) for x in zip(*poses, strict=True))
            renamed = Closure(prefix + closure.name, closure.kind, (names[0], names[1]), quats, ats, closure.length)
        builder._closures.append(renamed)
    builder._actuators += [
        dataclasses.replace(a, name=prefix + a.name, joint=prefix + a.joint) for a in added._actuators
    ]
    for shape in added._shapes:
        if shape.link == "world":
            if not is_concrete(pose):
                raise ModelError(
                    f"shape {shape.name!r} of the attached world cannot be placed at a traced pose; "
                    "remove the shape, or give a concrete pose"
                )
            in_link = _compose(pose, (jnp.asarray(shape.quaternion), jnp.asarray(shape.translation)))
            quat, at = (tuple(float(x) for x in part) for part in in_link)
            shape = dataclasses.replace(shape, link=link, quaternion=quat, translation=at)
        else:
            shape = dataclasses.replace(shape, link=prefix + shape.link)
        builder._shapes.append(dataclasses.replace(shape, name=prefix + shape.name))
    builder._notes += [dataclasses.replace(n, where=prefix + n.where) for n in added._notes]


def _keep_links(model: Model, keep: Iterable[int]) -> ModelBuilder:
    builder = to_builder(model)
    builder._links = [builder._links[i] for i in keep]
    links = {link.name for link in builder._links}
    joints = {link.joint_name for link in builder._links}
    builder._frames = [f for f in builder._frames if f[1] in links]
    builder._mimics = [m for m in builder._mimics if m[0] in joints]
    _filter_descriptions(builder, "_actuators", lambda a: a.joint in joints, "acts on a removed joint: dropped")
    is_complete = lambda c: _is_complete(c, links | {"world"}, joints | {None})
    _filter_descriptions(builder, "_closures", is_complete, "refers to a removed link or joint: dropped")
    builder._shapes = [s for s in builder._shapes if s.link in links | {"world"}]
    for joint, source, *_ in builder._mimics:
        if source not in joints:
            raise ModelError(f"joint {joint!r} mimics {source!r}, which is on a removed link; lock {source!r} first")
    return builder


def _is_complete(closure: Closure | Coupling, links, joints) -> bool:
    if isinstance(closure, Coupling):
        return {closure.joint, closure.source} <= joints
    return set(closure.links) <= links
