"""The contract of a constraint, and the kinematics that a constraint is a function of.

A constraint is a small pytree whose leaves are its parameters. A holonomic constraint defines a residual `g(q, t) = 0`;
`gdot = A v - b` and `gddot = A a + gamma` follow by forward differentiation, with every term. A nonholonomic constraint
defines its rate `A(q, t) v - b(q, t)`.

Both are functions of the poses of all links as well as of the coordinates. So the kinematics are evaluated once for a
whole set of constraints, and the wrench of a multiplier on each link is a derivative of the residual.
"""

import abc
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.model import Model
from jaxdyn.recursion import full_configuration
from jaxdyn.spatial import Pose


class Configuration(NamedTuple):
    """A configuration and the poses of all links, the argument of a holonomic constraint."""

    model: Model
    #: time, s
    t: Float[Array, ""]
    q: Float[Array, " nq"]
    #: of the links in the world, `(links, 3, 3)`
    rotation: Float[Array, "links 3 3"]
    #: of the links' origins in the world, `(links, 3)`, m
    translation: Float[Array, "links 3"]

    def pose(self, name: str) -> Pose:
        """Pose in the world of a link or frame of the model; the pose of "world" is the identity."""
        if name == "world":
            return Pose.identity(self.q.dtype)
        i = carrying_link(self.model, name)
        pose = Pose(self.rotation[i], self.translation[i])
        if name in self.model.link_names:
            return pose
        frames, row = self.model.frames, self.model.frame_index(name)
        return pose @ Pose.from_quaternion(frames.rotation[row], frames.translation[row])

    def coordinate(self, joint: str):
        """The coordinate of a joint with one degree of freedom; for a mimic joint its own, not the source's."""
        view = self.model.joint(joint)
        size = view.q.stop - view.q.start
        if size != 1:
            raise ModelError(
                f"joint {joint!r} is a {type(view.joint).__name__} of {size} coordinates, expected one; constrain its "
                "links (PrescribedFrame, WeldClosure), or write a Holonomic for one of the coordinates"
            )
        t = self.model.topology
        return full_configuration(self.model, self.q)[t.q_start[t.bodies.index(view.index)]]


def carrying_link(model: Model, name: str) -> int:
    """Index of the link with this name, or of the link to which the frame with this name is fixed."""
    if name in model.link_names:
        return model.link_index(name)
    if name in model.frame_names:
        return model.topology.frame_links[model.frame_index(name)]
    raise ModelError(
        f"no link or frame is called {name!r}; links are {', '.join(model.link_names) or 'none'}; "
        f"frames are {', '.join(model.frame_names) or 'none'}"
    )


class KinematicState(NamedTuple):
    """A state and the velocities of all links in world axes, the argument of a nonholonomic constraint."""

    configuration: Configuration
    v: Float[Array, " nv"]
    #: `(links, 3)`, rad/s
    angular: Float[Array, "links 3"]
    #: of the links' origins, `(links, 3)`, m/s
    linear: Float[Array, "links 3"]

    def angular_velocity(self, link: str):
        """Angular velocity of a link (or a frame's link), in world axes."""
        if link == "world":
            return jnp.zeros(3, self.v.dtype)
        return self.angular[carrying_link(self.configuration.model, link)]

    def point_velocity(self, link: str, point):
        """Velocity of the material point of a link (or a frame's link) at `point`, `(3,)` in the world."""
        if link == "world":
            return jnp.zeros_like(point)
        i = carrying_link(self.configuration.model, link)
        return self.linear[i] + jnp.cross(self.angular[i], point - self.configuration.translation[i])


class AbstractConstraint(eqx.Module):
    """A constraint on a robot's motion; see `AbstractHolonomic` and `AbstractNonholonomic`."""

    name: eqx.AbstractVar[str]


class AbstractHolonomic(AbstractConstraint):
    """A holonomic constraint, on the configuration: `g(q, t) = 0`."""

    @abc.abstractmethod
    def residual(self, x: Configuration) -> Float[Array, " rows"]:
        """`g(q, t)`, one row for each degree of freedom removed; rad and m."""


class AbstractNonholonomic(AbstractConstraint):
    """A nonholonomic constraint, on velocities: `A(q, t) v = b(q, t)`."""

    @abc.abstractmethod
    def rate(self, x: KinematicState) -> Float[Array, " rows"]:
        """`A(q, t) v - b(q, t)`, affine in the velocities; rad/s and m/s."""


#: one constraint or several
ConstraintSet = AbstractConstraint | Sequence[AbstractConstraint]
