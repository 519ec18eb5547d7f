"""The output-error method: simulated against measured motion, by multiple shooting."""

from collections.abc import Callable, Hashable, Iterator, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ShapeError
from jaxdyn._types import Array
from jaxdyn.identification.logs import Log
from jaxdyn.identification.methods._contract import AbstractMethod
from jaxdyn.identification.methods._physical import Physical
from jaxdyn.identification.methods.windows import AbstractStart, MeasuredStart, Windows, WindowSample, check_delays
from jaxdyn.identification.parameters import Parameters
from jaxdyn.identification.residuals import (
    LeastSquaresProblem,
    check_columns,
    dof_channels,
    stack_chunks,
)
from jaxdyn.model import Model
from jaxdyn.simulation import System
from jaxdyn.simulation.system import as_system, measurement_units


class OutputError(AbstractMethod):
    """Fits the motion simulated under the measured efforts to the measured motion (output-error method).

    The log is cut into windows, each of which is simulated from its own initial state (multiple shooting). The method
    needs no accelerations, and is suited to unstable robots, delays of drives and parts with a state. The residual is
    measured minus simulated coordinates, rad or m, with forward-mode derivatives through the integration steps.

    A log with `inputs`, such as voltages, drives the actuators of the system. Each entry of its `measured`, such as a
    current or a temperature, is a further channel of the residual, after the degrees of freedom and sorted by name.

    Arguments:

    * `windows`: length, stride and sampling of the windows, and the integration.
    * `solver`: the method that minimises the residual, `Physical()`, `LevenbergMarquardt()` or
      `FirstOrder(optimiser)`.
    * `start`: the initial states, `MeasuredStart()` or, for noisy logs and unstable robots, `FreeStart()`, which
      estimates them together with the parameters.
    * `chunk`: number of windows whose derivatives are in memory at once.

    A delay that exceeds the `lead` of the windows is a `ModelError`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.identification import Log, OutputError, Physical, Windows, fit

    t = jnp.linspace(0.0, 1.0, 101)
    run = jd.simulate(jd.robots.pendulum(damping=0.3), jnp.array([1.0]), jnp.zeros(1), t, dt=0.01)
    log = Log(t, run.q, run.v, None, effort=jnp.zeros((101, 1)))  # without accelerations
    method = OutputError(Windows(length=0.5, lead=0.0), Physical(reweight=0))
    result = fit(jd.robots.pendulum(damping=0.1), log, ["joints[*].damping"], method)
    assert abs(result.value("joints[rod_joint].damping") - 0.3) < 0.01
    ```
    """

    windows: Windows = Windows()
    solver: AbstractMethod = Physical()
    start: AbstractStart = MeasuredStart()
    chunk: int = eqx.field(static=True, default=16)
    _residual: Callable[[System, WindowSample], Array] = eqx.field(static=True, init=False)

    def __post_init__(self):
        self._residual = _window_residual(self.windows, self.start)

    def problem(self, parameters: Parameters, logs: Sequence[Log]) -> LeastSquaresProblem:
        model = parameters.system.model
        check_columns(parameters.system, logs)
        samples, present = _stack_windows(model, self.windows, logs, self.chunk)
        check_delays(parameters.system, _lead_time(samples))
        compared = samples.ts.shape[2]
        if compared <= self.start.spent:
            raise ShapeError(
                f"windows compare {compared} samples of each coordinate, and their free initial states have "
                f"{self.start.spent} unknowns for each; give longer windows or a smaller `every`"
            )
        channels, units = dof_channels(model)
        units = tuple("m" if unit == "N" else "rad" for unit in units)
        names = sorted(logs[0].measured or {})
        known = measurement_units(parameters.system)
        channels, units = channels + tuple(names), units + tuple(known[name] for name in names)
        measured = _root_mean_squares(logs, names) if model.nq == model.nv else None
        return LeastSquaresProblem(
            parameters, samples, present, self._residual, channels, units, True, measured, self.start.spent
        )

    def solve(self, problem, prior, weights, tell):
        estimate = self.solver.solve(problem, prior, weights, tell)
        check_delays(problem.parameters.insert(jnp.asarray(estimate.x)), _lead_time(problem.samples))
        return estimate


def _lead_time(samples: WindowSample) -> float:
    """The time for which efforts are known before the start of each window, s."""
    return -float(np.max(np.asarray(samples.start)))


def _root_mean_squares(logs: Sequence[Log], names: Sequence[str]) -> Array:
    """Root mean squares of coordinates and measurements."""
    columns = [
        np.column_stack([np.asarray(log.q), *(np.asarray((log.measured or {})[name]) for name in names)])
        for log in logs
    ]
    return jnp.asarray(np.sqrt(np.mean(np.concatenate(columns) ** 2, axis=0)))


_RESIDUALS: dict[tuple[Hashable, ...], Callable[[System, WindowSample], Array]] = {}


def _window_residual(windows: Windows, start: AbstractStart) -> Callable[[System, WindowSample], Array]:
    """The residual of one window, the same function for equal arguments so that compiled programs are reused."""
    key = (jax.tree.structure((windows, start)), *jax.tree.leaves((windows, start)))
    return _RESIDUALS.setdefault(key, lambda system, sample: start.residual(system, windows, sample))


def simulation_error(
    system: Model | System,
    logs: Sequence[Log],
    windows: Windows | None = None,
    start: AbstractStart | None = None,
) -> np.ndarray:
    """Root mean square of measured minus simulated coordinates over windows of the logs.

    Use it to judge a model by its motion, on held-out logs.

    Arguments:

    * `system`: the robot, or a `System` around it.
    * `logs`: measured motion and efforts.
    * `windows`: by default `Windows()`.
    * `start`: initial states of the windows, by default `MeasuredStart()`.

    Returns the error of each degree of freedom, rad or m, then of each measurement by sorted names. Raises `ShapeError`
    for logs that are shorter than a window or have uneven time steps, and `ModelError` for delays that exceed the
    `lead` of the windows and for measurements that no actuator has.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.identification import Log, Windows, simulation_error

    robot, t = jd.robots.pendulum(damping=0.3), jnp.linspace(0.0, 1.0, 101)
    run = jd.simulate(robot, jnp.array([1.0]), jnp.zeros(1), t, dt=0.01)
    log = Log(t, run.q, run.v, None, effort=jnp.zeros((101, 1)))
    assert simulation_error(robot, [log], Windows(length=0.5, lead=0.0))[0] < 1e-3
    ```
    """
    system = as_system(system)
    check_columns(system, logs)
    windows = Windows() if windows is None else windows
    start = MeasuredStart() if start is None else start
    samples, present = _stack_windows(system.model, windows, logs, 16)
    check_delays(system, _lead_time(samples))
    errors = [np.asarray(_window_errors(windows, start, system, rows)) for rows in _iterate_chunks(samples)]
    errors = np.concatenate(errors)[np.asarray(present).reshape(-1) > 0]
    return np.sqrt(np.mean(errors**2, axis=(0, 2)))


@eqx.filter_jit
def _window_errors(windows: Windows, start: AbstractStart, system: System, rows: WindowSample) -> Array:
    return jax.vmap(lambda row: _window_residual(windows, start)(system, row))(rows)


def _iterate_chunks(samples: WindowSample) -> Iterator[WindowSample]:
    for k in range(jax.tree.leaves(samples)[0].shape[0]):
        yield jax.tree.map(lambda x, k=k: x[k], samples)


def _stack_windows(model: Model, windows: Windows, logs: Sequence[Log], chunk: int) -> tuple[WindowSample, np.ndarray]:
    """The windows of all logs, in chunks."""
    if not logs:
        raise ShapeError("no logs were given; expected at least one")
    cut = [windows.cut(model, log) for log in logs]
    short = min(c.efforts.shape[1] for c in cut)
    rows = [_shorten_lead(c, short) for c in cut]
    sample = jax.tree.map(lambda *x: np.concatenate(x).astype(model.dtype), *rows)
    count = sample.ts.shape[0]
    if count < chunk:
        sample = jax.tree.map(lambda x: np.concatenate([x, np.repeat(x[-1:], chunk - count, 0)]), sample)
    samples, present = stack_chunks(sample, chunk)
    return samples, present * (np.arange(present.size).reshape(present.shape) < count)


def _shorten_lead(sample: WindowSample, rows: int) -> WindowSample:
    """The windows with fewer rows of efforts and inputs before their start."""
    start = sample.start + sample.step * (sample.efforts.shape[1] - rows)
    inputs = None if sample.inputs is None else sample.inputs[:, -rows:]
    return sample._replace(start=start, efforts=sample.efforts[:, -rows:], inputs=inputs)
