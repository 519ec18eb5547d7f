"""Independent rotation about and sliding along one axis."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.joints._joint import AbstractVectorJoint, as_float, rows, unit
from jaxdyn.spatial import axis_angle_to_matrix


class Cylindrical(AbstractVectorJoint):
    """Rotation by `q[0]` about `axis` and displacement by `q[1]` along it."""

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
        turn = rows(a[0], a[1], a[2], zero, zero, zero)
        slide = rows(zero, zero, zero, a[0], a[1], a[2])
        return jnp.stack([turn, slide], axis=1)

    def bias(self, q, v):
        return None
