"""Rotors that spin with a joint and are carried by its parent link."""

from typing import Any

import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn.joints import Continuous, Revolute
from jaxdyn.model import Model
from jaxdyn.model._edits import to_builder
from jaxdyn.spatial import Inertia


def add_rotor(model: Model, joint: str, *, gear: Any, inertia: Any, mass: Any = 0.0, name: str | None = None) -> Model:
    """The model with the rotor of a geared motor on a revolute joint, as a link of its own.

    The rotor is carried by the joint's parent link and turns `gear` times as fast as the joint about the same axis, so
    that its spin `w_parent + gear v` couples the two: for a planar elbow the mass matrix grows by
    `J [[1, gear], [gear, gear^2]]`. A reflected `armature` has the last entry alone (Murphy, Wen and Saridis 1990).
    It is a thin disc of `inertia` J about its axis, kg m^2, half of that across, and `mass`, kg, zero where the
    parent's mass includes it. Gear, inertia and placement are leaves; the link is called `<joint>_rotor`.
    """
    view = model.joint(joint)
    if not isinstance(view.joint, Revolute | Continuous):
        kind = type(view.joint).__name__
        raise ModelError(f"add_rotor: joint {joint!r} is {kind}; a rotor goes with a revolute joint")
    index = view.index
    parent = model.topology.parents[index]
    name = f"{joint}_rotor" if name is None else name
    axis = view.joint.axis / jnp.linalg.norm(view.joint.axis)
    along = jnp.outer(axis, axis)
    disc = jnp.asarray(inertia) * (along + jnp.eye(3, dtype=along.dtype)) / 2
    builder = to_builder(model)
    builder.add_link(
        name,
        model.link_names[parent] if parent >= 0 else "world",
        Continuous(axis),
        Inertia(mass, jnp.zeros(3), disc),
        joint_name=name,
        translation=model.placements.translation[index],
        quaternion=model.placements.rotation[index],
    )
    return builder.add_mimic(name, joint, ratio=gear).build()
