"""Fits of simulated motion to measured motion, by multiple shooting."""

from collections.abc import Callable, Sequence
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ShapeError
from jaxdyn._types import Array, Float
from jaxdyn.actuators import Drive
from jaxdyn.identification._fit_problem import Problem, stacked
from jaxdyn.identification._fit_residual import coordinate_channels
from jaxdyn.identification._log import Log, check_log
from jaxdyn.identification._methods import AbstractMethod
from jaxdyn.identification._parameters import Parameters
from jaxdyn.identification._physical_fit import Physical
from jaxdyn.kinematics import difference
from jaxdyn.model import Model
from jaxdyn.simulation import Signal, System, simulate
from jaxdyn.simulation._manifold import OnManifold
from jaxdyn.simulation._simulate import _looping
from jaxdyn.simulation._state import to_state
from jaxdyn.simulation._system import as_system, has_vector_coordinates
from jaxdyn.simulation._term import MotionTerm


class Held(diffrax.AbstractPath):
    """Values over even time steps, interpolated linearly and constant beyond the ends."""

    start: Float[Array, ""]
    step: Float[Array, ""]
    values: Float[Array, "n nv"]

    @property
    def t0(self):
        return self.start

    @property
    def t1(self):
        return self.start + self.step * (self.values.shape[0] - 1)

    def evaluate(self, t0, t1=None, left=True):
        last = self.values.shape[0] - 1
        s = jnp.clip((t0 - self.start) / self.step, 0, last)
        k = jnp.clip(jnp.floor(s).astype(int), 0, last - 1)
        w = s - k
        return (1 - w) * self.values[k] + w * self.values[k + 1]


class Windows(eqx.Module):
    """Where simulations start and how they are made: windows of `length` s, a new one every `stride` s.

    Of each window the coordinates are compared at every `every`-th sample. Efforts reach `lead` seconds back before
    a window, for drives with a delay.
    """

    length: float = eqx.field(static=True, default=0.5)
    stride: float | None = eqx.field(static=True, default=None)
    every: int = eqx.field(static=True, default=5)
    lead: float = eqx.field(static=True, default=0.1)
    #: of the integration; the step is that of the log over `substeps`
    solver: diffrax.AbstractSolver = diffrax.Heun()
    substeps: int = eqx.field(static=True, default=1)

    def cut(self, model: Model, log: Log) -> Any:
        """`(t, q, v, start of the efforts, their step, efforts)` of all windows, one a row."""
        check_log(model, log)
        n, dt = log.num_samples, float(log.dt)
        steps = np.diff(np.asarray(log.t))
        if n < 2 or np.abs(steps - dt).max() > 1e-3 * dt:
            raise ShapeError(f"log {log.name!r} has uneven time steps; prepare it, which resamples it")
        long, lead = round(self.length / dt), round(self.lead / dt)
        stride = max(1, round((self.length if self.stride is None else self.stride) / dt))
        starts = np.arange(min(lead, n - 1 - long), n - long, stride) if n > long else np.zeros(0, int)
        starts = starts[starts >= 0]
        if not starts.size or long < self.every:
            raise ShapeError(
                f"log {log.name!r} lasts {dt * (n - 1):.4g} s, which holds no window of {self.length} s with samples "
                f"every {self.every * dt:.4g} s; take shorter windows"
            )
        t, q, v, u = (np.asarray(x) for x in (log.t, log.q, log.v, log.effort))
        seen = starts[:, None] + np.arange(0, long + 1, self.every)
        back = min(lead, int(starts[0]))
        heard = starts[:, None] + np.arange(-back, long + 1)
        many = np.full(starts.size, dt)
        return t[seen] - t[starts][:, None], q[seen], v[starts], -back * many, many, u[heard]


def simulated(system: System, windows: Windows, sample) -> Any:
    """Configurations at the times of one window, from the state measured at its start."""
    ts, q, v, start, step, efforts = sample
    path = Held(start, step, efforts)
    parts, driven = [], False
    for part in system.parts:
        if isinstance(part, Drive) and part.command is None:
            part, driven = Drive(part.gain, part.offset, part.delay, path), True
        parts.append(part)
    if not driven:
        parts.append(Signal(path))
    full = System(system.model, tuple(parts), system.motion, system.passive)
    steps = (ts.shape[0] - 1) * windows.every * windows.substeps
    adjoint, dt = diffrax.ForwardMode(), step / windows.substeps
    if not (full.sampled or full.motion.projects):
        return _stepped(full, _looping(windows.solver, adjoint), q[0], v, ts[0], dt, steps)[:: steps // (len(ts) - 1)]
    run = simulate(full, q[0], v, ts, dt=dt, solver=windows.solver, adjoint=adjoint, max_steps=steps + 16)
    return run.q


def _stepped(system: System, solver, q, v, start, dt, steps: int) -> Any:
    """Configurations after each step of what `simulate` does where nothing happens between steps.

    In one scan, which compiles and runs several times as fast as the loops for events and for times within steps.
    """
    if not has_vector_coordinates(system.model) and not isinstance(solver, OnManifold):
        solver = OnManifold(solver)
    term, y = MotionTerm(), system.initial(q, v, start)
    inner = solver.init(term, start, start + dt, y, system)

    def step(carry, k):
        y, inner = carry
        t = start + k * dt
        y, _, _, inner, _ = solver.step(term, t, t + dt, y, system, inner, made_jump=False)
        return (y, inner), to_state(system.model, y).q

    _, found = jax.lax.scan(step, (y, inner), jnp.arange(steps).astype(dt.dtype))
    return jnp.concatenate([q[None], found])


def _residual(windows: Windows) -> Callable[..., Any]:
    def residual(system, sample):
        found = simulated(system, windows, sample)
        error = jax.vmap(lambda a, b: difference(system.model, a, b))(found, sample[1])
        return error[1:].T

    return residual


class OutputError(AbstractMethod):
    """Fits the motion that `simulate` gives under the measured efforts to the measured motion.

    The log is cut into windows, and each one is simulated from its measured state (multiple shooting), so that neither
    noise of accelerations nor an unstable robot spoils the fit, and so that drives may have a delay and parts a
    state. The residual is that of the coordinates, rad or m, with derivatives by forward mode through the steps.
    `solver` is a method for nonlinear residuals: `Physical()` or `LevenbergMarquardt()`.
    """

    windows: Windows = Windows()
    solver: AbstractMethod = Physical()
    #: windows whose derivatives are in memory at once
    chunk: int = eqx.field(static=True, default=16)
    _residual: Callable[..., Any] = eqx.field(static=True, init=False)

    def __post_init__(self):
        self._residual = _residual_of(self.windows)

    def problem(self, parameters: Parameters, logs: Sequence[Log]) -> Problem:
        model = parameters.system.model
        samples, present = _chunked(model, self.windows, logs, self.chunk)
        channels, units = coordinate_channels(model)
        units = tuple("m" if unit == "N" else "rad" for unit in units)
        spread = np.concatenate([np.asarray(log.q) for log in logs])
        measured = jnp.asarray(np.sqrt(np.mean(spread**2, axis=0))) if model.nq == model.nv else None
        return Problem(parameters, samples, present, self._residual, channels, units, True, measured)

    def solve(self, problem, prior, weights, tell):
        return self.solver.solve(problem, prior, weights, tell)


_RESIDUALS: dict[Any, Callable[..., Any]] = {}


def _residual_of(windows: Windows) -> Callable[..., Any]:
    """One function for each choice of windows, so that compiled code is found again."""
    key = (jax.tree.structure(windows), *jax.tree.leaves(windows))
    return _RESIDUALS.setdefault(key, _residual(windows))


def simulation_error(system: Model | System, logs: Sequence[Log], windows: Windows | None = None) -> np.ndarray:
    """Root mean square of simulated against measured coordinates over windows of the logs, `(nv,)`, rad or m."""
    system = as_system(system)
    windows = Windows() if windows is None else windows
    samples, present = _chunked(system.model, windows, logs, 16)
    found = [np.asarray(_window_errors(windows, system, rows)) for rows in _each(samples)]
    kept = np.concatenate(found)[np.asarray(present).reshape(-1) > 0]
    return np.sqrt(np.mean(kept**2, axis=(0, 2)))


@eqx.filter_jit
def _window_errors(windows: Windows, system: System, rows):
    return jax.vmap(lambda row: _residual_of(windows)(system, row))(rows)


def _each(samples):
    for k in range(jax.tree.leaves(samples)[0].shape[0]):
        yield jax.tree.map(lambda x, k=k: x[k], samples)


def _chunked(model: Model, windows: Windows, logs: Sequence[Log], chunk: int):
    """The windows of all logs, in chunks."""
    if not logs:
        raise ShapeError("there is no log to simulate; give at least one")
    cut = [windows.cut(model, log) for log in logs]
    short = min(c[5].shape[1] for c in cut)
    rows = [(*c[:3], c[3] + c[4] * (c[5].shape[1] - short), c[4], c[5][:, -short:]) for c in cut]
    sample = tuple(np.concatenate(x).astype(model.dtype) for x in zip(*rows, strict=True))
    many = sample[0].shape[0]
    if many < chunk:
        sample = tuple(np.concatenate([x, np.repeat(x[-1:], chunk - many, 0)]) for x in sample)
    samples, present = stacked(sample, chunk)
    return samples, present * (np.arange(present.size).reshape(present.shape) < many)
