"""User-defined joints with a configuration-dependent motion subspace and velocities that are not rates of coordinates.

Each is a shank that rolls on a thigh, two circles of equal radius, by the angle `angle(q)`: the child rotates by twice
the angle, with `S = dS/dangle`, and `bias` is the rate of S along `integrate`.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxdyn.joints import AbstractJoint

RADIUS = 0.15


def rolling_pose(s, c):
    """Pose of the child after rolling by an angle with this sine and cosine."""
    zero, one = 0 * s, 1 + 0 * s
    s2, c2 = 2 * s * c, c * c - s * s
    rotation = jnp.stack([jnp.stack([c2, zero, s2]), jnp.stack([zero, one, zero]), jnp.stack([-s2, zero, c2])])
    return rotation, 2 * RADIUS * jnp.stack([-s, zero, -c])


def rolling_twist(s, c):
    """Twist of the child, in its axes, for a unit rate of the angle."""
    zero = 0 * s
    return jnp.stack([zero, zero + 2, zero, -2 * RADIUS * c, zero, -2 * RADIUS * s])


class OnCircle(AbstractJoint):
    """`q = (cos, sin)` of the angle, of any norm, and v is the rate of the angle: more coordinates than velocities."""

    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 1
    translates: ClassVar[bool] = True

    def _unit(self, q):
        length = jnp.sqrt(q[0] * q[0] + q[1] * q[1])
        return q[1] / length, q[0] / length

    def transform(self, q):
        return rolling_pose(*self._unit(q))

    def subspace(self, q):
        return rolling_twist(*self._unit(q))[:, None]

    def bias(self, q, v):
        return bias_along_path(self, q, v)

    def neutral(self, dtype):
        return jnp.array([1, 0], dtype)

    def integrate(self, q, dv):
        ds, dc = jnp.sin(dv[0]), jnp.cos(dv[0])
        return jnp.stack([q[0] * dc - q[1] * ds, q[1] * dc + q[0] * ds])

    def difference(self, q0, q1):
        (s, c), (s1, c1) = self._unit(q0), self._unit(q1)
        return jnp.arctan2(c * s1 - s * c1, c * c1 + s * s1)[None]

    def random(self, key, dtype):
        return jax.random.normal(key, (2,), dtype)


class Stretched(AbstractJoint):
    """q is the angle and `v = exp(q) qdot`: v is not the rate of q."""

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    translates: ClassVar[bool] = True

    def transform(self, q):
        return rolling_pose(jnp.sin(q[0]), jnp.cos(q[0]))

    def subspace(self, q):
        return (jnp.exp(-q[0]) * rolling_twist(jnp.sin(q[0]), jnp.cos(q[0])))[:, None]

    def bias(self, q, v):
        return bias_along_path(self, q, v)

    def neutral(self, dtype):
        return jnp.zeros(1, dtype)

    def integrate(self, q, dv):
        return jnp.log(jnp.exp(q) + dv)

    def difference(self, q0, q1):
        return jnp.exp(q1) - jnp.exp(q0)

    def random(self, key, dtype):
        return jax.random.uniform(key, (1,), dtype, -1, 1)


def bias_along_path(joint, q, v):
    """`Sdot v` along `integrate`."""
    q, _ = jnp.broadcast_arrays(q, v[:1])
    _, rate = jax.jvp(lambda dv: joint.integrate(q, dv), (jnp.zeros_like(v),), (v,))
    _, ds = jax.jvp(joint.subspace, (q,), (jnp.broadcast_to(rate, q.shape),))
    return ds[:, 0] * v[0]
