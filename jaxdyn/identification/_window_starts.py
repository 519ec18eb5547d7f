"""The states in which simulated windows of a log start: as measured, or free."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn.identification._windows import Windows, simulated
from jaxdyn.kinematics import difference, integrate
from jaxdyn.simulation import System


class AbstractStart(eqx.Module):
    """Where the state at the start of a window comes from."""

    #: how many numbers a coordinate and window are spent on the start
    spent: eqx.AbstractVar[int]

    @abc.abstractmethod
    def residual(self, system: System, windows: Windows, sample: Any) -> Any:
        """Measured minus simulated coordinates of one window, `(nv, k)`."""


class MeasuredStart(AbstractStart):
    """Windows start in the measured state.

    Its noise goes through the whole window: where the robot is unstable it grows, and parameters are biased by it.
    For clean logs, and logs with few samples in a window.
    """

    spent: int = eqx.field(static=True, default=0)

    def residual(self, system, windows, sample):
        return _off(system, sample[1], simulated(system, windows, sample))[1:].T


class FreeStart(AbstractStart):
    """Windows start in the state from which they fit best, an unknown of its own for each window.

    With the start x_0 of a window, its offset d from what was measured in the tangent space, and parameters p, the
    residual r(p, d) is replaced by

        r_free(p) = (1 - J J^+) r(p, d*),     d* = argmin_d |r(p, d)|^2,     J = dr/dd

    with d* by `steps` Gauss-Newton steps from the measured state. Its slope is `(1 - J J^+) dr/dp`, so that the fit
    minimises over parameters and all starts, as multiple shooting does (Bock 1983), while normal equations stay
    as small as the parameters: variable projection (Golub and Pereyra 1973, with Kaufman's slope, 1975). Deviations
    count the starts among what was fitted.

    Measured coordinates at the start are compared like all others. Measured velocities serve to begin from, unless
    `trust` says how they are to be weighed: the deviation of a measured coordinate over that of a measured velocity, s.
    Velocities that were differentiated from the coordinates say nothing new.
    """

    trust: float | None = eqx.field(static=True, default=None)
    steps: int = eqx.field(static=True, default=3)
    spent: int = eqx.field(static=True, default=2)

    def residual(self, system, windows, sample):
        fixed = jax.lax.stop_gradient(system)
        rows = lambda system, d: self._rows(system, windows, sample, d)
        found, slope = _best(lambda d: rows(fixed, d), sample, system.model.nv, self.steps)
        r = rows(system, found)
        flat = slope.reshape(-1, slope.shape[-1])
        own = jnp.linalg.qr(flat)[0]
        return (r.reshape(-1) - own @ (own.T @ r.reshape(-1))).reshape(r.shape).T

    def _rows(self, system, windows, sample, d):
        """All rows of one window, the first of them at its start; `(k, nv)`."""
        nv = system.model.nv
        q, v = integrate(system.model, sample[1][0], d[:nv]), sample[2] + d[nv:]
        rows = _off(system, sample[1], simulated(system, windows, sample, q, v))
        return rows if self.trust is None else jnp.concatenate([rows, -self.trust * d[None, nv:]])


def _off(system: System, measured, found):
    return jax.vmap(lambda a, b: difference(system.model, a, b))(found, measured)


def _best(rows: Callable[[Any], Any], sample, nv: int, steps: int) -> tuple[Any, Any]:
    """The start's offset by Gauss-Newton steps, and the slope of the rows there; derivatives end here."""

    slope = jax.jacfwd(lambda d: (rows(d),) * 2, has_aux=True)

    def step(d, _):
        j, r = slope(d)
        own, upper = jnp.linalg.qr(j.reshape(-1, 2 * nv))
        return d - jnp.linalg.solve(upper, own.T @ r.reshape(-1)), None

    d, _ = jax.lax.scan(step, jnp.zeros(2 * nv, sample[2].dtype), length=steps)
    return jax.lax.stop_gradient((d, slope(d)[0]))
