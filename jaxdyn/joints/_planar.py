"""Motion in a plane."""

from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxdyn._numerics import sinc, sincos
from jaxdyn.joints._joint import AbstractJoint


class Planar(AbstractJoint):
    """Plane translation and rotation about z: `q = [x, y, angle]` (m, rad), `v = [vx, vy, w]`, child axes."""

    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3
    translates: ClassVar[bool] = True

    def transform(self, q):
        s, c = sincos(q[2])
        one, zero = jnp.ones_like(s), jnp.zeros_like(s)
        rotation = jnp.stack([jnp.stack([c, -s, zero]), jnp.stack([s, c, zero]), jnp.stack([zero, zero, one])])
        return rotation, jnp.stack([q[0], q[1], zero])

    def subspace(self, q):
        one, zero = jnp.ones_like(q[0]), jnp.zeros_like(q[0])
        columns = (
            (zero, zero, zero, one, zero, zero),
            (zero, zero, zero, zero, one, zero),
            (zero, zero, one, zero, zero, zero),
        )
        return jnp.stack([jnp.stack(c) for c in columns], axis=1)

    def bias(self, q, v):
        return None

    def neutral(self, dtype):
        return jnp.zeros(3, dtype)

    def integrate(self, q, dv):
        # circular arc of a constant body velocity: p + R(q2) V(w) (vx, vy)
        a, b = _arc_coefficients(dv[2])
        x, y = a * dv[0] - b * dv[1], b * dv[0] + a * dv[1]
        s, c = sincos(q[2])
        return jnp.stack([q[0] + c * x - s * y, q[1] + s * x + c * y, q[2] + dv[2]])

    def difference(self, q0, q1):
        s, c = sincos(q1[2] - q0[2])
        w = jnp.arctan2(s, c)
        a, b = _arc_coefficients(w)
        s, c = sincos(q0[2])
        dx, dy = q1[0] - q0[0], q1[1] - q0[1]
        x, y = c * dx + s * dy, c * dy - s * dx
        d = a * a + b * b
        return jnp.stack([(a * x + b * y) / d, (a * y - b * x) / d, w])

    def random(self, key, dtype):
        return jax.random.uniform(key, (3,), dtype, -1, 1) * jnp.array([1, 1, jnp.pi], dtype)


def _arc_coefficients(w):
    """`sin(w)/w` and `(1 - cos(w))/w`, smooth at zero."""
    half = sinc(w * w / 4)
    return sinc(w * w), half * half * w / 2
