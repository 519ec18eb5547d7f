"""Constraints on joint coordinates, prescribed motion, surfaces, and constraints given as functions."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.constraints._contract import AbstractHolonomic, AbstractNonholonomic, Moving, Placed
from jaxdyn.constraints._ends import End, as_end, as_float, as_function, turn


class JointCoupling(AbstractHolonomic):
    """`q_joint = c_0 + c_1 q_source + c_2 q_source^2 + ...`, joints of one coordinate; no source means a constant."""

    name: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    source: str | None = eqx.field(static=True)
    #: from the constant upwards
    coefficients: Float[Array, " order"] = eqx.field(converter=as_float)

    def residual(self, x: Placed):
        at = jnp.zeros_like(x.q[0]) if self.source is None else x.coordinate(self.source)
        value = jnp.zeros_like(at)
        for c in self.coefficients[::-1]:
            value = value * at + c
        return (x.coordinate(self.joint) - value)[None]


class PrescribedCoordinate(AbstractHolonomic):
    """A joint of one coordinate follows a function of time: `q_joint = motion(t)`."""

    name: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    #: twice differentiable, a pytree if it has numbers of its own
    motion: Callable[[Any], Any] = eqx.field(converter=as_function)

    def residual(self, x: Placed):
        return jnp.reshape(x.coordinate(self.joint) - self.motion(x.t), (1,))


class PrescribedFrame(AbstractHolonomic):
    """A frame follows a pose given as a function of time: turn and origin in axes of that pose, six rows."""

    name: str = eqx.field(static=True)
    frame: End = eqx.field(converter=as_end)
    #: from t to a `jaxdyn.spatial.Pose` in `base`
    motion: Callable[[Any], Any] = eqx.field(converter=as_function)
    base: End = eqx.field(converter=as_end, default="world")

    def residual(self, x: Placed):
        pose = (self.base.pose(x) @ self.motion(x.t)).inverse() @ self.frame.pose(x)
        return jnp.concatenate([turn(pose.rotation), pose.translation])


class OnSurface(AbstractHolonomic):
    """The origin of a frame stays on the surface `phi(p) = 0` fixed to a link or the world, one row.

    p is in axes of `base`, m. The multiplier pi pushes with the force `pi dphi/dp` (McClamroch 1986, equations
    7 to 11); phi with a gradient of length one makes it the normal force in N.
    """

    name: str = eqx.field(static=True)
    frame: End = eqx.field(converter=as_end)
    phi: Callable[[Any], Any] = eqx.field(converter=as_function)
    base: End = eqx.field(converter=as_end, default="world")

    def residual(self, x: Placed):
        pose = self.base.pose(x).inverse() @ self.frame.pose(x)
        return jnp.reshape(self.phi(pose.translation), (1,))


class Holonomic(AbstractHolonomic):
    """A constraint given by a function, `g(x) = 0` with what a `Placed` knows: x.q, x.t, x.pose(link)."""

    name: str = eqx.field(static=True)
    function: Callable[[Placed], Any] = eqx.field(converter=as_function)

    def residual(self, x: Placed):
        return jnp.atleast_1d(self.function(x))


class Pfaffian(AbstractNonholonomic):
    """A constraint given by functions, `A(q, t) v = b(q, t)`; `b` is zero if left out."""

    name: str = eqx.field(static=True)
    matrix: Callable[[Any, Any], Any] = eqx.field(converter=as_function)
    drift: Callable[[Any, Any], Any] | None = eqx.field(converter=as_function, default=None)

    def rate(self, x: Moving):
        q, t = x.placed.q, x.placed.t
        out = jnp.atleast_2d(self.matrix(q, t)) @ x.v
        return out if self.drift is None else out - self.drift(q, t)
