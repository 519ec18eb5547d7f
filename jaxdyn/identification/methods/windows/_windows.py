"""Windows of a log, and their simulation under the measured efforts."""

from typing import NamedTuple

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ShapeError
from jaxdyn._types import Array, Float
from jaxdyn.identification.logs import Log, check_log
from jaxdyn.model import Model

AnyArray = Array | np.ndarray


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


class WindowSample(NamedTuple):
    """The measurements of one window, or of several along a leading axis."""

    #: times of the compared samples since the start of the window, s
    ts: AnyArray
    #: coordinates at these times, `(times, nq)`
    q: AnyArray
    #: velocities at the start of the window, `(nv,)`
    v: AnyArray
    #: time of the first row of efforts and inputs since the start of the window, not positive, s
    start: AnyArray
    #: time step of efforts and inputs, s
    step: AnyArray
    #: measured efforts, `(rows, nv)`
    efforts: AnyArray
    #: inputs of the actuators, `(rows, inputs)`
    inputs: AnyArray | None = None
    #: measurements of the actuators at the compared times, `(times,)` by name
    measured: dict[str, AnyArray] | None = None


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

    def cut(self, model: Model, log: Log) -> WindowSample:
        """All windows of a log, one per row.

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
        inputs = None if log.inputs is None else np.asarray(log.inputs)[effort_rows]
        given = (log.measured or {}).items()
        measured: dict[str, AnyArray] | None = {name: np.asarray(x)[compared] for name, x in given} or None
        ts = t[compared] - t[starts][:, None]
        return WindowSample(ts, q[compared], v[starts], -back * steps, steps, u[effort_rows], inputs, measured)
