"""Change of the base link of a robot."""

import dataclasses
import itertools

import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn.joints import AbstractJoint, Continuous, Cylindrical, Fixed, Free, Helical, Prismatic, Revolute
from jaxdyn.model._edits import _cast_pose, _placement_of, to_builder
from jaxdyn.model.assembly import LinkEntry, placement
from jaxdyn.model.structure import Model
from jaxdyn.spatial import quaternion_conjugate, quaternion_normalize, quaternion_to_matrix

_REVERSIBLE = (Revolute, Continuous, Prismatic, Helical, Cylindrical)


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
    """Returns the model with another base link: `joint` (fixed by default) connects `link` to the world.

    The joints between the old base and `link` are reversed. Their names, coordinates, signs, properties, limits and
    mimics stay, and so does every link frame with its inertia, frames and other children. A joint moves its child about
    the origin of the child; after reversal this is the frame where the joint sits on its former parent. For each
    reversed joint that moves, a massless link `<parent>_carrier` with that frame is added, to which `<parent>` is
    rigidly connected by the joint `<parent>_mount` (with a further underscore if such a name exists).

    Arguments:

    * `link`: name of the new base link.
    * `joint`: joint between the world and `link`.
    * `translation`, and one of `rotation`, `quaternion`, `rpy`: pose of that joint in the world, as in
      `ModelBuilder.add_link`.

    Only joints whose axes are fixed in both links can be reversed: revolute, continuous, prismatic, helical,
    cylindrical and fixed ones; others raise `ModelError`. The old base must be connected to the world by a fixed or a
    free joint, whose name goes to the joint of the new base. Coordinates are numbered depth first, as always, so that
    their order changes.
    """
    path = _path_to_root(model, link)
    t = model.topology
    builder = to_builder(model)
    entries = builder._links
    root = entries[path[-1]]
    if not isinstance(root.joint, Fixed | Free):
        raise ModelError(
            f"joint {root.joint_name!r} connects the old base to the world and is a "
            f"{type(root.joint).__name__} joint, which would be lost; expected Fixed or Free: add a base link below it"
        )
    replaced: dict[int, list[LinkEntry]] = {}
    for child, parent in itertools.pairwise(path):
        replaced[parent] = _reverse_joint(entries[child], entries[parent], model)
    quat, at = _cast_pose(placement(translation, rotation=rotation, quaternion=quaternion, rpy=rpy), model.dtype)
    base = dataclasses.replace(
        entries[path[0]],
        parent="world",
        joint=Fixed() if joint is None else joint,
        joint_name=root.joint_name,
        rotation=quat,
        translation=at,
        properties={},
    )
    replaced[path[0]] = [base]
    builder._links = [new for i in range(len(t.parents)) for new in replaced.get(i, [entries[i]])]
    return builder.build(model.dtype)


def _invert_pose(a):
    return quaternion_conjugate(quaternion_normalize(a[0])), -(quaternion_to_matrix(a[0]).T @ a[1])


def _path_to_root(model: Model, link: str) -> list[int]:
    path = [model.link_index(link)]
    while model.topology.parents[path[-1]] >= 0:
        path.append(model.topology.parents[path[-1]])
    return path


def _unused_name(name: str, existing: tuple[str, ...]) -> str:
    return _unused_name(f"{name}_", existing) if name in existing else name


def _reverse_joint(child: LinkEntry, parent: LinkEntry, model: Model) -> list[LinkEntry]:
    """The entries that make `child` the parent of its former parent, at `T_joint^-1 @ T_placement^-1`."""
    quat, at = _invert_pose(_placement_of(child))
    if child.joint.nv == 0:
        return [
            dataclasses.replace(
                parent,
                parent=child.name,
                joint=child.joint,
                joint_name=child.joint_name,
                rotation=quat,
                translation=at,
                properties={},
            )
        ]
    if not isinstance(child.joint, _REVERSIBLE):
        names = ", ".join(kind.__name__ for kind in _REVERSIBLE)
        raise ModelError(
            f"joint {child.joint_name!r} is a {type(child.joint).__name__} joint, which cannot be reversed; "
            f"expected one of Fixed, {names}"
        )
    carrier = dataclasses.replace(
        child,
        name=_unused_name(f"{parent.name}_carrier", model.link_names),
        parent=child.name,
        joint=dataclasses.replace(child.joint, axis=-child.joint.axis),
        inertia=None,
        rotation=jnp.zeros_like(quat).at[0].set(1),
        translation=jnp.zeros_like(at),
    )
    mounted = dataclasses.replace(
        parent,
        parent=carrier.name,
        joint=Fixed(),
        joint_name=_unused_name(f"{parent.name}_mount", model.joint_names),
        rotation=quat,
        translation=at,
        properties={},
    )
    return [carrier, mounted]
