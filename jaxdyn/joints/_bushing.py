"""Relative motion of two bodies that an elastic element connects, in symmetric coordinates."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._numerics import cubic_sinc, sinc
from jaxdyn.joints._algebra import cross, identity, rotate
from jaxdyn.joints._joint import AbstractVectorJoint, differentiate_subspace
from jaxdyn.spatial import rotation_vector_to_matrix


class Bushing(AbstractVectorJoint):
    """Rotation `exp(theta)` by a rotation vector and displacement `exp(theta / 2) d` in the axes half way between.

    The coordinates treat both bodies and all axes alike, so that springs of the coordinates are the law of a bushing, a
    flexure or a section of a beam: exchanging the two bodies changes the signs of the coordinates and nothing else.
    Angles about z, y and x in sequence do not have this property. Rotations must stay below a turn.

    Arguments:

    * `axes`: the component of `(theta, d)` for each coordinate, numbers from 0 to 5: rotations about x, y and z (rad),
      displacements along x, y and z (m). Components that are left out are zero. All six by default.

    ```python
    import jax.numpy as jnp
    from jaxdyn.joints import Bushing

    flexure = Bushing((2, 0))  # bending about z, torsion about x
    rotation, translation = flexure.transform(jnp.array([jnp.pi / 2, 0.0]))
    assert jnp.allclose(rotation @ jnp.array([1.0, 0, 0]), jnp.array([0.0, 1, 0]), atol=1e-6)
    ```
    """

    axes: tuple[int, ...] = eqx.field(static=True, converter=tuple, default=(0, 1, 2, 3, 4, 5))
    nq: int = eqx.field(static=True, init=False)
    nv: int = eqx.field(static=True, init=False)
    translates: bool = eqx.field(static=True, init=False)
    span: ClassVar[float] = 1.0

    def __post_init__(self):
        self.nq = self.nv = len(self.axes)
        self.translates = max(self.axes, default=0) > 2

    def __check_init__(self):
        if not self.axes or len({*self.axes} & set(range(6))) < len(self.axes):
            raise ModelError(
                f"the axes of a Bushing are {self.axes}; expected different numbers from 0 to 5, three rotations and "
                "three displacements"
            )

    def transform(self, q):
        turn, move = self._split(q)
        return rotation_vector_to_matrix(turn), rotate(rotation_vector_to_matrix(turn / 2), move)

    def subspace(self, q):
        turn, move = self._split(q)
        back, one = rotation_vector_to_matrix(-turn / 2), identity(q[0])
        columns = []
        for axis in self.axes:
            if axis > 2:
                spin, velocity = jnp.zeros_like(turn), rotate(back, one[axis - 3])
            else:
                spin = _body_rate(turn, one[axis])
                velocity = rotate(back, cross(_body_rate(turn / 2, one[axis]) / 2, move))
            columns.append(jnp.concatenate([spin, velocity]))
        return jnp.stack(columns, axis=1)

    def bias(self, q, v):
        return differentiate_subspace(self.subspace, q, v) if len(self.axes) > 1 else None

    def _split(self, q):
        place = {axis: k for k, axis in enumerate(self.axes)}
        parts = [q[place[axis]] if axis in place else jnp.zeros_like(q[0]) for axis in range(6)]
        return jnp.stack(parts[:3]), jnp.stack(parts[3:])


def _body_rate(turn, rate):
    """Angular velocity in turned axes: `(1 - (1 - cos t)/t^2 [theta] + (t - sin t)/t^3 [theta]^2) thetadot`."""
    t2 = turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2]
    once = cross(turn, rate)
    return rate - sinc(t2 / 4) ** 2 / 2 * once + cubic_sinc(t2) * cross(turn, once)
