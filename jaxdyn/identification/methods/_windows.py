"""Windows of a log, and their simulation under the measured efforts."""

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn._types import Array, Float
from jaxdyn.actuators import Drive
from jaxdyn.identification.logs import Log, check_log
from jaxdyn.model import Model
from jaxdyn.simulation import Signal, System, integrate_fixed_steps, simulate


class UniformPath(diffrax.AbstractPath):
    """Values at uniform time steps, interpolated linearly and constant before the first and after the last."""

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
    """Windows of a log, each `length` s long and a new one every `stride` s, and the integrator that simulates them.

    Coordinates are compared at every `every`-th sample of a window. The efforts of a window begin `lead` seconds before
    the window, for drives with a delay. Where windows overlap, samples count more than once, and the reported standard
    deviations are too small by the square root of `length / stride`.
    """

    length: float = eqx.field(static=True, default=0.5)
    stride: float | None = eqx.field(static=True, default=None)
    every: int = eqx.field(static=True, default=5)
    lead: float = eqx.field(static=True, default=0.1)
    #: integrates with the time step of the log divided by `substeps`
    solver: diffrax.AbstractSolver = diffrax.Heun()
    substeps: int = eqx.field(static=True, default=1)

    def cut(self, model: Model, log: Log) -> tuple[np.ndarray, ...]:
        """`(t, q, v, start of the efforts, their step, efforts)` of all windows, one window per row.

        Raises `ShapeError` for uneven time steps and for logs that are shorter than a window.
        """
        check_log(model, log)
        n, dt = log.num_samples, float(log.dt)
        steps = np.diff(np.asarray(log.t))
        if n < 2 or np.abs(steps - dt).max() > 1e-3 * dt:
            raise ShapeError(f"log {log.name!r} has uneven time steps; resample it with prepare")
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
        compared = starts[:, None] + np.arange(0, long + 1, self.every)
        back = min(lead, int(starts[0]))
        effort_rows = starts[:, None] + np.arange(-back, long + 1)
        steps = np.full(starts.size, dt)
        return t[compared] - t[starts][:, None], q[compared], v[starts], -back * steps, steps, u[effort_rows]


def check_delays(system: System, lead: float):
    """Raises `ModelError` if a drive's delay exceeds the `lead` seconds of efforts before the start of a window."""
    for part in system.parts:
        if isinstance(part, Drive) and part.command is None:
            most, least = float(jnp.max(part.delay)), float(jnp.min(part.delay))
            if most > lead * (1 + 1e-6) or least < 0:
                raise ModelError(
                    f"a delay of the Drive is {least if least < 0 else most:.4g} s; windows hold the efforts of "
                    f"{lead:.4g} s before their start, so expected 0 to {lead:.4g}; give Windows a longer lead (and "
                    "logs that begin that long before the first window), or keep the delay small by a stronger prior"
                )


def simulate_window(system: System, windows: Windows, sample, q0=None, v0=None) -> Array:
    """Configurations `(times, nq)` at the times of one window, from the state measured at its start or `(q0, v0)`."""
    ts, q, v, start, step, efforts = sample
    if q0 is None or v0 is None:
        q0, v0 = q[0], v
    measured = UniformPath(start, step, efforts)
    parts, driven = [], False
    for part in system.parts:
        if isinstance(part, Drive) and part.command is None:
            part, driven = Drive(part.gain, part.offset, part.delay, measured), True
        parts.append(part)
    if not driven:
        parts.append(Signal(measured))
    full = System(system.model, tuple(parts), system.motion, system.passive)
    steps = (ts.shape[0] - 1) * windows.every * windows.substeps
    adjoint, dt = diffrax.ForwardMode(), step / windows.substeps
    if not full.updates_between_steps:
        path = integrate_fixed_steps(full, q0, v0, ts[0], dt, steps, solver=windows.solver, adjoint=adjoint)
        return path.q[:: steps // (len(ts) - 1)]
    run = simulate(full, q0, jnp.asarray(v0), ts, dt=dt, solver=windows.solver, adjoint=adjoint, max_steps=steps + 16)
    return run.q
