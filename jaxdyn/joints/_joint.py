"""The contract of a joint.

A joint moves its *child frame* relative to its *joint frame*, which the model places in the parent link.
It is a small pytree whose leaves are its parameters (an axis, a pitch), and pure functions of its own
coordinates:

* `transform(q)` gives `(R, p)`, the pose of the child frame in the joint frame;
* `subspace(q)` gives `S`, shape `(6, nv)`, angular rows first: the velocity of the child frame relative to
  the joint frame is `S v`, in child axes, at the child origin;
* `bias(q, v)` gives `Sdot v`, the part of the relative acceleration that is not `S a`, or None where S is
  constant;
* `integrate(q, dv)` and `difference(q0, q1)` move on the joint's configuration manifold.

Axes: functions of a joint receive arrays whose leading axes are as above and which may carry further
trailing axes (a block of samples). Written with elementwise operations on components, `q[0]`, `axis[1]`, they
serve one sample and a block alike.
"""

import abc
import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp


class AbstractJoint(eqx.Module):
    """What every joint provides; see the module's text for the conventions of axes and frames."""

    nq: eqx.AbstractVar[int]
    nv: eqx.AbstractVar[int]
    #: whether S has linear rows, or the child origin moves: known without values, so that the
    #: algorithms can leave out arithmetic on zeros
    translates: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def transform(self, q) -> Any:
        """Pose `(R, p)` of the child frame in the joint frame."""

    @abc.abstractmethod
    def subspace(self, q) -> Any:
        """Motion subspace `S` in child axes, `(6, nv, ...)`."""

    @abc.abstractmethod
    def bias(self, q, v) -> Any:
        """`Sdot v` in child axes, `(6, ...)`, or None where S does not depend on q."""

    @abc.abstractmethod
    def neutral(self, dtype) -> Any:
        """The joint at its zero."""

    @abc.abstractmethod
    def integrate(self, q, dv) -> Any:
        """The configuration reached from q by the velocity dv held for unit time."""

    @abc.abstractmethod
    def difference(self, q0, q1) -> Any:
        """The velocity that leads from q0 to q1 in unit time."""

    @abc.abstractmethod
    def random(self, key, dtype) -> Any:
        """A random configuration of unbounded coordinates."""


class AbstractVectorJoint(AbstractJoint):
    """A joint whose coordinates are a plain vector with `qdot = v`."""

    #: random coordinates lie between this and its negative
    span: ClassVar[float] = math.pi

    def neutral(self, dtype):
        return jnp.zeros(self.nq, dtype)

    def integrate(self, q, dv):
        return q + dv

    def difference(self, q0, q1):
        return q1 - q0

    def random(self, key, dtype):
        return jax.random.uniform(key, (self.nq,), dtype, -self.span, self.span)


def rows(*components):
    """Stacks components of unequal trailing shapes into one array."""
    return jnp.stack(jnp.broadcast_arrays(*(jnp.asarray(c) for c in components)))


def unit(axis):
    """The axis at unit length, wherever it is used: the leaf itself may have any length but zero."""
    length = jnp.sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2])
    return jnp.stack([axis[k] / length for k in range(3)])


def identity(like):
    """`(R, p)` of no displacement, shaped after the component `like`."""
    one, zero = jnp.ones_like(like), jnp.zeros_like(like)
    return jnp.stack([jnp.stack([one, zero, zero]), jnp.stack([zero, one, zero]), jnp.stack([zero, zero, one])])


def subspace_of(transform, q, nq: int):
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


def bias_of(subspace, q, v):
    """`Sdot v` for a joint with `qdot = v`."""
    q, v = jnp.broadcast_arrays(q, v)
    _, ds = jax.jvp(subspace, (q,), (v,))
    return sum(ds[:, k] * v[k] for k in range(v.shape[0]))


def as_float(x):
    """A parameter as a floating-point array."""
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.result_type(float))
