"""The interface of a model to the recursions."""

from typing import Protocol, runtime_checkable

import numpy as np

from jaxdyn._types import Array, Float, PyTree
from jaxdyn.joints import AbstractJoint
from jaxdyn.recursion._topology import Topology


@runtime_checkable
class TreeModel(Protocol):
    """The fields of `jaxdyn.model.Model` that the recursions read. `model` imports this folder, not vice versa."""

    @property
    def topology(self) -> Topology: ...
    @property
    def links(self) -> PyTree: ...
    @property
    def placements(self) -> PyTree: ...
    @property
    def joints(self) -> tuple[AbstractJoint, ...]: ...
    @property
    def properties(self) -> PyTree: ...
    @property
    def mimic(self) -> PyTree: ...
    @property
    def gravity(self) -> Float[Array, "*batch 3"]: ...
    @property
    def dtype(self) -> np.dtype: ...
