"""Gears: coordinates of geared joints, and losses that depend on the direction of the transmitted power."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._numerics import smooth_sign
from jaxdyn.model import Model


def velocity_index(model: Model, kind: str, joint: str) -> int:
    """Index of the velocity coordinate of a joint with one; `ModelError` for another joint."""
    view = model.joint(joint)
    if view.v.stop - view.v.start != 1:
        raise ModelError(
            f"{kind}: joint {joint!r} has {view.v.stop - view.v.start} velocity coordinates; a motor drives a joint "
            "with one"
        )
    return view.v.start


def add_armature(model: Model, index: int, inertia) -> Model:
    """The model with more inertia on one velocity coordinate."""
    armature = model.properties.armature
    return eqx.tree_at(lambda m: m.properties.armature, model, armature.at[index].add(inertia))


def transmitted_fraction(torque, velocity, efficiency, reverse_efficiency, width):
    """Torque behind a gear over the torque without losses: `efficiency` or `1 / reverse_efficiency` (20.69).

    The first holds where the torque, on the side of the joint and after the inertia of the rotor, has the direction of
    the joint velocity: the motor drives the joint. The second holds where the joint drives the motor. The transition
    between them has the velocity `width`. A reverse efficiency of zero is a self-locking gear, whose factor is large
    instead of infinite.
    """
    forward = (1 + smooth_sign(velocity, width)) / 2
    driving = jnp.where(torque >= 0, forward, 1 - forward)
    return driving * efficiency + (1 - driving) / jnp.maximum(reverse_efficiency, _least(torque))


def is_self_locking(reverse_efficiency):
    """Whether a gear transmits no power from the joint to the motor."""
    return reverse_efficiency <= _least(reverse_efficiency)


def _least(x):
    """The smallest reverse efficiency whose inverse is accurate."""
    return jnp.finfo(jnp.result_type(x)).eps ** 0.5


def saturate(x, limit, width):
    """`x` between `-limit` and `limit`; a non-zero `width` smooths the corners over this distance.

    The derivative with a width of zero is zero outside of the limits.
    """
    hard = jnp.clip(x, -limit, limit)
    sharp = width == 0
    w = jnp.where(sharp, 1, width)
    soft = x - w * (jnp.logaddexp((x - limit) / w, 0) - jnp.logaddexp((-x - limit) / w, 0))
    return jnp.where(sharp, hard, soft)
