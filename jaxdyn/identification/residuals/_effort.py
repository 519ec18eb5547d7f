"""The residual of efforts, and of measurements of actuators: measured minus predicted ones, without simulation."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.actuators import Drive
from jaxdyn.dynamics import AbstractActuator, Action, rnea
from jaxdyn.identification.logs import Log, with_logged_inputs
from jaxdyn.identification.parameters import Parameters, dof_labels
from jaxdyn.identification.preparation import interpolate_cubic
from jaxdyn.identification.residuals._least_squares import LeastSquaresProblem, stack_chunks
from jaxdyn.identification.residuals._measurements import check_states, measured_channels
from jaxdyn.identification.residuals._samples import EffortSample, effort_samples
from jaxdyn.model import Model
from jaxdyn.simulation import Inputs, SampledInputs, State, System
from jaxdyn.simulation.system import as_system, measurements, replace_measured, state_measurements


class TaylorPath(diffrax.AbstractPath):
    """The parabola through one row of a log, `value + s rate + s^2 second_rate / 2`, along which delays act."""

    time: Float[Array, ""]
    value: Float[Array, " inputs"]
    rate: Float[Array, " inputs"]
    second_rate: Float[Array, " inputs"]

    @property
    def t0(self):
        return -jnp.inf

    @property
    def t1(self):
        return jnp.inf

    def evaluate(self, t0, t1=None, left=True):
        s = t0 - self.time
        return self.value + s * self.rate + s**2 / 2 * self.second_rate


class _Instant(NamedTuple):
    """A system without its drive in the state that one row of a log holds."""

    system: System
    state: State
    action: Action


def _evaluate_row(system: System, sample: EffortSample) -> _Instant:
    """The actions of all parts except the drive in one row: with measured states, inputs and accelerations."""
    parts = tuple(part for part in system.parts if not isinstance(part, Drive))
    others = System(system.model, parts, system.motion, system.passive)
    if sample.inputs is not None:
        derivatives = (sample.t, sample.inputs, sample.input_rate, sample.input_second_rate)
        others = with_logged_inputs(others, TaylorPath(*(jnp.asarray(x) for x in derivatives)))
    start = others.initial(sample.q, jnp.asarray(sample.v), sample.t)
    states = replace_measured(others, start.parts, {k: jnp.asarray(x) for k, x in (sample.measured or {}).items()})
    state = State(start.q, start.v, states or None)
    return _Instant(others, state, others.action(sample.t, state, acceleration=jnp.asarray(sample.a)))


def _required_effort(row: _Instant, a) -> Float[Array, " nv"]:
    """The effort required besides all parts: `rnea - passive_forces - efforts of the parts`."""
    action: Any = row.action
    return rnea(row.system.mounted_model, row.state.q, row.state.v, a, action.external) - action.effort


def find_drive(system: System) -> Drive | None:
    """The drive of a system, or None."""
    for part in system.parts:
        if isinstance(part, Drive):
            return part
    return None


def _read_by_drive(drive: Drive | None, effort: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """The number that a log reads for an effort, through the inverse of the drive."""
    return effort if drive is None else drive.inverse(effort)


def effort_residual(system: System, sample: EffortSample) -> Float[Array, "channels 1"]:
    """Residuals of one row: of the efforts `(nv,)`, then of the measurements of actuators by sorted names.

        u(t - delay) - predicted,    dx/dt - rate(x, inputs),    y - predicted

    for efforts u to first order in their delay, measurements x that are states of actuators, and other measurements y.
    """
    row, drive = _evaluate_row(system, sample), find_drive(system)
    u = jnp.asarray(sample.effort)
    if drive is not None:
        u = u - drive.delay * sample.effort_rate
    errors = u - _read_by_drive(drive, _required_effort(row, sample.a))
    if not sample.measured:
        return errors[:, None]
    rates = state_measurements(row.system, row.action.rate)
    values, given = measurements(row.system, sample.t, row.state), sample.measured_rate or {}
    measured = [given[x] - rates[x] if x in given else sample.measured[x] - values[x] for x in sorted(sample.measured)]
    return jnp.concatenate([errors, jnp.stack(measured)])[:, None]


def check_parts(system: System, logs: Sequence[Log]):
    """Raises `ModelError` for parts whose effort one row of the logs does not determine, and for several drives."""
    if sum(isinstance(p, Drive) for p in system.parts) > 1:
        raise ModelError("the system has two Drives; expected at most one, with a gain for each joint")
    if any(isinstance(p, SampledInputs) for p in system.parts):
        raise ModelError(
            "the system has SampledInputs, whose memory no column of the logs holds; give the inputs in the logs, "
            "Log(..., inputs=), or fit with OutputError, which simulates the controller"
        )
    check_states(system, tuple(logs[0].measured or ()) if logs else ())


def effort_problem(parameters: Parameters, logs: Sequence[Log], chunk: int) -> LeastSquaresProblem:
    """The residual over all rows of the logs: a channel for each degree of freedom and each measurement."""
    system = parameters.system
    check_parts(system, logs)
    rows = effort_samples(system, logs)
    samples, present = stack_chunks(rows, chunk)
    size = jnp.sqrt(jnp.mean(jnp.asarray(measured_values(system, rows)) ** 2, axis=0))
    return LeastSquaresProblem(
        parameters, samples, present, effort_residual, *effort_channels(system, rows), False, size
    )


def effort_channels(system: System, rows: EffortSample) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and units of the residuals of rows."""
    names, units = dof_channels(system.model)
    more_names, more_units = measured_channels(system, sorted(rows.measured or {}))
    return names + more_names, units + more_units


def dof_channels(model: Model) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and units of efforts, one for each degree of freedom."""
    names = tuple(dof_labels(model))
    linear = {
        name
        for name in model.joint_names
        if model.joint(name).joint.translates and model.joint(name).v.stop - model.joint(name).v.start == 1
    }
    return names, tuple("N" if name in linear else "N m" for name in names)


def measured_values(system: System, rows: EffortSample) -> np.ndarray:
    """The measurements that residuals of rows are relative to, `(n, channels)`: efforts, rates and other measurements.

    Efforts include those of the actuators, at the measured currents and inputs.
    """
    effort, rates = np.asarray(rows.effort), rows.measured_rate or {}
    if has_actuators(system):
        effort = effort + np.asarray(_actuator_efforts(system, rows))
    more = [np.asarray(rates.get(name, x)) for name, x in sorted((rows.measured or {}).items())]
    return np.column_stack([effort, *more])


def has_actuators(system: System) -> bool:
    """Whether a system has actuators besides a drive."""
    return any(isinstance(part, AbstractActuator) for part in system.parts)


@eqx.filter_jit
def _actuator_efforts(system: System, rows: EffortSample) -> Float[Array, "n nv"]:
    """Efforts of the actuators, in the unit of the log."""
    kept = tuple(p for p in system.parts if not isinstance(p, AbstractActuator | Inputs | SampledInputs))
    bare, drive = System(system.model, kept, system.motion, system.passive), find_drive(system)

    def one_row(sample):
        known = EffortSample(*sample[:6])
        actions: list[Any] = [_evaluate_row(*pair).action for pair in ((system, sample), (bare, known))]
        effort = actions[0].effort - actions[1].effort
        return effort if drive is None else effort / drive.gain

    return jax.vmap(one_row)(rows)


def predicted_effort(system: Model | System, log: Log) -> Float[Array, "n nv"]:
    """The effort that a log should read: `rnea - passive_forces - parts`, through the inverse of the drive.

    The motion `q, v, a` of the log determines it, with its inputs and measurements for actuators; where only actuators
    drive a joint, it should be zero. With a delay of the drive, `u(t) = required(t + delay)`.

    Arguments:

    * `system`: the robot, or a `System` around it.
    * `log`: with accelerations, n rows.

    Returns efforts `(n, nv)` in the unit of the log: N m or N, or that of a `Drive`'s command. Raises `ModelError` for
    parts with a state that the log does not hold, and `ShapeError` for logs without accelerations.

    ```python
    import numpy as np
    import jaxdyn as jd
    from jaxdyn.identification import Log, predicted_effort

    t = np.linspace(0, 2, 50)
    q, v, a = (np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t))
    log = Log(t, *(x[:, None] for x in (q, v, a)), effort=np.zeros((50, 1)))
    effort = predicted_effort(jd.robots.pendulum(length=1.0, mass=1.0), log)
    assert np.allclose(effort[:, 0], a + 9.81 * np.sin(q), atol=1e-4)
    ```
    """
    system = as_system(system)
    return _predict_efforts(system, _rows_to_predict(system, log))


def compare_efforts(system: System, log: Log) -> tuple[np.ndarray, np.ndarray]:
    """Measured and predicted efforts `(n, nv)` in the unit of the log, both with those of the actuators."""
    rows = _rows_to_predict(system, log)
    measured, predicted = np.asarray(log.effort), np.asarray(_predict_efforts(system, rows))
    if not has_actuators(system):
        return measured, predicted
    own = np.asarray(_actuator_efforts(system, rows))
    return measured + own, predicted + own


def _rows_to_predict(system: System, log: Log) -> EffortSample:
    check_parts(system, [log])
    return effort_samples(system, [log])


def _predict_efforts(system: System, rows: EffortSample) -> Float[Array, "n nv"]:
    effort, t = _predict_rows(system, rows), np.asarray(rows.t)
    drive = find_drive(system)
    delays = np.zeros(system.model.nv) if drive is None else np.asarray(drive.delay)
    if len(t) < 2 or not delays.any():
        return effort
    ahead = [interpolate_cubic(t, x, t + delay) for x, delay in zip(np.asarray(effort).T, delays, strict=True)]
    return jnp.asarray(np.stack(ahead, axis=1), effort.dtype)


@eqx.filter_jit
def _predict_rows(system: System, rows: EffortSample) -> Float[Array, "n nv"]:
    drive = find_drive(system)
    return jax.vmap(lambda x: _read_by_drive(drive, _required_effort(_evaluate_row(system, x), x.a)))(rows)
