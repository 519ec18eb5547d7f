"""Rigid connection of the child link to its parent."""

from typing import ClassVar

import jax.numpy as jnp

from jaxdyn.joints._joint import AbstractVectorJoint


class Fixed(AbstractVectorJoint):
    """A joint without coordinates: the child link is rigidly attached to its parent."""

    nq: ClassVar[int] = 0
    nv: ClassVar[int] = 0
    translates: ClassVar[bool] = False

    def transform(self, q):
        return jnp.eye(3, dtype=q.dtype), jnp.zeros(3, q.dtype)

    def subspace(self, q):
        return jnp.zeros((6, 0), q.dtype)

    def bias(self, q, v):
        return None
