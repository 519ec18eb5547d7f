"""Interpolations between the steps of a solver, which files name by the solver whose they are."""

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import diffrax

_FOLDERS = ("diffrax", "jaxdyn.simulation")


def name_of(kind: Any) -> str | None:
    """The first public solver that makes interpolations of a kind, as `diffrax.Tsit5`."""
    if not (inspect.isclass(kind) or inspect.isroutine(kind)):
        return None
    return next((name for name, own in _all() if own == kind), None)


def find(name: str) -> Any:
    """The interpolations of the solver of this name, or None."""
    return dict(_all()).get(name)


def _all() -> Iterator[tuple[str, Any]]:
    for folder in _FOLDERS:
        module = importlib.import_module(folder)
        for name in sorted(vars(module)):
            solver = getattr(module, name)
            if inspect.isclass(solver) and issubclass(solver, diffrax.AbstractSolver) and name[0] != "_":
                kind = inspect.getattr_static(solver, "interpolation_cls", None)
                if kind is not None and not isinstance(kind, property):
                    yield f"{folder}.{name}", getattr(solver, "interpolation_cls")  # noqa: B009
