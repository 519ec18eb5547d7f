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

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.model import Model
from jaxdyn.model._mimic import full_configuration
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

    def pose(self, name: str) -> Pose:
        """Pose of a link or a frame of the model in the world; that of "world" is the identity."""
        if name == "world":
            return Pose.identity(self.q.dtype)
        i = carrier(self.model, name)
        pose = Pose(self.rotation[i], self.translation[i])
        if name in self.model.link_names:
            return pose
        frames, row = self.model.frames, self.model.frame_index(name)
        return pose @ Pose.from_quaternion(frames.rotation[row], frames.translation[row])

    def coordinate(self, joint: str):
        """The coordinate of a joint with one of them; that of a geared joint, not its source's."""
        view = self.model.joint(joint)
        size = view.q.stop - view.q.start
        if size != 1:
            raise ModelError(
                f"joint {joint!r} is a {type(view.joint).__name__} of {size} coordinates, expected one; constrain its "
                "links (PrescribedFrame, WeldClosure), or write a Holonomic for the coordinate that is meant"
            )
        t = self.model.topology
        return full_configuration(self.model, self.q)[t.q_start[t.bodies.index(view.index)]]


def carrier(model: Model, name: str) -> int:
    """Row of the link called `name`, or of that to which the frame of this name is fixed."""
    if name in model.link_names:
        return model.link_index(name)
    if name in model.frame_names:
        return model.topology.frame_links[model.frame_index(name)]
    raise ModelError(
        f"no link or frame is called {name!r}; links are {', '.join(model.link_names) or 'none'}; "
        f"frames are {', '.join(model.frame_names) or 'none'}"
    )


class Moving(NamedTuple):
    """A state and the velocities of all links in it, in world axes."""

    placed: Placed
    v: Any
    #: `(links, 3)`, rad/s
    angular: Any
    #: of the links' origins, `(links, 3)`, m/s
    linear: Any

    def angular_velocity(self, link: str):
        """Angular velocity of a link (or a frame's link), in world axes."""
        if link == "world":
            return jnp.zeros(3, self.v.dtype)
        return self.angular[carrier(self.placed.model, link)]

    def point_velocity(self, link: str, point):
        """Velocity of the material point of a link (or a frame's link) that is now at `point` of the world."""
        if link == "world":
            return jnp.zeros_like(point)
        i = carrier(self.placed.model, link)
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
