"""Translation along a fixed axis."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.joints._algebra import identity, rows, unit
from jaxdyn.joints._joint import AbstractVectorJoint


class Prismatic(AbstractVectorJoint):
    """Prismatic joint: translation by q (m) along `axis`, `(3,)`, of any non-zero length."""

    axis: Float[Array, "*n 3"] = eqx.field(converter=as_float)
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    translates: ClassVar[bool] = True
    span: ClassVar[float] = 1.0

    def transform(self, q):
        a = unit(self.axis)
        return identity(q[0]), rows(a[0] * q[0], a[1] * q[0], a[2] * q[0])

    def subspace(self, q):
        a = unit(self.axis)
        zero = jnp.zeros_like(a[0])
        return rows(zero, zero, zero, a[0], a[1], a[2])[:, None]

    def bias(self, q, v):
        return None
