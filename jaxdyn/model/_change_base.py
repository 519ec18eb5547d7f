"""Holding a robot at another of its links."""

import dataclasses
import itertools

import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn.joints import AbstractJoint, Continuous, Cylindrical, Fixed, Free, Helical, Prismatic, Revolute
from jaxdyn.model._builder import _Link, placement
from jaxdyn.model._edits import _placed, _pose, to_builder
from jaxdyn.model._model import Model
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


def _inverse(a):
    return quaternion_conjugate(quaternion_normalize(a[0])), -(quaternion_to_matrix(a[0]).T @ a[1])


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
