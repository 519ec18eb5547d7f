"""Rigid placements: a rotation and a translation."""

import functools as ft

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.spatial._rotation import matrix_to_quaternion, quaternion_to_matrix

_matmul = ft.partial(jnp.matmul, precision="highest")


def _float(x):
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.result_type(float))


def _rotate(rotation, point):
    return _matmul(rotation, point[..., None])[..., 0]


def _skew(p):
    x, y, z = p[..., 0], p[..., 1], p[..., 2]
    o = jnp.zeros_like(x)
    rows = [jnp.stack(row, -1) for row in ((o, -z, y), (z, o, -x), (-y, x, o))]
    return jnp.stack(rows, -2)


class Pose(eqx.Module):
    """Pose `T_ab` of a frame b in a frame a: `x_a = R x_b + p`.

    `rotation` has the axes of b in a as columns, `translation` is b's origin in a (m). Leading axes, if
    any, are carried along. Murray, Li and Sastry 1994, section 2.3.
    """

    rotation: Float[Array, "*batch 3 3"] = eqx.field(converter=_float)
    translation: Float[Array, "*batch 3"] = eqx.field(converter=_float)

    @classmethod
    def identity(cls, dtype=None) -> "Pose":
        """The pose of a frame in itself."""
        dtype = jnp.result_type(float) if dtype is None else dtype
        return cls(jnp.eye(3, dtype=dtype), jnp.zeros(3, dtype))

    @classmethod
    def from_quaternion(cls, quaternion, translation=(0.0, 0.0, 0.0)) -> "Pose":
        """Pose with the rotation of a quaternion (scalar first, of any length but zero)."""
        matrix = quaternion_to_matrix(jnp.moveaxis(_float(quaternion), -1, 0))
        matrix = jnp.moveaxis(matrix, (0, 1), (-2, -1))
        translation = jnp.asarray(translation, matrix.dtype)
        return cls(matrix, jnp.broadcast_to(translation, (*matrix.shape[:-2], 3)))

    def quaternion(self) -> Float[Array, "*batch 4"]:
        """The rotation as a unit quaternion, scalar first."""
        return jnp.moveaxis(matrix_to_quaternion(jnp.moveaxis(self.rotation, (-2, -1), (0, 1))), 0, -1)

    def __matmul__(self, other: "Pose") -> "Pose":
        """Composition: `T_ac = T_ab @ T_bc`."""
        return Pose(
            _matmul(self.rotation, other.rotation),
            self.translation + _rotate(self.rotation, other.translation),
        )

    def inverse(self) -> "Pose":
        """`T_ba`: rotation `R^T`, translation `-R^T p`."""
        back = jnp.swapaxes(self.rotation, -1, -2)
        return Pose(back, -_rotate(back, self.translation))

    def apply(self, point) -> Float[Array, "*batch 3"]:
        """A point given in b, in a: `R x + p`."""
        return _rotate(self.rotation, jnp.asarray(point)) + self.translation

    def adjoint(self) -> Float[Array, "*batch 6 6"]:
        """Carries motion vectors from b to a: `[[R, 0], [[p] R, R]]` (Featherstone 2008, 2.24)."""
        r = self.rotation
        top = jnp.concatenate([r, jnp.zeros_like(r)], -1)
        return jnp.concatenate([top, jnp.concatenate([_matmul(_skew(self.translation), r), r], -1)], -2)
