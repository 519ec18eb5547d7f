"""Rotors of geared motors on the parent link of a joint."""

import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn.joints import Continuous, Revolute
from jaxdyn.model import Model, to_builder
from jaxdyn.spatial import Inertia


def add_rotor(
    model: Model, joint: str, *, gear: ArrayLike, inertia: ArrayLike, mass: ArrayLike = 0.0, name: str | None = None
) -> Model:
    """The model with the rotor of a geared motor on a revolute joint as a separate link.

    The rotor is mounted on the parent link of the joint and turns `gear` times as fast as the joint about the same
    axis. Its spin `w_parent + gear v` couples the two bodies: for a planar elbow the mass matrix grows by
    `J [[1, gear], [gear, gear^2]]`, of which a reflected `armature` has the last entry only (Murphy, Wen and Saridis
    1990).

    Arguments:

    * `model`, `joint`: the robot and the name of a revolute or continuous joint; another type raises `ModelError`
    * `gear`: rotor velocity per joint velocity
    * `inertia`: J of the rotor, a thin disc, about its axis, kg m^2; half of that about its diameters
    * `mass`: kg; zero where the mass of the parent link includes the rotor
    * `name`: name of the new link, by default `<joint>_rotor`

    Gear, inertia and placement are leaves of the new model.
    """
    view = model.joint(joint)
    if not isinstance(view.joint, Revolute | Continuous):
        kind = type(view.joint).__name__
        raise ModelError(f"add_rotor: joint {joint!r} is {kind}; a rotor needs a revolute or continuous joint")
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
