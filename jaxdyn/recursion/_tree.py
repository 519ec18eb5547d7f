"""The interface of a model to the recursions."""

from typing import Any, Protocol, runtime_checkable

from jaxdyn.recursion._topology import Topology


@runtime_checkable
class TreeModel(Protocol):
    """The fields of `jaxdyn.model.Model` that the recursions read. `model` imports this folder, not vice versa."""

    @property
    def topology(self) -> Topology: ...
    @property
    def links(self) -> Any: ...
    @property
    def placements(self) -> Any: ...
    @property
    def joints(self) -> tuple[Any, ...]: ...
    @property
    def properties(self) -> Any: ...
    @property
    def mimic(self) -> Any: ...
    @property
    def gravity(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...
