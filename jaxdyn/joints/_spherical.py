"""Spherical joints, by quaternion and by z-y-x Euler angles."""

from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxdyn._numerics import sincos
from jaxdyn.joints._algebra import rows
from jaxdyn.joints._joint import AbstractJoint, AbstractVectorJoint, differentiate_subspace
from jaxdyn.spatial import (
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_multiply,
    quaternion_normalize,
    quaternion_to_matrix,
)


def random_quaternion(key, dtype):
    """A random rotation, uniform over SO(3): a normalised Gaussian quaternion."""
    return quaternion_normalize(jax.random.normal(key, (4,), dtype))


class Spherical(AbstractJoint):
    """Spherical joint: q is a quaternion (scalar first), v the angular velocity in child axes (rad/s)."""

    nq: ClassVar[int] = 4
    nv: ClassVar[int] = 3
    translates: ClassVar[bool] = False

    def transform(self, q):
        rotation = quaternion_to_matrix(q)
        return rotation, jnp.zeros_like(rotation[0])

    def subspace(self, q):
        one, zero = jnp.ones_like(q[0]), jnp.zeros_like(q[0])
        return jnp.stack([jnp.stack([one if i == k else zero for i in range(6)]) for k in range(3)], axis=1)

    def bias(self, q, v):
        return None

    def neutral(self, dtype):
        return jnp.array([1, 0, 0, 0], dtype)

    def integrate(self, q, dv):
        return quaternion_normalize(quaternion_multiply(q, quaternion_exp(dv)))

    def difference(self, q0, q1):
        q0, q1 = quaternion_normalize(q0), quaternion_normalize(q1)
        return quaternion_log(quaternion_multiply(quaternion_conjugate(q0), q1))

    def random(self, key, dtype):
        return random_quaternion(key, dtype)


class SphericalZYX(AbstractVectorJoint):
    """Spherical joint by Euler angles: `Rz(q0) Ry(q1) Rx(q2)` (rad), with `v = qdot`; singular at `q1 = +-pi/2`."""

    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3
    translates: ClassVar[bool] = False

    def transform(self, q):
        s0, c0 = sincos(q[0])
        s1, c1 = sincos(q[1])
        s2, c2 = sincos(q[2])
        rotation = jnp.stack(
            [
                rows(c0 * c1, c0 * s1 * s2 - s0 * c2, c0 * s1 * c2 + s0 * s2),
                rows(s0 * c1, s0 * s1 * s2 + c0 * c2, s0 * s1 * c2 - c0 * s2),
                rows(-s1, c1 * s2, c1 * c2),
            ]
        )
        return rotation, jnp.zeros_like(rotation[0])

    def subspace(self, q):
        s1, c1 = sincos(q[1])
        s2, c2 = sincos(q[2])
        one, zero = jnp.ones_like(s1), jnp.zeros_like(s1)
        columns = (
            (-s1, c1 * s2, c1 * c2, zero, zero, zero),
            (zero, c2, -s2, zero, zero, zero),
            (one, zero, zero, zero, zero, zero),
        )
        return jnp.stack([jnp.stack(c) for c in columns], axis=1)

    def bias(self, q, v):
        return differentiate_subspace(self.subspace, q, v)
