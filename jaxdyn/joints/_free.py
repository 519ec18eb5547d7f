"""Six degrees of freedom."""

from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxdyn._numerics import sinc
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


def _cross(a, b):
    return jnp.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def _turn(r, x):
    return jnp.stack([sum(r[i, k] * x[k] for k in range(3)) for i in range(3)])


def _cubic(x2):
    """`(x - sin x) / x^3` as a function of `x^2`, smooth at zero."""
    small = x2 < 1e-1
    y = jnp.where(small, x2, 0)
    series = (1 - y / 20 * (1 - y / 42 * (1 - y / 72 * (1 - y / 110 * (1 - y / 156))))) / 6
    return jnp.where(small, series, (1 - sinc(x2)) / jnp.where(small, 1, x2))


def _se3_left(w, u):
    """`u + (1 - cos)/t^2 w x u + (t - sin)/t^3 w x (w x u)`: translation of the exponential of (w, u)."""
    t2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    half = sinc(t2 / 4)
    wu = _cross(w, u)
    return u + half * half / 2 * wu + _cubic(t2) * _cross(w, wu)


def _se3_left_inverse(w, u):
    """Inverse of `_se3_left`: `u - w x u / 2 + k w x (w x u)`, `k = (1 - (t/2) cot(t/2)) / t^2`."""
    t2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    small = t2 < 1e-1
    y = jnp.where(small, t2, 0)
    series = (1 + y / 60 * (1 + y / 42 * (1 + y / 40 * (1 + 5 * y / 198)))) / 12
    t = jnp.sqrt(jnp.where(small, 1, t2))
    k = jnp.where(small, series, (1 - t / 2 * jnp.cos(t / 2) / jnp.sin(t / 2)) / (t * t))
    wu = _cross(w, u)
    return u - wu / 2 + k * _cross(w, wu)


class Free(AbstractJoint):
    """Any motion: `q = [quaternion w x y z, position]`, `v = [angular, linear]`, both in child axes."""

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
        step = _turn(quaternion_to_matrix(q[:4]), _se3_left(dv[:3], dv[3:]))
        turned = quaternion_normalize(quaternion_multiply(q[:4], quaternion_exp(dv[:3])))
        return jnp.concatenate([turned, q[4:] + step])

    def difference(self, q0, q1):
        a, b = quaternion_normalize(q0[:4]), quaternion_normalize(q1[:4])
        w = quaternion_log(quaternion_multiply(quaternion_conjugate(a), b))
        back = quaternion_to_matrix(quaternion_conjugate(a))
        return jnp.concatenate([w, _se3_left_inverse(w, _turn(back, q1[4:] - q0[4:]))])

    def random(self, key, dtype):
        turn, move = jax.random.split(key)
        position = jax.random.uniform(move, (3,), dtype, -1, 1)
        return jnp.concatenate([random_quaternion(turn, dtype), position])
