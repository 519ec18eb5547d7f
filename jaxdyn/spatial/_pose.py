"""Poses: a rotation and a translation."""

import functools as ft

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.spatial._rotation import matrix_to_quaternion, quaternion_to_matrix
from jaxdyn.spatial._skew import skew

_matmul = ft.partial(jnp.matmul, precision="highest")


def _rotate(rotation, point):
    return _matmul(rotation, point[..., None])[..., 0]


class Pose(eqx.Module):
    """Pose `T_ab` of a frame b in a frame a: `x_a = R x_b + p` (Murray, Li and Sastry 1994, section 2.3).

    Arguments:

    * `rotation`: rotation matrix `(..., 3, 3)`, whose columns are the axes of b in a.
    * `translation`: origin of b in a, `(..., 3)`, m.

    Leading axes are batch axes. `a @ b` composes poses, `inverse()`, `apply(point)`, `adjoint()` and `quaternion()` do
    what their names say. Example:

    ```python
    import jax.numpy as jnp
    from jaxdyn.spatial import Pose, rpy_to_matrix

    T_ab = Pose(rpy_to_matrix([0.0, 0.0, jnp.pi / 2]), [1.0, 0.0, 0.0])
    point = T_ab.apply(jnp.array([0.5, 0.0, 0.0]))  # given in b
    assert jnp.allclose(point, jnp.array([1.0, 0.5, 0.0]), atol=1e-6)
    assert jnp.allclose((T_ab @ T_ab.inverse()).rotation, jnp.eye(3), atol=1e-6)
    ```
    """

    rotation: Float[Array, "*batch 3 3"] = eqx.field(converter=as_float)
    translation: Float[Array, "*batch 3"] = eqx.field(converter=as_float)

    @classmethod
    def identity(cls, dtype=None) -> "Pose":
        """The identity, the pose of a frame in itself."""
        dtype = jnp.result_type(float) if dtype is None else dtype
        return cls(jnp.eye(3, dtype=dtype), jnp.zeros(3, dtype))

    @classmethod
    def from_quaternion(cls, quaternion, translation=(0.0, 0.0, 0.0)) -> "Pose":
        """Pose from a quaternion (scalar first, of any non-zero norm) and a translation (m)."""
        matrix = quaternion_to_matrix(jnp.moveaxis(as_float(quaternion), -1, 0))
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
        """Coordinates in a of a point given in b: `R x + p`."""
        return _rotate(self.rotation, jnp.asarray(point)) + self.translation

    def adjoint(self) -> Float[Array, "*batch 6 6"]:
        """Transform of motion vectors from b to a: `[[R, 0], [[p] R, R]]` (Featherstone 2008, 2.24)."""
        r = self.rotation
        top = jnp.concatenate([r, jnp.zeros_like(r)], -1)
        return jnp.concatenate([top, jnp.concatenate([_matmul(skew(self.translation), r), r], -1)], -2)
