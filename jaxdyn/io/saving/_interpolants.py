"""Interpolations between the steps of a solver, which files name by the solver that makes them."""

import functools
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import diffrax

_FOLDERS = ("diffrax", "jaxdyn.simulation")


def solver_name(kind: Any) -> str | None:
    """The name of the first public solver that makes interpolations of a kind, such as `diffrax.Tsit5`, or None."""
    if not (inspect.isclass(kind) or inspect.isroutine(kind)):
        return None
    return next((name for name, found in _solver_interpolations() if found == kind), None)


def find_interpolation(name: str) -> Any:
    """The kind of interpolation that the solver of a name makes, or None."""
    return _interpolations_by_solver().get(name)


@functools.cache
def _interpolations_by_solver() -> dict[str, Any]:
    return dict(_solver_interpolations())


def _solver_interpolations() -> Iterator[tuple[str, Any]]:
    for folder in _FOLDERS:
        module = importlib.import_module(folder)
        for name in sorted(vars(module)):
            solver = getattr(module, name)
            if inspect.isclass(solver) and issubclass(solver, diffrax.AbstractSolver) and name[0] != "_":
                kind = inspect.getattr_static(solver, "interpolation_cls", None)
                if kind is not None and not isinstance(kind, property):
                    yield f"{folder}.{name}", getattr(solver, "interpolation_cls")  # noqa: B009
