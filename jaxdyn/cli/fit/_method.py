"""Builds the method, the prior and the system of a fit from the tables of a configuration."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import optax

from jaxdyn import actuators, identification
from jaxdyn._errors import ModelError
from jaxdyn.cli.fit._config import METHODS, Config
from jaxdyn.identification import AbstractMethod, Cauchy, FreeStart, GeometricPrior, Huber, MeasuredStart, Windows
from jaxdyn.model import Model
from jaxdyn.simulation import System

_LOSSES = {"huber": Huber, "cauchy": Cauchy}
_STARTS = {"measured": MeasuredStart, "free": FreeStart}
#: methods that wrap another method, their solver
_WRAPPERS = ("output-error", "low-passed")
#: entries of [fit] that only some methods accept
_SPECIFIC: dict[str, tuple[str, ...]] = {
    "windows": ("output-error",),
    "start": ("output-error",),
    "solver": _WRAPPERS,
    "optimiser": ("first-order",),
}


def build_method(config: Config) -> AbstractMethod:
    """The method of a configuration; entries that the method does not accept raise `ModelError`."""
    for entry, methods in _SPECIFIC.items():
        if getattr(config, entry) is not None and config.method not in methods:
            raise ModelError(f"fit.{entry} applies to the method {' or '.join(methods)}, not to {config.method!r}")
    if config.method not in _WRAPPERS:
        return _build_unwrapped(config.method, config.options, config, "fit.options")
    solver = {"method": "physical", **(config.solver or {})}
    name = solver.pop("method")
    if name not in METHODS or name in (*_WRAPPERS, "first-order"):
        raise ModelError(f"fit.solver.method is {name!r}; expected linear, physical or levenberg-marquardt")
    parts: dict[str, Any] = {"solver": _build_unwrapped(name, solver, config, "fit.solver")}
    if config.windows is not None:
        parts["windows"] = _build("fit.windows", Windows, config.windows)
    if config.start is not None:
        parts["start"] = _build_by_name("fit.start", config.start, _STARTS)
    return _build("fit.options", getattr(identification, METHODS[config.method]), config.options, parts)


def build_prior(config: Config) -> GeometricPrior | None:
    """The prior, or None for the default of `fit`."""
    return None if config.prior is None else _build("fit.prior", GeometricPrior, config.prior)


def build_system(model: Model, config: Config) -> System:
    """The robot with the parts of a configuration."""
    parts: tuple[Any, ...] = ()
    makers: dict[str, Callable[..., Any]] = {"friction": actuators.joint_friction, "drive": actuators.drive}
    for name, make in makers.items():
        given = getattr(config, name)
        if given is not None:
            try:
                parts += (make(model, **{k: jnp.asarray(x, model.dtype) for k, x in given.items()}),)
            except (TypeError, ValueError) as error:
                raise ModelError(f"fit.{name}: {error}") from None
    return System(model, parts)


def _build_unwrapped(name: str, options: Mapping[str, Any], config: Config, where: str) -> AbstractMethod:
    parts: dict[str, Any] = {}
    if config.loss is not None:
        parts["loss"] = _build_by_name("fit.loss", config.loss, _LOSSES)
    if name == "first-order":
        parts["optimiser"] = _optimiser(config.optimiser)
    return _build(where, getattr(identification, METHODS[name]), options, parts)


def _optimiser(given: Any) -> optax.GradientTransformation:
    if given is None:
        raise ModelError(
            "the method first-order needs fit.optimiser, the name of an optax optimiser with its arguments, such as "
            '{ name = "adam", learning_rate = 0.05 }'
        )
    table = {"name": given} if isinstance(given, str) else dict(given)
    name = str(table.pop("name", ""))
    make = None if name.startswith("_") else getattr(optax, name, None)
    try:
        optimiser = make(**table) if callable(make) else None
    except (TypeError, ValueError) as error:
        raise ModelError(f"fit.optimiser: {error}") from None
    if not isinstance(optimiser, optax.GradientTransformation):
        raise ModelError(f"fit.optimiser: {name!r} is not an optimiser of optax; give one such as 'adam' or 'lbfgs'")
    return optimiser


def _build_by_name(where: str, given: Any, known: Mapping[str, Callable[..., Any]]) -> Any:
    """The object of a known name; `given` is the name, or a table with the name and numbers."""
    table = {"name": given} if isinstance(given, str) else dict(given)
    name = str(table.pop("name", ""))
    if name not in known:
        raise ModelError(f"{where}: the name is {name!r}; expected one of {', '.join(known)}")
    return _build(where, known[name], table)


def _build(where: str, make: Any, given: Mapping[str, Any], parts: Mapping[str, Any] | None = None) -> Any:
    """An instance of the dataclass `make` from the numbers of a table and from `parts`; unknown entries are refused."""
    parts = {} if parts is None else parts
    fields = {f.name: str(f.type) for f in dataclasses.fields(make) if f.init}
    known = [name for name in fields if name not in ("solver", "windows", "start", "loss", "optimiser")]
    numbers = {}
    for name, value in given.items():
        if name not in known:
            raise ModelError(f"{where} has {name!r}; expected some of {', '.join(known)}")
        is_whole = "int" in fields[name] and "float" not in fields[name]
        if isinstance(value, bool) or not isinstance(value, int if is_whole else (int, float)):
            raise ModelError(f"{where}.{name} is {value!r}, expected a {'whole ' if is_whole else ''}number")
        numbers[name] = value if is_whole else float(value)
    for f in dataclasses.fields(make):
        has_default = f.default is not dataclasses.MISSING or f.default_factory is not dataclasses.MISSING
        if f.init and not has_default and f.name not in {*given, *parts}:
            raise ModelError(f"{where} has no {f.name!r}; give a number")
    return make(**numbers, **parts)
