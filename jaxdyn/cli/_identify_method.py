"""From the words and tables of a configuration to the method of a fit and what it takes."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import optax

from jaxdyn import actuators, identification
from jaxdyn._errors import ModelError
from jaxdyn.cli._identify_arguments import METHODS
from jaxdyn.cli._identify_config import Config
from jaxdyn.identification import AbstractMethod, Cauchy, FreeStart, GeometricPrior, Huber, MeasuredStart, Windows
from jaxdyn.model import Model
from jaxdyn.simulation import System

_LOSSES = {"huber": Huber, "cauchy": Cauchy}
_STARTS = {"measured": MeasuredStart, "free": FreeStart}
#: methods that hand their residual to another one
_OUTER = ("output-error", "low-passed")
#: entries of [fit] that only some methods take
_ONLY: dict[str, tuple[str, ...]] = {
    "windows": ("output-error",),
    "start": ("output-error",),
    "solver": _OUTER,
    "optimiser": ("first-order",),
}


def method_of(config: Config) -> AbstractMethod:
    """The method that a configuration asks for, or `ModelError` with the entry that does not suit it."""
    for entry, methods in _ONLY.items():
        if getattr(config, entry) is not None and config.method not in methods:
            raise ModelError(f"fit.{entry} is for the method {' or '.join(methods)}; this one is {config.method!r}")
    if config.method not in _OUTER:
        return _inner(config.method, config.options, config, "fit.options")
    solver = {"method": "physical", **(config.solver or {})}
    name = solver.pop("method")
    if name not in METHODS or name in (*_OUTER, "first-order"):
        raise ModelError(f"fit.solver.method is {name!r}; expected linear, physical or levenberg-marquardt")
    parts: dict[str, Any] = {"solver": _inner(name, solver, config, "fit.solver")}
    if config.windows is not None:
        parts["windows"] = _made("fit.windows", Windows, config.windows)
    if config.start is not None:
        parts["start"] = _named("fit.start", config.start, _STARTS)
    return _made("fit.options", getattr(identification, METHODS[config.method]), config.options, parts)


def prior_of(config: Config) -> GeometricPrior | None:
    """The prior, or None for the usual one."""
    return None if config.prior is None else _made("fit.prior", GeometricPrior, config.prior)


def system_of(model: Model, config: Config) -> System:
    """The robot with the parts that a configuration names."""
    parts: tuple[Any, ...] = ()
    for name, make in (("friction", actuators.joint_friction), ("drive", actuators.drive)):
        given = getattr(config, name)
        if given is not None:
            try:
                parts += (make(model, **{k: jnp.asarray(x, model.dtype) for k, x in given.items()}),)
            except (TypeError, ValueError) as error:
                raise ModelError(f"fit.{name}: {error}") from None
    return System(model, parts)


def _inner(name: str, options: Mapping[str, Any], config: Config, where: str) -> AbstractMethod:
    parts: dict[str, Any] = {}
    if config.loss is not None:
        parts["loss"] = _named("fit.loss", config.loss, _LOSSES)
    if name == "first-order":
        parts["optimiser"] = _optimiser(config.optimiser)
    return _made(where, getattr(identification, METHODS[name]), options, parts)


def _optimiser(given: Any) -> optax.GradientTransformation:
    if given is None:
        raise ModelError(
            "the method first-order needs fit.optimiser, a function of optax and its arguments, such as "
            '{ name = "adam", learning_rate = 0.05 }'
        )
    table = {"name": given} if isinstance(given, str) else dict(given)
    name = str(table.pop("name", ""))
    make = None if name.startswith("_") else getattr(optax, name, None)
    try:
        made = make(**table) if callable(make) else None
    except (TypeError, ValueError) as error:
        raise ModelError(f"fit.optimiser: {error}") from None
    if not isinstance(made, optax.GradientTransformation):
        raise ModelError(f"fit.optimiser: {name!r} is no optimiser of optax; expected one such as 'adam' or 'lbfgs'")
    return made


def _named(where: str, given: Any, known: Mapping[str, Callable[..., Any]]) -> Any:
    """One of several things by its name, alone or in a table with its numbers."""
    table = {"name": given} if isinstance(given, str) else dict(given)
    name = str(table.pop("name", ""))
    if name not in known:
        raise ModelError(f"{where}: the name is {name!r}, expected one of {', '.join(known)}")
    return _made(where, known[name], table)


def _made(where: str, make: Any, given: Mapping[str, Any], parts: Mapping[str, Any] | None = None) -> Any:
    """A thing of the numbers in a table and of other things; entries that it has not are refused by name."""
    parts = {} if parts is None else parts
    fields = {f.name: str(f.type) for f in dataclasses.fields(make) if f.init}
    known = [name for name in fields if name not in ("solver", "windows", "start", "loss", "optimiser")]
    numbers = {}
    for name, value in given.items():
        if name not in known:
            raise ModelError(f"{where} has {name!r}; expected some of {', '.join(known)}")
        whole = "int" in fields[name] and "float" not in fields[name]
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            raise ModelError(f"{where}.{name} is {value!r}, expected a {'whole ' if whole else ''}number")
        numbers[name] = value if whole else float(value)
    for f in dataclasses.fields(make):
        free = f.default is not dataclasses.MISSING or f.default_factory is not dataclasses.MISSING
        if f.init and not free and f.name not in {*given, *parts}:
            raise ModelError(f"{where} lacks {f.name!r}; give a number")
    return make(**numbers, **parts)
