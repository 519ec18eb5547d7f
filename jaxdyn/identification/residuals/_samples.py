"""The rows of logs as samples of residuals without simulation."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxdyn._errors import ShapeError
from jaxdyn._types import Array
from jaxdyn.identification.logs import Log, check_log
from jaxdyn.identification.residuals._measurements import check_columns, initial_state
from jaxdyn.simulation import System
from jaxdyn.simulation.system import state_measurements

AnyArray = Array | np.ndarray


class EffortSample(NamedTuple):
    """One row of a log, or several along a leading axis."""

    t: AnyArray
    q: AnyArray
    v: AnyArray
    a: AnyArray
    #: measured efforts
    effort: AnyArray
    #: time derivatives of the measured efforts
    effort_rate: AnyArray
    #: inputs of the actuators and their first and second time derivatives, `(inputs,)`
    inputs: AnyArray | None = None
    input_rate: AnyArray | None = None
    input_second_rate: AnyArray | None = None
    #: measurements of the actuators by name, and the time derivatives of those that are states
    measured: Mapping[str, AnyArray] | None = None
    measured_rate: Mapping[str, AnyArray] | None = None


def effort_samples(system: System, logs: Sequence[Log]) -> EffortSample:
    """All rows of the logs, `(n, ...)` each, in the precision of the model."""
    if not logs:
        raise ShapeError("no logs were given; expected at least one")
    for log in logs:
        check_log(system.model, log)
    check_columns(system, logs)
    states = sorted(state_measurements(system, initial_state(system).parts))
    rows = [_rows_of_log(log, [name for name in states if name in (log.measured or {})]) for log in logs]
    samples = jax.tree.map(lambda *x: np.concatenate(x).astype(system.model.dtype), *rows)
    for path, x in jax.tree_util.tree_leaves_with_path(samples):
        if not np.isfinite(x).all():
            raise ShapeError(
                f"the logs contain numbers that are not finite, in {_column_name(path)}; prepare the logs, or drop "
                "those rows"
            )
    return samples


def _rows_of_log(log: Log, states: Sequence[str]) -> EffortSample:
    if log.a is None:
        raise ShapeError(
            f"log {log.name!r} has no accelerations; prepare the log, which differentiates it, or fit with "
            "OutputError, which needs none"
        )
    rates = log.measured_rate or {}
    lacking = [name for name in states if name not in rates]
    if lacking:
        raise ShapeError(
            f"log {log.name!r} has no time derivatives of {', '.join(lacking)}; prepare the log, which differentiates "
            "it, give Log(..., measured_rate=), or fit with OutputError, which needs none"
        )
    t, effort = np.asarray(log.t), np.asarray(log.effort)
    row = EffortSample(
        *(np.asarray(x) for x in (t, log.q, log.v, log.a)),
        effort=effort,
        effort_rate=_differentiate(t, effort),
        measured={name: np.asarray(x) for name, x in (log.measured or {}).items()} or None,
        measured_rate={name: np.asarray(rates[name]) for name in states} or None,
    )
    if log.inputs is None:
        return row
    rate = _differentiate(t, np.asarray(log.inputs))
    return row._replace(inputs=np.asarray(log.inputs), input_rate=rate, input_second_rate=_differentiate(t, rate))


def _differentiate(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.gradient(x, t, axis=0) if len(t) > 1 else np.zeros_like(x)


def _column_name(path: Any) -> str:
    """The name of a column by its place in a sample, such as "measured current.elbow"."""
    names = [str(getattr(key, "name", getattr(key, "key", key))) for key in path]
    return " ".join(names).replace("effort_rate", "rate of the effort")
