"""Floating base: six degrees of freedom."""

from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxdyn._numerics import sinc
from jaxdyn.joints._algebra import cross, rotate
from jaxdyn.joints._joint import AbstractJoint
from jaxdyn.joints._spherical import random_quaternion
from jaxdyn.spatial import (
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_multiply,
    quaternion_normalize,
    quaternion_to_matrix,
)


def _cubic_coefficient(x2):
    """`(x - sin x) / x^3` as a function of `x^2`, smooth at zero."""
    small = x2 < 1e-1
    y = jnp.where(small, x2, 0)
    series = (1 - y / 20 * (1 - y / 42 * (1 - y / 72 * (1 - y / 110 * (1 - y / 156))))) / 6
    return jnp.where(small, series, (1 - sinc(x2)) / jnp.where(small, 1, x2))


def _se3_left(w, u):
    """`u + (1 - cos)/t^2 w x u + (t - sin)/t^3 w x (w x u)`: translation of the exponential of (w, u)."""
    t2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    half = sinc(t2 / 4)
    wu = cross(w, u)
    return u + half * half / 2 * wu + _cubic_coefficient(t2) * cross(w, wu)


def _se3_left_inverse(w, u):
    """Inverse of `_se3_left`: `u - w x u / 2 + k w x (w x u)`, `k = (1 - (t/2) cot(t/2)) / t^2`."""
    t2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    small = t2 < 1e-1
    y = jnp.where(small, t2, 0)
    series = (1 + y / 60 * (1 + y / 42 * (1 + y / 40 * (1 + 5 * y / 198)))) / 12
    t = jnp.sqrt(jnp.where(small, 1, t2))
    k = jnp.where(small, series, (1 - t / 2 * jnp.cos(t / 2) / jnp.sin(t / 2)) / (t * t))
    wu = cross(w, u)
    return u - wu / 2 + k * cross(w, wu)


class Free(AbstractJoint):
    """Free joint: `q = [quaternion w x y z, position]` (m), `v = [angular, linear]` in child axes (rad/s, m/s)."""

    nq: ClassVar[int] = 7
    nv: ClassVar[int] = 6
    translates: ClassVar[bool] = True

    def transform(self, q):
        return quaternion_to_matrix(q[:4]), q[4:7]

    def subspace(self, q):
        one, zero = jnp.ones_like(q[0]), jnp.zeros_like(q[0])
        return jnp.stack([jnp.stack([one if i == k else zero for i in range(6)]) for k in range(6)], axis=1)

    def bias(self, q, v):
        return None

    def neutral(self, dtype):
        return jnp.array([1, 0, 0, 0, 0, 0, 0], dtype)

    def integrate(self, q, dv):
        step = rotate(quaternion_to_matrix(q[:4]), _se3_left(dv[:3], dv[3:]))
        quaternion = quaternion_normalize(quaternion_multiply(q[:4], quaternion_exp(dv[:3])))
        return jnp.concatenate([quaternion, q[4:] + step])

    def difference(self, q0, q1):
        a, b = quaternion_normalize(q0[:4]), quaternion_normalize(q1[:4])
        w = quaternion_log(quaternion_multiply(quaternion_conjugate(a), b))
        inverse = quaternion_to_matrix(quaternion_conjugate(a))
        return jnp.concatenate([w, _se3_left_inverse(w, rotate(inverse, q1[4:] - q0[4:]))])

    def random(self, key, dtype):
        rotation_key, position_key = jax.random.split(key)
        position = jax.random.uniform(position_key, (3,), dtype, -1, 1)
        return jnp.concatenate([random_quaternion(rotation_key, dtype), position])
