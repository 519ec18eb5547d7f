"""Stretches of a log, and their simulation under the efforts that were measured."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn._types import Array, Float
from jaxdyn.actuators import Drive
from jaxdyn.identification._log import Log, check_log
from jaxdyn.model import Model
from jaxdyn.simulation import Signal, System, simulate
from jaxdyn.simulation._manifold import OnManifold
from jaxdyn.simulation._simulate import _looping
from jaxdyn.simulation._state import to_state
from jaxdyn.simulation._system import has_vector_coordinates
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
    a window, for drives with a delay. Where windows overlap, samples are counted more than once, and stated deviations
    are too small by the root of `length / stride`.
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


def check_delays(system: System, lead: float):
    """Delays within the `lead` seconds of efforts that windows hold before their start, or `ModelError`."""
    for part in system.parts:
        if isinstance(part, Drive) and part.command is None:
            most, least = float(jnp.max(part.delay)), float(jnp.min(part.delay))
            if most > lead * (1 + 1e-6) or least < 0:
                raise ModelError(
                    f"a delay of the Drive is {least if least < 0 else most:.4g} s; windows hold the efforts of "
                    f"{lead:.4g} s before their start, so expected 0 to {lead:.4g}; give Windows a longer lead (and "
                    "logs that begin as long before the first window), or a bound by a stronger prior"
                )


def simulated(system: System, windows: Windows, sample, q0=None, v0=None) -> Any:
    """Configurations at the times of one window, from the state measured at its start or from `(q0, v0)`."""
    ts, q, v, start, step, efforts = sample
    q0, v = (q[0], v) if q0 is None else (q0, v0)
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
        return _stepped(full, _looping(windows.solver, adjoint), q0, v, ts[0], dt, steps)[:: steps // (len(ts) - 1)]
    run = simulate(full, q0, jnp.asarray(v), ts, dt=dt, solver=windows.solver, adjoint=adjoint, max_steps=steps + 16)
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
