"""The registry: every module of `targets` lists its targets in `TARGETS`."""

import functools
import importlib
import pkgutil

from tests.fuzz import targets as folder
from tests.fuzz.target import Target


@functools.cache
def find_targets() -> dict[str, Target]:
    """All targets by name."""
    found: dict[str, Target] = {}
    for module in pkgutil.iter_modules(folder.__path__):
        for target in importlib.import_module(f"{folder.__name__}.{module.name}").TARGETS:
            if target.name in found:
                raise ValueError(f"two targets are called {target.name!r}; rename one")
            found[target.name] = target
    return found
