"""The contract of a constraint, and what it may look at.

A constraint is a small pytree whose leaves are its numbers. A holonomic one gives a residual `g(q, t)`, which
is to vanish; everything else, `gdot = A v - b` and `gddot = A a + gamma`, follows by forward differentiation
with no term left out. A nonholonomic one gives its rate `A(q, t) v - b(q, t)` itself.

Both see where the links are as well as the coordinates, so that the kinematics are evaluated once for a whole
set of constraints, and so that it is known which part of a multiplier loads which link.
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.model import Model
from jaxdyn.spatial import Pose


class Placed(NamedTuple):
    """A configuration and the poses of all links in it."""

    model: Model
    t: Any
    q: Any
    #: `(links, 3, 3)`
    rotation: Any
    #: `(links, 3)`, m
    translation: Any

    def pose(self, link: str) -> Pose:
        """Pose of a link in the world; that of "world" is the identity."""
        if link == "world":
            return Pose.identity(self.q.dtype)
        i = self.model.link_index(link)
        return Pose(self.rotation[i], self.translation[i])

    def coordinate(self, joint: str):
        """The coordinate of a joint with one of them."""
        return self.q[self.model.joint(joint).q][0]


class Moving(NamedTuple):
    """A state and the velocities of all links in it, in world axes."""

    placed: Placed
    v: Any
    #: `(links, 3)`, rad/s
    angular: Any
    #: of the links' origins, `(links, 3)`, m/s
    linear: Any

    def angular_velocity(self, link: str):
        """Angular velocity of a link, in world axes."""
        if link == "world":
            return jnp.zeros(3, self.v.dtype)
        return self.angular[self.placed.model.link_index(link)]

    def point_velocity(self, link: str, point):
        """Velocity of the material point of a link that is now at `point` of the world."""
        if link == "world":
            return jnp.zeros_like(point)
        i = self.placed.model.link_index(link)
        return self.linear[i] + jnp.cross(self.angular[i], point - self.placed.translation[i])


class AbstractConstraint(eqx.Module):
    """Anything that takes away degrees of freedom; see `AbstractHolonomic` and `AbstractNonholonomic`."""

    name: eqx.AbstractVar[str]


class AbstractHolonomic(AbstractConstraint):
    """A constraint on configurations, `g(q, t) = 0`."""

    @abc.abstractmethod
    def residual(self, x: Placed) -> Float[Array, " rows"]:
        """`g`, as many rows as degrees of freedom are taken away; rad and m."""


class AbstractNonholonomic(AbstractConstraint):
    """A constraint on velocities alone, `A(q, t) v = b(q, t)`."""

    @abc.abstractmethod
    def rate(self, x: Moving) -> Float[Array, " rows"]:
        """`A v - b`, linear in the velocities; rad/s and m/s."""
