"""Names of classes and functions in files: public ones of jaxdyn, and those that a caller lists.

A class that no folder exports, such as the records inside a trajectory or an optimum, is named by its module, as in
`jaxdyn.trajopt.ilqr._state:State`. Modules and names change between versions; `find` therefore accepts a former name
if `_former_names` maps it to the present one, or if one class in the same top-level folder has the same name.
"""

import dataclasses
import enum
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable
from typing import Any

import diffrax

from jaxdyn.io.saving._former_names import PRESENT_NAMES

_OWN = "jaxdyn"
_NAME = re.compile(r"jaxdyn(\.[a-z][a-z0-9_]*)*\.[A-Za-z][A-Za-z0-9_]*")
# a class that no folder exports: its module and its name
_INNER = re.compile(r"jaxdyn(\._?[a-z][a-z0-9_]*)*:_?[A-Za-z][A-Za-z0-9_]*")
# interpolations over time, which parts of systems contain
_PATHS = {f"diffrax.{x.__name__}": x for x in (diffrax.LinearInterpolation, diffrax.CubicInterpolation)}
_EDGE = ("jaxdyn.io.", "jaxdyn.cli.", "jaxdyn.viz.", "jaxdyn.distributed.")


def is_class(value: Any) -> bool:
    """True for a class whose instances are determined by their fields."""
    return inspect.isclass(value) and (dataclasses.is_dataclass(value) or hasattr(value, "_fields"))


def is_enum(value: Any) -> bool:
    """True for an enumeration."""
    return inspect.isclass(value) and issubclass(value, enum.Enum)


class Names:
    """Maps classes and functions to their names in files, and back."""

    def __init__(self, allow: Iterable[Any] = ()):
        self._allowed = {f"{x.__module__}:{x.__qualname__}": x for x in allow}
        self._found: dict[str, Any] = {}

    def name(self, value: Any) -> str | None:
        """The name of a class or function in files, or None if it may not be saved."""
        key = f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', '')}"
        if self._allowed.get(key) is value:
            return key
        listed = next((name for name, path in _PATHS.items() if path is value), None)
        return listed or _public_name(value) or (key if is_class(value) and _inner_class(key) is value else None)

    def find(self, name: str) -> Any:
        """The class or function of a name, present or former, or None."""
        if name not in self._found:  # the search for a class that moved imports the modules of a folder
            self._found[name] = self._search(name)
        return self._found[name]

    def _search(self, name: str) -> Any:
        if name in self._allowed:
            return self._allowed[name]
        name = PRESENT_NAMES.get(name, name)
        if name in _PATHS:
            return _PATHS[name]
        if ":" in name:
            return _inner_class(name) or _moved_class(name)
        if not _NAME.fullmatch(name) or name.startswith(_EDGE):
            return None
        folder, _, last = name.rpartition(".")
        try:
            value = getattr(importlib.import_module(folder), last, None)
        except ImportError:
            return None
        is_known = value is not None and (folder != _OWN or _public_name(value) == name)
        return value if is_known and _exports(folder, last, value) else None


def _inner_class(name: str) -> Any:
    """The class with fields of a name `module:Class`, or None."""
    if not _INNER.fullmatch(name) or name.startswith(_EDGE):
        return None
    module, _, last = name.partition(":")
    try:
        value = getattr(importlib.import_module(module), last, None)
    except ImportError:
        return None
    return value if is_class(value) and value.__module__ == module else None


def _moved_class(name: str) -> Any:
    """The only class with fields of this name in the same top-level folder, or None."""
    if not _INNER.fullmatch(name) or name.startswith(_EDGE):
        return None
    module, _, last = name.partition(":")
    try:
        folder = importlib.import_module(".".join(module.split(".")[:2]))
    except ImportError:
        return None
    modules = pkgutil.walk_packages(getattr(folder, "__path__", ()), f"{folder.__name__}.")
    found = [x for info in modules if (x := _inner_class(f"{info.name}:{last}")) is not None]
    return found[0] if len(found) == 1 else None


def _public_name(value: Any) -> str | None:
    """The outermost folder in jaxdyn that exports a class or function, and its name there; or None."""
    module, name = getattr(value, "__module__", None) or "", getattr(value, "__qualname__", "")
    parts = module.split(".")
    depth = next((k for k, part in enumerate(parts) if part.startswith("_")), len(parts))
    folders = [".".join(parts[:k]) for k in (*range(2, depth + 1), 1)]
    return next((f"{folder}.{name}" for folder in folders if _exports(folder, name, value)), None)


def _exports(folder: str, name: str, value: Any) -> bool:
    """True if a folder exports a class or function of jaxdyn under its own name."""
    module = getattr(value, "__module__", None) or ""
    if (
        module.partition(".")[0] != _OWN
        or f"{module}.".startswith(_EDGE)
        or getattr(value, "__qualname__", None) != name
    ):
        return False
    if not (is_class(value) or is_enum(value) or inspect.isfunction(value) or hasattr(value, "__wrapped__")):
        return False
    return getattr(importlib.import_module(folder), name, None) is value
