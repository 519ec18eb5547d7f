"""Classes and functions by name: those that are public in jaxdyn, and those that a caller lists."""

import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Iterable
from typing import Any

_OWN = "jaxdyn"
_NAME = re.compile(r"jaxdyn(\.[a-z][a-z0-9_]*)*\.[A-Za-z][A-Za-z0-9_]*")
# parts of trajectories that nobody constructs
_INNER = (
    "jaxdyn.simulation._manifold:_Interpolations",
    "jaxdyn.simulation._momentum:_Interpolations",
    "jaxdyn.simulation._trajectory:Batched",
)
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
        if self._given.get(key) is value or (key in _INNER and _inner(key) is value):
            return key
        return _public(value)

    def find(self, name: str) -> Any:
        """The class or function called so, or None."""
        if name in self._given:
            return self._given[name]
        if name in _INNER:
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
    module, _, last = name.partition(":")
    return getattr(importlib.import_module(module), last, None)


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
