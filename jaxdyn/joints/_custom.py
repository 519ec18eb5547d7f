"""A joint defined by a function of its coordinates."""

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Float, Mat3, PyTree, Vec3
from jaxdyn.joints._joint import AbstractVectorJoint, differentiate_subspace, differentiate_transform


class Custom(AbstractVectorJoint):
    """A joint whose pose is any smooth function `transform_fn(params, q) -> (R, p)`, with `qdot = v`.

    The motion subspace and its rate follow by automatic differentiation: `w = vee(R^T Rdot)`, `v = R^T pdot`.

    Arguments:

    * `params`: pytree of arrays, the leaves of the joint.
    * `transform_fn`: returns the rotation `(3, 3)` and the translation `(3,)` (m) of the child frame in the joint frame
      for one sample; it may use any JAX operation.
    * `nq`: number of coordinates.
    * `translates`: False if the child origin never moves in the joint frame.
    """

    params: PyTree
    transform_fn: Callable[[PyTree, Float[Array, " nq"]], tuple[Mat3, Vec3]] = eqx.field(static=True)
    nq: int = eqx.field(static=True)
    translates: bool = eqx.field(static=True, default=True)
    span: ClassVar[float] = 1.0

    @property
    def nv(self) -> int:
        return self.nq

    def transform(self, q):
        if q.ndim == 1:
            return self.transform_fn(self.params, q)
        batch = jnp.broadcast_shapes(
            q.shape[1:], *(x.shape[x.ndim - q.ndim + 1 :] for x in jax.tree.leaves(self.params))
        )
        k = q.ndim - 1
        wide = lambda x: jnp.broadcast_to(x, (*x.shape[: x.ndim - k], *batch))
        batched = self.transform_fn
        for _ in range(k):
            batched = jax.vmap(batched, in_axes=-1, out_axes=-1)
        return batched(jax.tree.map(wide, self.params), wide(q))

    def subspace(self, q):
        return differentiate_transform(self.transform, q, self.nq)

    def bias(self, q, v):
        return differentiate_subspace(self.subspace, q, v)
