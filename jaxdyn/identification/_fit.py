"""The entry to all fits."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ShapeError
from jaxdyn.identification._dependence import dependence, residuals
from jaxdyn.identification._fit_problem import Problem
from jaxdyn.identification._linear import Linear
from jaxdyn.identification._log import Log
from jaxdyn.identification._methods import AbstractMethod, Solution
from jaxdyn.identification._parameters import collect, pseudo_inertia_basis
from jaxdyn.identification._physical import GeometricPrior
from jaxdyn.identification._result import (
    BaseParameter,
    FitResult,
    FitStatus,
    JointError,
    LinkCheck,
    ParameterRow,
)
from jaxdyn.model import Model
from jaxdyn.simulation import System


def fit(
    system: Model | System,
    logs: Log | Sequence[Log],
    parameters: Any,
    method: AbstractMethod | None = None,
    *,
    held_out: Log | Sequence[Log] = (),
    prior: GeometricPrior | None = None,
    weights: Any = None,
    bounds: Mapping[str, tuple[float | int, float | int]] | None = None,
    progress: bool | Callable[[str], None] = False,
    throw: bool = False,
) -> FitResult:
    """The system whose selected parameters predict the logs best, and what the logs say about each of them.

    `parameters` is a `select(...)`, or paths as it takes them. `method` is `Linear()` by default; `Physical()` keeps
    all links bodies, `LevenbergMarquardt()`, `FirstOrder()` and `OutputError()` are others. `prior` is belief in the
    numbers of `system` for methods that have one, by default hardly any. `weights`, `(nv,)`, are inverse
    deviations of the joints' residuals; without them they are estimated. Directions of the parameters that no log shows
    are named in the result, and left at the prior; a selected number to which the residual does not react at all
    is a `ModelError`, before anything is solved. `bounds` are pairs `(low, high)`, infinite where there is none, by
    path (`joints[*].damping`) or by the name of a parameter (`m(hand)`, `m(*)`), in place of the usual ones.
    `held_out` logs are predicted, never fitted. `progress` shows each step and its cost on stderr, on one line where
    that is a terminal, or calls a function with that text. With `throw`, a fit that does not converge raises
    `ConvergenceError`.
    """
    logs, held_out = _as_list(logs), _as_list(held_out)
    method = Linear() if method is None else method
    prior = GeometricPrior() if prior is None else prior
    selected = collect(system, parameters, bounds)
    problem = method.problem(selected, logs)
    _check_weights(problem, weights)
    solution = method.solve(problem, prior, weights, _teller(progress))
    unseen = method.problem(selected, held_out) if held_out else None
    result = _result(problem, unseen, solution, method)
    return result.checked() if throw else result


def _as_list(logs) -> list[Log]:
    return [logs] if isinstance(logs, Log) else list(logs)


def _teller(progress: bool | Callable[[str], None]) -> Callable[[str], None]:
    """Where a method's lines go: to a function, to stderr, or nowhere."""
    if not isinstance(progress, bool):
        return progress
    if not progress:
        return lambda line: None
    start, end = ("\r", "") if sys.stderr.isatty() else ("", "\n")
    return lambda line: print(f"{start}fit: {line:<70}", end=end, file=sys.stderr, flush=True)  # noqa: T201


def _check_weights(problem: Problem, weights):
    if weights is not None:
        shape = np.shape(weights)
        if shape != (len(problem.channels),) or not (np.asarray(weights) >= 0).all():
            raise ShapeError(
                f"weights has shape {shape}; expected {(len(problem.channels),)}, the inverse deviation of each of "
                f"{', '.join(problem.channels)}, none negative"
            )


def _result(problem: Problem, unseen: Problem | None, solution: Solution, method) -> FitResult:
    parameters = problem.parameters
    groups = solution.groups
    x0, x = np.asarray(parameters.read(), float), solution.x
    dtype = parameters.read().dtype
    left = residuals(problem, jnp.asarray(x, dtype))
    many = dependence(left)
    covariance, deviations = _covariance(solution, many)
    alone = groups.observable()
    own = np.sqrt(np.diag(covariance))
    rows = tuple(
        ParameterRow(name, unit, float(a), float(b), float(s) if ok else float("nan"), bool(ok))
        for name, unit, a, b, s, ok in zip(parameters.names, parameters.units, x0, x, own, alone, strict=True)
    )
    base = tuple(
        BaseParameter(name, float(a), float(b), float(s))
        for name, a, b, s in zip(groups.base_names(), groups.values(x0), groups.values(x), deviations, strict=True)
    )
    return FitResult(
        system=parameters.insert(jnp.asarray(x, dtype)),
        status=solution.status,
        steps=solution.steps,
        initial_cost=solution.history[0],
        cost=solution.history[-1],
        parameters=rows,
        base=base,
        unobservable=groups.directions(),
        condition=groups.condition,
        errors=_errors(problem, unseen, left, jnp.asarray(x, dtype)),
        dependence=tuple(float(m) for m in many),
        physical=link_checks(parameters.insert(jnp.asarray(x, dtype)).model),
        covariance=covariance,
        history=solution.history,
        method=method,
    )


def _covariance(solution: Solution, many: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of all parameters with the unobservable ones held, and the deviations of the base parameters.

    `s^2 H^-1 (sum_c tau_c w_c^2 H_c) H^-1` with tau samples for each independent one: of a residual that is white
    the usual `s^2 H^-1`.
    """
    sums, weights = solution.sums, solution.weights
    h, _, square = sums.weighted(weights)
    b = solution.groups.base
    full = np.zeros((len(solution.x),) * 2)
    if not b.size or solution.status == FitStatus.NOT_FINITE:
        return full, np.zeros(b.size)
    inner = h[np.ix_(b, b)]
    scale = 1 / np.sqrt(np.diag(inner))
    inverse = np.linalg.inv(inner * scale[:, None] * scale) * scale[:, None] * scale
    spread = sums.weighted(weights * np.sqrt(many))[0][np.ix_(b, b)]
    count = float(sums.count.sum())
    freedom = max(count - b.size * float(np.mean(many)), 1.0)
    covariance = inverse @ spread @ inverse * max(float(square), 0.0) / freedom
    full[np.ix_(b, b)] = covariance
    return full, np.sqrt(np.diag(covariance))


def _errors(problem: Problem, unseen: Problem | None, left: np.ndarray, x) -> tuple[JointError, ...]:
    """Root mean squares of each channel, of residuals and of what was measured."""
    rms = lambda r: np.sqrt(np.mean(r**2, axis=1))
    fitted = rms(left), problem.measured_rms()
    nothing = (np.full(len(problem.channels), np.nan),) * 2
    held = nothing if unseen is None else (rms(residuals(unseen, x)), unseen.measured_rms())
    return tuple(
        JointError(name, unit, float(a), float(b), float(c), float(d))
        for name, unit, a, b, c, d in zip(
            problem.channels, problem.units, fitted[0], held[0], fitted[1], held[1], strict=True
        )
    )


def link_checks(model: Model) -> tuple[LinkCheck, ...]:
    """Whether each link of a model with mass or inertia belongs to a body, to a relative rounding of 1e-9."""
    checks = []
    mass, com, inertia = (np.asarray(x, float) for x in (model.links.mass, model.links.com, model.links.inertia))
    for k, name in enumerate(model.link_names):
        if mass[k] == 0 and not inertia[k].any():
            continue
        about = inertia[k] + mass[k] * (com[k] @ com[k] * np.eye(3) - np.outer(com[k], com[k]))
        six = [about[a, b] for a, b in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]
        p = np.einsum("k,kab->ab", np.array([mass[k], *(mass[k] * com[k]), *six]), pseudo_inertia_basis())
        # the rotational part about the centre of mass, against its own size: com does not hide it
        central = np.trace(inertia[k]) / 2 * np.eye(3) - (inertia[k] + inertia[k].T) / 2
        least = np.linalg.eigvalsh(central)[0] / max(abs(np.trace(central)), 1e-300)
        margin = min(mass[k] / max(np.trace(p), 1e-300), least)
        reason = ""
        if mass[k] < 0:
            reason = f"negative mass {mass[k]:.4g} kg"
        elif margin < -1e-9:
            moments = ", ".join(f"{x:.4g}" for x in np.linalg.eigvalsh((inertia[k] + inertia[k].T) / 2))
            reason = f"principal moments {moments} kg m^2 belong to no body"
        checks.append(LinkCheck(name, not reason, float(margin), reason))
    return tuple(checks)
