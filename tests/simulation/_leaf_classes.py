"""The classes whose fields are numbers of a system, and those that a pytree contains."""

import dataclasses
import importlib
import inspect
import pkgutil

import equinox as eqx

#: fields of classes in these packages are numbers of a system
PACKAGES = (
    "actuators",
    "control",
    "constraints.types",
    "constraints._motion",
    "simulation.system",
    "simulation.drives",
)
PACKAGES += ("simulation.events", "simulation.linearisation", "flexible")
#: states and results, which hold no numbers of a system, and containers
RESULTS = {
    "PowerFlow", "MotorState", "SteadyTemperature", "CascadeMemory", "Lqr", "Riccati", "DriveLoads", "InputTable",
    "RequiredInputs", "Log", "SystemLqr", "State", "PackedParts", "SampledState", "ChartedState", "System",
    "JointLimit", "GuardRoots", "Phases", "SwitchCondition", "SwitchUpdate",
}  # fmt: skip


def classes_with_numbers() -> set[type]:
    """The concrete classes of `PACKAGES` whose fields may be numbers of a system."""
    modules = [importlib.import_module(f"jaxdyn.{name}") for name in PACKAGES]
    for package in [m for m in modules if hasattr(m, "__path__")]:
        modules += [
            importlib.import_module(m.name) for m in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
        ]
    prefixes = tuple(f"jaxdyn.{name}" for name in PACKAGES)
    return {
        c
        for module in modules
        for c in vars(module).values()
        if inspect.isclass(c)
        and issubclass(c, eqx.Module)
        and c.__module__.startswith(prefixes)
        and not inspect.isabstract(c)
        and not c.__name__.startswith("Abstract")
        and c.__name__ not in RESULTS
        and any(not field.metadata.get("static") for field in dataclasses.fields(c))
    }


def classes_in(tree) -> set[type]:
    """The classes of all modules of a pytree."""
    if isinstance(tree, eqx.Module):
        inner = [getattr(tree, field.name) for field in dataclasses.fields(tree) if hasattr(tree, field.name)]
        return {type(tree)}.union(*map(classes_in, inner))
    if isinstance(tree, tuple | list):
        return set().union(*map(classes_in, tree)) if tree else set()
    return set()
