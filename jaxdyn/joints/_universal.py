"""Two rotations about axes that meet."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.joints._joint import AbstractVectorJoint, as_float, bias_of, rows, unit
from jaxdyn.spatial import axis_angle_to_matrix


def _product(a, b):
    return jnp.stack([jnp.stack([sum(a[i, k] * b[k, j] for k in range(3)) for j in range(3)]) for i in range(3)])


class Universal(AbstractVectorJoint):
    """Rotation by `q[0]` about `axis1`, then by `q[1]` about the turned `axis2`."""

    axis1: Float[Array, "*n 3"] = eqx.field(converter=as_float)
    axis2: Float[Array, "*n 3"] = eqx.field(converter=as_float)
    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    translates: ClassVar[bool] = False

    def transform(self, q):
        first = axis_angle_to_matrix(unit(self.axis1), q[0])
        rotation = _product(first, axis_angle_to_matrix(unit(self.axis2), q[1]))
        return rotation, jnp.zeros_like(rotation[0])

    def subspace(self, q):
        second = axis_angle_to_matrix(unit(self.axis2), q[1])
        a, b = unit(self.axis1), unit(self.axis2)
        turned = [sum(second[k, i] * a[k] for k in range(3)) for i in range(3)]
        zero = jnp.zeros_like(turned[0])
        return jnp.stack([rows(*turned, zero, zero, zero), rows(*b, zero, zero, zero + zero)], axis=1)

    def bias(self, q, v):
        return bias_of(self.subspace, q, v)
