"""Screw motion: translation proportional to rotation."""

from typing import ClassVar

import equinox as eqx

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.joints._algebra import rows, unit
from jaxdyn.joints._joint import AbstractVectorJoint
from jaxdyn.spatial import axis_angle_to_matrix


class Helical(AbstractVectorJoint):
    """Screw joint: rotation by q (rad) about `axis` and translation by `pitch * q` along it (`pitch` in m/rad)."""

    axis: Float[Array, "*n 3"] = eqx.field(converter=as_float)
    pitch: Float[Array, "*n"] = eqx.field(converter=as_float)
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    translates: ClassVar[bool] = True

    def transform(self, q):
        a = unit(self.axis)
        d = self.pitch * q[0]
        return axis_angle_to_matrix(a, q[0]), rows(a[0] * d, a[1] * d, a[2] * d)

    def subspace(self, q):
        a, h = unit(self.axis), self.pitch
        return rows(a[0], a[1], a[2], h * a[0], h * a[1], h * a[2])[:, None]

    def bias(self, q, v):
        return None
