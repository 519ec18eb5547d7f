"""Rotation about a fixed axis, with and without a range."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._numerics import sincos
from jaxdyn._types import Array, Float
from jaxdyn.joints._joint import AbstractJoint, AbstractVectorJoint, as_float, rows, unit
from jaxdyn.spatial import axis_angle_to_matrix


def _turn(axis, q):
    rotation = axis_angle_to_matrix(unit(axis), q[0])
    return rotation, jnp.zeros_like(rotation[0])


def _spin_axis(axis):
    a = unit(axis)
    zero = jnp.zeros_like(a[0])
    return rows(a[0], a[1], a[2], zero, zero, zero)[:, None]


class Revolute(AbstractVectorJoint):
    """Rotation by the angle q about `axis`."""

    axis: Float[Array, "*n 3"] = eqx.field(converter=as_float)
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    translates: ClassVar[bool] = False

    def transform(self, q):
        return _turn(self.axis, q)

    def subspace(self, q):
        return _spin_axis(self.axis)

    def bias(self, q, v):
        return None


class Continuous(AbstractJoint):
    """Rotation about `axis` without end: q is an angle, and differences are taken the short way round."""

    axis: Float[Array, "*n 3"] = eqx.field(converter=as_float)
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    translates: ClassVar[bool] = False

    def transform(self, q):
        return _turn(self.axis, q)

    def subspace(self, q):
        return _spin_axis(self.axis)

    def bias(self, q, v):
        return None

    def neutral(self, dtype):
        return jnp.zeros(1, dtype)

    def integrate(self, q, dv):
        return q + dv

    def difference(self, q0, q1):
        s, c = sincos(q1 - q0)
        return jnp.arctan2(s, c)

    def random(self, key, dtype):
        return jax.random.uniform(key, (1,), dtype, -jnp.pi, jnp.pi)


def has_vector_rate(joint: AbstractJoint) -> bool:
    """Whether `qdot = v`, so that configurations may be added and interpolated like vectors."""
    return isinstance(joint, AbstractVectorJoint | Continuous)
