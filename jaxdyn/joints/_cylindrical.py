"""Independent rotation about and translation along one axis."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.joints._algebra import rows, unit
from jaxdyn.joints._joint import AbstractVectorJoint
from jaxdyn.spatial import axis_angle_to_matrix


class Cylindrical(AbstractVectorJoint):
    """Rotation by `q[0]` (rad) about `axis` and translation by `q[1]` (m) along it."""

    axis: Float[Array, "*n 3"] = eqx.field(converter=as_float)
    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    translates: ClassVar[bool] = True

    def transform(self, q):
        a = unit(self.axis)
        return axis_angle_to_matrix(a, q[0]), rows(a[0] * q[1], a[1] * q[1], a[2] * q[1])

    def subspace(self, q):
        a = unit(self.axis)
        zero = jnp.zeros_like(a[0])
        rotation = rows(a[0], a[1], a[2], zero, zero, zero)
        translation = rows(zero, zero, zero, a[0], a[1], a[2])
        return jnp.stack([rotation, translation], axis=1)

    def bias(self, q, v):
        return None
