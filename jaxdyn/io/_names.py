"""Classes and functions by name: those that are public in jaxdyn, and those that a caller lists."""

import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Iterable
from typing import Any

import diffrax

_OWN = "jaxdyn"
_NAME = re.compile(r"jaxdyn(\.[a-z][a-z0-9_]*)*\.[A-Za-z][A-Za-z0-9_]*")
# a class that no folder exports, such as those of which a trajectory or an optimum is made: its module and its name
_INNER = re.compile(r"jaxdyn(\._?[a-z][a-z0-9_]*)*:_?[A-Za-z][A-Za-z0-9_]*")
# paths over time, which parts of systems hold
_PATHS = {f"diffrax.{x.__name__}": x for x in (diffrax.LinearInterpolation, diffrax.CubicInterpolation)}
_EDGE = ("jaxdyn.io", "jaxdyn.cli", "jaxdyn.viz", "jaxdyn.distributed")


def is_class(value: Any) -> bool:
    """Whether a value is a class whose instances are known by their fields."""
    return inspect.isclass(value) and (dataclasses.is_dataclass(value) or hasattr(value, "_fields"))


def is_enum(value: Any) -> bool:
    """Whether a value is a class of named values."""
    return inspect.isclass(value) and issubclass(value, enum.Enum)


class Names:
    """Both ways between classes or functions and the names that files hold."""

    def __init__(self, allow: Iterable[Any] = ()):
        self._given = {f"{x.__module__}:{x.__qualname__}": x for x in allow}

    def name(self, value: Any) -> str | None:
        """What a file calls a class or function, or None if it may not hold it."""
        key = f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', '')}"
        if self._given.get(key) is value:
            return key
        listed = next((name for name, path in _PATHS.items() if path is value), None)
        return listed or _public(value) or (key if is_class(value) and _inner(key) is value else None)

    def find(self, name: str) -> Any:
        """The class or function called so, or None."""
        if name in self._given:
            return self._given[name]
        if name in _PATHS:
            return _PATHS[name]
        if ":" in name:
            return _inner(name)
        if not _NAME.fullmatch(name) or name.startswith(_EDGE):
            return None
        module, _, last = name.rpartition(".")
        try:
            value = getattr(importlib.import_module(module), last, None)
        except ImportError:
            return None
        return value if value is not None and _public(value) == name else None


def _inner(name: str) -> Any:
    """A class with fields by its module in jaxdyn and its name there, or None."""
    if not _INNER.fullmatch(name) or name.startswith(_EDGE):
        return None
    module, _, last = name.partition(":")
    try:
        value = getattr(importlib.import_module(module), last, None)
    except ImportError:
        return None
    return value if is_class(value) and value.__module__ == module else None


def _public(value: Any) -> str | None:
    """The folder of jaxdyn that exports a class or function under its own name, and that name."""
    module, name = getattr(value, "__module__", None) or "", getattr(value, "__qualname__", "")
    if module.partition(".")[0] != _OWN or module.startswith(_EDGE):
        return None
    if not (is_class(value) or is_enum(value) or inspect.isfunction(value) or hasattr(value, "__wrapped__")):
        return None
    while True:
        public = not any(part.startswith("_") for part in module.split("."))
        if public and getattr(importlib.import_module(module), name, None) is value:
            return f"{module}.{name}"
        if "." not in module:
            return None
        module = module.rpartition(".")[0]
