"""A joint given by a function of its coordinates."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn.joints._joint import AbstractVectorJoint, bias_of, subspace_of


class Custom(AbstractVectorJoint):
    """Pose of the child frame as any smooth function `transform_fn(params, q) -> (R, p)`.

    `params` is a pytree of leaves. The motion subspace and its rate come from the function by automatic
    differentiation: `w = vee(R^T Rdot)`, `v = R^T pdot`, with `qdot = v`. `transform_fn` is written for one
    sample and may use any JAX operation.
    """

    params: Any
    transform_fn: Callable = eqx.field(static=True)
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
        each = self.transform_fn
        for _ in range(k):
            each = jax.vmap(each, in_axes=-1, out_axes=-1)
        return each(jax.tree.map(wide, self.params), wide(q))

    def subspace(self, q):
        return subspace_of(self.transform, q, self.nq)

    def bias(self, q, v):
        return bias_of(self.subspace, q, v)
