"""The contract of a gap: the distance between two bodies, with the point and the normal of their contact."""

import abc
from typing import NamedTuple

import equinox as eqx

from jaxdyn._types import Array, Float
from jaxdyn.constraints.contract import Configuration, KinematicState
from jaxdyn.constraints.types import End


class Touch(NamedTuple):
    """The nearest points of two bodies at a configuration, in world axes."""

    #: signed distance along the normal, m; negative under penetration
    gap: Float[Array, ""]
    #: the point of contact, `(3,)`, m
    point: Float[Array, "3"]
    #: unit normal from the second body to the first, `(3,)`
    normal: Float[Array, "3"]


class AbstractGap(eqx.Module):
    """Contract of a gap between a body and another one or the world.

    `measure` is a smooth function of the configuration. Rates and accelerations of the gap, and the motion of the point
    of contact over both surfaces, are its derivatives by forward mode. The rate of the gap is the relative normal
    velocity, m/s, so that the multiplier of a contact is a force in N.
    """

    #: frame of the first body, on which a contact force acts along the normal
    first: eqx.AbstractVar[End]
    #: frame of the second body, on which the opposite force acts; "world" for an obstacle at rest
    second: eqx.AbstractVar[End]

    @abc.abstractmethod
    def measure(self, x: Configuration) -> Touch:
        """Gap, point and normal of the contact at a configuration."""


def slip_velocity(gap: AbstractGap, x: KinematicState, touch: Touch) -> Float[Array, "3"]:
    """Velocity of the first body relative to the second at the point of contact, across the normal; m/s."""
    c = relative_velocity(gap, x, touch)
    return c - (c @ touch.normal) * touch.normal


def relative_velocity(gap: AbstractGap, x: KinematicState, touch: Touch) -> Float[Array, "3"]:
    """Velocity of the first body relative to the second at the point of contact, `(3,)`, m/s."""
    return x.point_velocity(gap.first.link, touch.point) - x.point_velocity(gap.second.link, touch.point)
