"""Submodules that `import jaxdyn` does not load; they load at their first use as attributes."""

import importlib
import sys
from types import ModuleType

ON_DEMAND = (
    "beams",
    "contact",
    "distributed",
    "flexible",
    "formulations",
    "identification",
    "paths",
    "trajopt",
    "viz",
)


def __getattr__(name: str) -> ModuleType:
    if name in ON_DEMAND:
        return importlib.import_module(f"jaxdyn.{name}")
    raise AttributeError(f"module 'jaxdyn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*vars(sys.modules["jaxdyn"]), *ON_DEMAND})
