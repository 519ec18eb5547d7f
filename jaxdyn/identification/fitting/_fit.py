"""The entry point of all fits."""

import sys
from collections.abc import Callable, Iterable, Sequence

import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ShapeError
from jaxdyn._types import Array
from jaxdyn.identification.fitting._result import BaseParameter, FitResult, JointError, ParameterRow
from jaxdyn.identification.logs import Log
from jaxdyn.identification.methods import AbstractMethod, Estimate, FitStatus, GeometricPrior, Linear, Weights
from jaxdyn.identification.parameters import ParameterBounds, Parameters, Selection, collect, link_checks
from jaxdyn.identification.residuals import LeastSquaresProblem, autocorrelation_time, residuals
from jaxdyn.model import Model
from jaxdyn.simulation import System


def fit(
    system: Model | System,
    logs: Log | Sequence[Log],
    parameters: Selection | str | Callable[[System], Array] | Iterable[Selection | str | Callable[[System], Array]],
    method: AbstractMethod | None = None,
    *,
    held_out: Log | Sequence[Log] = (),
    prior: GeometricPrior | None = None,
    weights: Weights = None,
    bounds: ParameterBounds | None = None,
    progress: bool | Callable[[str], None] = False,
    throw: bool = False,
) -> FitResult:
    """Estimates selected parameters of a robot from logs of its motion, with their standard deviations.

    Minimises the weighted squares of the residual, measured minus predicted efforts by default, plus the prior.
    Unobservable directions of the parameters are named in the result and stay at the prior.

    Arguments:

    * `system`: the initial robot, or a `System` around it.
    * `logs`: to fit. SI units at the joints; `prepare` makes them from files.
    * `parameters`: a `select(...)`, or paths and functions as it takes them, such as `["links[*].inertial"]`.
    * `method`: by default `Linear()`; `Physical()` keeps links physically consistent. Others are
      `LevenbergMarquardt()`, `FirstOrder(...)`, `OutputError()`, `LowPassed(...)` and `FramePoses()`.
    * `held_out`: logs to judge the fit by; they are predicted, never fitted.
    * `prior`: regularises the estimate towards `system`, very weakly by default. `Linear` has none.
    * `weights`: inverse standard deviations of the residual's channels, for efforts `(nv,)`; by default estimated.
    * `bounds`: pairs `(low, high)` in place of the default ones, by path (`joints[*].damping`) or by the name of a
      parameter (`m(hand)`, `m(*)`); infinite where there is none.
    * `progress`: True prints the progress to stderr; a function is called with each line of it.
    * `throw`: whether a fit that does not converge raises `ConvergenceError`.

    Returns a `FitResult`. Raises `ModelError` for selected parameters without influence on the residual, before
    anything is solved, and `ShapeError` for logs that do not suit the model or the method.

    ```python
    import numpy as np
    import jaxdyn as jd
    from jaxdyn.identification import Log, fit

    t = np.linspace(0, 4, 100)[:, None]
    q, v, a = np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)
    noise = 0.01 * np.random.default_rng(0).normal(size=t.shape)
    log = Log(t[:, 0], q, v, a, effort=a + 9.81 * np.sin(q) + 0.3 * v + noise)  # m = 1 kg, l = 1 m, damping 0.3
    result = fit(jd.robots.pendulum(), log, ["joints[*].damping"])
    assert abs(result.value("joints[rod_joint].damping") - 0.3) < 4 * result.parameters[0].deviation
    ```
    """
    logs, held_out = _as_list(logs), _as_list(held_out)
    method = Linear() if method is None else method
    prior = GeometricPrior() if prior is None else prior
    selected = collect(system, parameters, bounds)
    problem = method.problem(selected, logs)
    _check_weights(problem, weights)
    estimate = method.solve(problem, prior, weights, _progress_callback(progress))
    held_out_problem = method.problem(selected, held_out) if held_out else None
    result = _make_result(problem, held_out_problem, estimate, method)
    return result.checked() if throw else result


def _as_list(logs: Log | Sequence[Log]) -> list[Log]:
    return [logs] if isinstance(logs, Log) else list(logs)


def _progress_callback(progress: bool | Callable[[str], None]) -> Callable[[str], None]:
    """The function that a method calls with each line of progress."""
    if not isinstance(progress, bool):
        return progress
    if not progress:
        return lambda line: None
    start, end = ("\r", "") if sys.stderr.isatty() else ("", "\n")
    return lambda line: print(f"{start}fit: {line:<70}", end=end, file=sys.stderr, flush=True)  # noqa: T201


def _check_weights(problem: LeastSquaresProblem, weights: Weights):
    if weights is not None:
        shape = np.shape(weights)
        if shape != (len(problem.channels),) or not (np.asarray(weights) >= 0).all():
            raise ShapeError(
                f"weights has shape {shape}; expected {(len(problem.channels),)}, the inverse standard deviations of "
                f"{', '.join(problem.channels)}, none negative"
            )


def _make_result(
    problem: LeastSquaresProblem,
    held_out: LeastSquaresProblem | None,
    estimate: Estimate,
    method: AbstractMethod,
) -> FitResult:
    parameters, groups = problem.parameters, estimate.groups
    x = jnp.asarray(estimate.x, parameters.read().dtype)
    r = residuals(problem, x)
    times = autocorrelation_time(r)
    covariance, base_deviations = _covariance(estimate, times)
    system = parameters.insert(x)
    return FitResult(
        system=system,
        status=estimate.status,
        steps=estimate.steps,
        initial_cost=estimate.history[0],
        cost=estimate.history[-1],
        parameters=_parameter_rows(parameters, estimate, covariance),
        base=_base_parameters(parameters, estimate, base_deviations),
        unobservable=groups.directions(),
        condition=groups.condition,
        errors=_errors(problem, held_out, r, x),
        dependence=tuple(float(tau) for tau in times),
        physical=link_checks(system.model),
        covariance=covariance,
        history=estimate.history,
        method=method,
    )


def _parameter_rows(parameters: Parameters, estimate: Estimate, covariance: np.ndarray) -> tuple[ParameterRow, ...]:
    observable, deviations = estimate.groups.observable(), np.sqrt(np.diag(covariance))
    x0 = np.asarray(parameters.read(), float)
    columns = (parameters.names, parameters.units, x0, estimate.x, deviations, observable)
    return tuple(
        ParameterRow(name, unit, float(a), float(b), float(s) if ok else float("nan"), bool(ok))
        for name, unit, a, b, s, ok in zip(*columns, strict=True)
    )


def _base_parameters(parameters: Parameters, estimate: Estimate, deviations: np.ndarray) -> tuple[BaseParameter, ...]:
    groups, x0 = estimate.groups, np.asarray(parameters.read(), float)
    columns = (groups.base_names(), groups.values(x0), groups.values(estimate.x), deviations)
    return tuple(BaseParameter(name, float(a), float(b), float(s)) for name, a, b, s in zip(*columns, strict=True))


def _covariance(estimate: Estimate, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The covariance of all parameters with the dependent ones fixed, and the deviations of the base parameters.

    `s^2 H^-1 (sum_c tau_c w_c^2 H_c) H^-1` with the autocorrelation times tau, which are 1 for a white residual and
    then give `s^2 H^-1`.
    """
    sums, weights = estimate.sums, estimate.weights
    h, _, square = sums.weighted(weights)
    b = estimate.groups.base
    full = np.zeros((len(estimate.x),) * 2)
    if not b.size or estimate.status == FitStatus.NOT_FINITE:
        return full, np.zeros(b.size)
    inner = h[np.ix_(b, b)]
    scale = 1 / np.sqrt(np.diag(inner))
    inverse = np.linalg.inv(inner * scale[:, None] * scale) * scale[:, None] * scale
    spread = sums.weighted(weights * np.sqrt(times))[0][np.ix_(b, b)]
    count = float(sums.count.sum())
    freedom = max(count - b.size * float(np.mean(times)), 1.0)
    covariance = inverse @ spread @ inverse * max(float(square), 0.0) / freedom
    full[np.ix_(b, b)] = covariance
    return full, np.sqrt(np.diag(covariance))


def _errors(
    problem: LeastSquaresProblem, held_out: LeastSquaresProblem | None, r: np.ndarray, x: Array
) -> tuple[JointError, ...]:
    """Root mean squares of residuals and of measurements, of each channel."""
    rms = lambda r: np.sqrt(np.mean(r**2, axis=1))
    fitted = rms(r), problem.measured_rms()
    unknown = (np.full(len(problem.channels), np.nan),) * 2
    predicted = unknown if held_out is None else (rms(residuals(held_out, x)), held_out.measured_rms())
    return tuple(
        JointError(name, unit, float(a), float(b), float(c), float(d))
        for name, unit, a, b, c, d in zip(
            problem.channels, problem.units, fitted[0], predicted[0], fitted[1], predicted[1], strict=True
        )
    )
