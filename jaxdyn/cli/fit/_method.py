"""Builds the method, the prior and the system of a fit from the entries of a configuration."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from jaxdyn import actuators, identification
from jaxdyn._errors import ModelError
from jaxdyn.cli.fit._config import Config
from jaxdyn.cli.fit._motors import build_motors
from jaxdyn.cli.fit._options import WRAPPERS
from jaxdyn.identification import AbstractMethod, GeometricPrior, Windows
from jaxdyn.model import Model
from jaxdyn.simulation import System

#: classes of jaxdyn.identification by their names in a configuration
METHODS = {
    "linear": "Linear",
    "physical": "Physical",
    "levenberg-marquardt": "LevenbergMarquardt",
    "first-order": "FirstOrder",
    "output-error": "OutputError",
    "low-passed": "LowPassed",
}
LOSSES = {"huber": "Huber", "cauchy": "Cauchy"}
STARTS = {"measured": "MeasuredStart", "free": "FreeStart"}


def build_method(config: Config) -> AbstractMethod:
    """The method of a configuration; arguments that optax refuses raise `ModelError`."""
    if config.method not in WRAPPERS:
        return _build_unwrapped(config.method, config.options, config)
    solver = {"method": "physical", **(config.solver or {})}
    parts: dict[str, Any] = {"solver": _build_unwrapped(solver.pop("method"), solver, config)}
    if config.windows is not None:
        parts["windows"] = Windows(**config.windows)
    if config.start is not None:
        name, numbers = config.start
        parts["start"] = _class(STARTS[name])(**numbers)
    return _class(METHODS[config.method])(**config.options, **parts)


def build_prior(config: Config) -> GeometricPrior | None:
    """The prior, or None for the default of `fit`."""
    return None if config.prior is None else GeometricPrior(**config.prior)


def build_system(model: Model, config: Config) -> System:
    """The robot with the parts of a configuration."""
    parts: tuple[Any, ...] = ()
    makers: dict[str, Callable[..., Any]] = {"friction": actuators.joint_friction, "drive": actuators.drive}
    for name, make in makers.items():
        given = getattr(config, name)
        if given is not None:
            try:
                parts += (make(model, **{k: jnp.asarray(x, model.dtype) for k, x in given.items()}),)
            except ValueError as error:
                raise ModelError(f"fit.{name}: {error}") from None
    return System(model, parts + build_motors(model, config.motors, config.synchronous_motors, config.inputs))


def _class(name: str) -> Any:
    return getattr(identification, name)


def _build_unwrapped(name: str, options: Any, config: Config) -> AbstractMethod:
    parts: dict[str, Any] = {}
    if config.loss is not None:
        loss, numbers = config.loss
        parts["loss"] = _class(LOSSES[loss])(**numbers)
    if name == "first-order":
        parts["optimiser"] = _optimiser(config.optimiser)
    return _class(METHODS[name])(**options, **parts)


def _optimiser(given: Any) -> optax.GradientTransformation:
    """The optimiser of optax that a configuration names; one of its steps is traced as a check of its arguments."""
    table = {"name": given} if isinstance(given, str) else dict(given)
    name = table.pop("name", "")
    make = None if not isinstance(name, str) or name.startswith("_") else getattr(optax, name, None)
    if not callable(make):
        raise ModelError(f"fit.optimiser: {name!r} is not an optimiser of optax; give one such as 'adam' or 'sgd'")
    try:
        optimiser = make(**table)
        if isinstance(optimiser, optax.GradientTransformation):
            jax.eval_shape(lambda z: optimiser.update(z, optimiser.init(z), z), jnp.zeros(1))
    except Exception as error:  # whatever a function of optax raises for arguments that it does not expect
        raise ModelError(f"fit.optimiser: {error}") from None
    if not isinstance(optimiser, optax.GradientTransformation):
        raise ModelError(f"fit.optimiser: {name!r} is not an optimiser of optax; give one such as 'adam' or 'sgd'")
    return optimiser
