"""Rotation about a fixed axis, by an angle on the line or on the circle."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._numerics import as_float, sincos
from jaxdyn._types import Array, Float
from jaxdyn.joints._algebra import rows, unit
from jaxdyn.joints._joint import AbstractJoint, AbstractVectorJoint
from jaxdyn.spatial import axis_angle_to_matrix


def _rotation_about(axis, q):
    rotation = axis_angle_to_matrix(unit(axis), q[0])
    return rotation, jnp.zeros_like(rotation[0])


def _rotation_subspace(axis):
    a = unit(axis)
    zero = jnp.zeros_like(a[0])
    return rows(a[0], a[1], a[2], zero, zero, zero)[:, None]


class Revolute(AbstractVectorJoint):
    """Revolute joint: rotation by the angle q (rad) about a fixed axis; `nq = nv = 1`.

    Arguments:

    * `axis`: direction of the axis in the joint frame, `(3,)`, of any non-zero length; a leaf.

    Example:

    ```python
    import jax.numpy as jnp
    from jaxdyn.joints import Revolute

    joint = Revolute([0, 0, 2])
    rotation, translation = joint.transform(jnp.array([jnp.pi / 2]))
    assert jnp.allclose(rotation @ jnp.array([1.0, 0, 0]), jnp.array([0.0, 1, 0]), atol=1e-6)
    assert jnp.allclose(joint.subspace(jnp.zeros(1))[:, 0], jnp.array([0.0, 0, 1, 0, 0, 0]))
    ```
    """

    axis: Float[Array, "*n 3"] = eqx.field(converter=as_float)
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    translates: ClassVar[bool] = False

    def transform(self, q):
        return _rotation_about(self.axis, q)

    def subspace(self, q):
        return _rotation_subspace(self.axis)

    def bias(self, q, v):
        return None


class Continuous(AbstractJoint):
    """Revolute joint without a range: q is an angle (rad) on the circle; differences lie between -pi and pi."""

    axis: Float[Array, "*n 3"] = eqx.field(converter=as_float)
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    translates: ClassVar[bool] = False

    def transform(self, q):
        return _rotation_about(self.axis, q)

    def subspace(self, q):
        return _rotation_subspace(self.axis)

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
    """True if `qdot = v`, so that configurations may be added and interpolated like vectors."""
    return isinstance(joint, AbstractVectorJoint | Continuous)
