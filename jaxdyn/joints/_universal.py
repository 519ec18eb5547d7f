"""Two rotations about intersecting axes."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.joints._algebra import matmul, rows, unit
from jaxdyn.joints._joint import AbstractVectorJoint, differentiate_subspace
from jaxdyn.spatial import axis_angle_to_matrix


class Universal(AbstractVectorJoint):
    """Rotation `R_1(q[0]) R_2(q[1])` about `axis1` and about `axis2`, which the first rotation moves (rad)."""

    axis1: Float[Array, "*n 3"] = eqx.field(converter=as_float)
    axis2: Float[Array, "*n 3"] = eqx.field(converter=as_float)
    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    translates: ClassVar[bool] = False

    def transform(self, q):
        first = axis_angle_to_matrix(unit(self.axis1), q[0])
        rotation = matmul(first, axis_angle_to_matrix(unit(self.axis2), q[1]))
        return rotation, jnp.zeros_like(rotation[0])

    def subspace(self, q):
        second = axis_angle_to_matrix(unit(self.axis2), q[1])
        a, b = unit(self.axis1), unit(self.axis2)
        rotated = [sum(second[k, i] * a[k] for k in range(3)) for i in range(3)]
        zero = jnp.zeros_like(rotated[0])
        return jnp.stack([rows(*rotated, zero, zero, zero), rows(*b, zero, zero, zero + zero)], axis=1)

    def bias(self, q, v):
        return differentiate_subspace(self.subspace, q, v)
