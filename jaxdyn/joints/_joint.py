"""The joint contract.

A joint moves its *child frame* relative to its *joint frame*, which the model places in the parent link.
It is a small pytree whose leaves are its parameters (an axis, a pitch), with pure functions of its own
coordinates:

* `transform(q)` returns `(R, p)`, the pose of the child frame in the joint frame;
* `subspace(q)` returns the motion subspace `S`, `(6, nv)`, angular rows first: the velocity of the child frame
  relative to the joint frame is `S v`, in child axes, at the child origin;
* `bias(q, v)` returns `Sdot v`, the part of the relative acceleration `S a + Sdot v` that does not depend on
  the joint acceleration, or None if S is constant;
* `integrate(q, dv)` and `difference(q0, q1)` move on the joint's configuration manifold.

Axes: functions of a joint receive arrays whose leading axes are as above, followed by any number of trailing
axes (all joints of one type, a block of samples). Functions written with elementwise operations on components, `q[0]`,
`axis[1]`, serve one sample and a block alike.
"""

import abc
import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp


class AbstractJoint(eqx.Module):
    """The joint contract: coordinates `q` (nq), velocities `v` (nv), and the functions below.

    Frames and axes: see the docstring of this module and docs/joints.md.
    """

    nq: eqx.AbstractVar[int]
    nv: eqx.AbstractVar[int]
    #: True if S has linear rows or the child origin moves. Static, so that the algorithms can omit
    #: arithmetic on zeros
    translates: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def transform(self, q) -> tuple[jax.Array, jax.Array]:
        """Pose `(R, p)` of the child frame in the joint frame, `(3, 3, ...)` and `(3, ...)`, m."""

    @abc.abstractmethod
    def subspace(self, q) -> jax.Array:
        """Motion subspace `S` in child axes, `(6, nv, ...)`."""

    @abc.abstractmethod
    def bias(self, q, v) -> jax.Array | None:
        """`Sdot v` in child axes, `(6, ...)`, or None if S does not depend on q."""

    @abc.abstractmethod
    def neutral(self, dtype) -> jax.Array:
        """The zero configuration, `(nq,)`."""

    @abc.abstractmethod
    def integrate(self, q, dv) -> jax.Array:
        """The configuration reached from q by the constant velocity dv in unit time."""

    @abc.abstractmethod
    def difference(self, q0, q1) -> jax.Array:
        """The constant velocity that leads from q0 to q1 in unit time; inverse of `integrate`."""

    @abc.abstractmethod
    def random(self, key, dtype) -> jax.Array:
        """A random configuration, without regard to limits."""


class AbstractVectorJoint(AbstractJoint):
    """A joint whose coordinates are a vector with `qdot = v`."""

    #: random coordinates are uniform between `-span` and `span`
    span: ClassVar[float] = math.pi

    def neutral(self, dtype):
        return jnp.zeros(self.nq, dtype)

    def integrate(self, q, dv):
        return q + dv

    def difference(self, q0, q1):
        return q1 - q0

    def random(self, key, dtype):
        return jax.random.uniform(key, (self.nq,), dtype, -self.span, self.span)


def differentiate_transform(transform, q, nq: int) -> jax.Array:
    """Motion subspace of `transform`, a function of q with `qdot = v`, by forward differentiation.

    With `(R, p) = transform(q)` the relative twist in child axes is `w = vee(R^T dR)`, `v = R^T dp`.
    """
    columns = []
    for k in range(nq):
        dq = jnp.zeros_like(q).at[k].set(1)
        (r, _), (dr, dp) = jax.jvp(transform, (q,), (dq,))
        spin = lambda i, j: sum(r[m, i] * dr[m, j] for m in range(3))  # noqa: B023
        columns.append(
            jnp.stack([spin(2, 1), spin(0, 2), spin(1, 0)] + [sum(r[m, i] * dp[m] for m in range(3)) for i in range(3)])
        )
    return jnp.stack(columns, axis=1)


def differentiate_subspace(subspace, q, v):
    """`Sdot v` of a joint with `qdot = v`, by forward differentiation."""
    q, v = jnp.broadcast_arrays(q, v)
    _, ds = jax.jvp(subspace, (q,), (v,))
    return sum(ds[:, k] * v[k] for k in range(v.shape[0]))
