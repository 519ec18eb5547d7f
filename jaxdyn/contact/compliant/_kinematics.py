"""Motion of a gap, and the wrenches of a contact force on both bodies."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Float, Scalar
from jaxdyn.constraints.contract import AbstractHolonomic, Configuration, KinematicState, carrying_link
from jaxdyn.constraints.evaluation import (
    acceleration_bias,
    constraint_kinematics,
    constraint_rates,
    constraint_residuals,
    kinematic_state,
    linearise_constraints,
)
from jaxdyn.contact.contract import AbstractGap, Touch
from jaxdyn.model import Model


class GapMotion(NamedTuple):
    """A gap and its rate at one state."""

    state: KinematicState
    touch: Touch
    #: rate of the gap, m/s, with the motion of an obstacle that depends on time
    rate: Scalar


def gap_motion(gap: AbstractGap, model: Model, t, q, v) -> GapMotion:
    """The gap, its point and normal, and its rate."""
    x = constraint_kinematics(model, t, q, v)
    point, tangent, _ = x.expansion
    touch, change = jax.jvp(lambda *y: gap.measure(Configuration(model, *y)), point, tangent)
    return GapMotion(kinematic_state(model, x), touch, change.gap)


def contact_wrenches(gap: AbstractGap, x: Configuration, point, force) -> Float[Array, "links 6"]:
    """Wrenches of a force (world axes, N) at a point (world, m) on the first body, and of its opposite on the second.

    One row for each link: (moment, force) in link axes about the link's origin.
    """
    out = jnp.zeros((x.model.num_links, 6), point.dtype)
    for end, sign in ((gap.first, 1), (gap.second, -1)):
        if end.link != "world":
            i = carrying_link(x.model, end.link)
            rotation, arm = x.rotation[i], point - x.translation[i]
            wrench = jnp.concatenate([rotation.T @ jnp.cross(arm, force), rotation.T @ force])
            out = out.at[i].add(sign * wrench)
    return out


class GapCoordinate(NamedTuple):
    """A gap s as a coordinate of the robot: `sdot = J v + s_t`, `sddot = J a + bias`."""

    value: Scalar
    rate: Scalar
    jacobian: Float[Array, " nv"]
    bias: Scalar


class _Row(AbstractHolonomic):
    """The gap as the residual of a holonomic constraint."""

    name: str
    gap: AbstractGap

    def residual(self, x):
        return self.gap.measure(x).gap[None]


def gap_coordinate(gap: AbstractGap, model: Model, t, q: Array, v: Array) -> GapCoordinate:
    """The gap, its rate, Jacobian and acceleration bias."""
    rows, x = (_Row("gap", gap),), constraint_kinematics(model, t, q, v)
    jacobian, _ = linearise_constraints(model, rows, x)
    return GapCoordinate(
        constraint_residuals(model, rows, x)[0],
        constraint_rates(model, rows, x)[0],
        jacobian[0],
        acceleration_bias(model, rows, x)[0],
    )
