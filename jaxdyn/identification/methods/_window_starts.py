"""The initial states of simulated windows of a log: measured, or estimated with the parameters."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.identification.methods._window_simulation import simulate_window
from jaxdyn.identification.methods._windows import Windows, WindowSample
from jaxdyn.kinematics import difference, integrate
from jaxdyn.simulation import System


class AbstractStart(eqx.Module):
    """The source of the initial state of a window."""

    #: number of unknowns per coordinate and window that the initial state adds to the fit
    spent: eqx.AbstractVar[int]

    @abc.abstractmethod
    def residual(self, system: System, windows: Windows, sample: WindowSample) -> Float[Array, "channels k"]:
        """Measured minus simulated coordinates of one window, then measurements by sorted names, `(channels, k)`."""


class MeasuredStart(AbstractStart):
    """Windows start in the measured state.

    The noise of this state affects the whole window: it grows where the robot is unstable, and biases the parameters.
    For logs with little noise, and logs with few samples per window.

    `parts` selects the initial states of actuators: measured currents and temperatures, or, if False, the initial
    states of the parts, as for a motor that starts without current and at the ambient temperature.
    """

    spent: int = eqx.field(static=True, default=0)
    parts: bool = eqx.field(static=True, default=True)

    def residual(self, system, windows, sample):
        q, values = simulate_window(system, windows, sample, measured_parts=self.parts)
        rows = _coordinate_errors(system, sample.q, q)[1:].T
        measured = sample.measured or {}
        errors = [(measured[name] - values[name])[None, 1:] for name in sorted(values)]
        return jnp.concatenate([rows, *errors])


class FreeStart(AbstractStart):
    """Each window starts in the state that fits the window best.

    With the parameters p and the offset d, in the tangent space, of the initial state of a window from the measured
    state, the residual r(p, d) is replaced by

        r_free(p) = (1 - J J^+) r(p, d*),     d* = argmin_d |r(p, d)|^2,     J = dr/dd

    with d* from `steps` Gauss-Newton steps that start at the measured state. The derivative is `(1 - J J^+) dr/dp`, so
    the fit minimises over the parameters and all initial states, as multiple shooting does (Bock 1983), while the
    normal equations have only the size of the parameters: variable projection (Golub and Pereyra 1973, with Kaufman's
    approximation of the Jacobian, 1975). The standard deviations of the parameters account for the initial states.

    Measured coordinates at the start are compared like all others. Measured velocities are only the initial guess,
    unless `trust` gives their weight: the standard deviation of a measured coordinate over that of a measured velocity,
    s. Velocities that were differentiated from the coordinates carry no further information.

    Logs with measurements of actuators raise `ModelError`: the initial states would need their weights.
    """

    trust: float | None = eqx.field(static=True, default=None)
    steps: int = eqx.field(static=True, default=3)
    spent: int = eqx.field(static=True, default=2)

    def residual(self, system, windows, sample):
        if sample.measured:
            raise ModelError(
                "FreeStart estimates initial states from coordinates alone, and the log has measurements of "
                f"{', '.join(sorted(sample.measured))}; take MeasuredStart, or leave them out of the log"
            )
        fixed = jax.lax.stop_gradient(system)
        rows = lambda system, d: self._residual_rows(system, windows, sample, d)
        offset, jacobian = _fit_start(lambda d: rows(fixed, d), sample, system.model.nv, self.steps)
        r = rows(system, offset)
        basis = jnp.linalg.qr(jacobian.reshape(-1, jacobian.shape[-1]))[0]
        return (r.reshape(-1) - basis @ (basis.T @ r.reshape(-1))).reshape(r.shape).T

    def _residual_rows(self, system, windows, sample, d):
        """The residuals `(k, nv)` of one window, the first row at its start."""
        nv = system.model.nv
        q, v = integrate(system.model, sample.q[0], d[:nv]), sample.v + d[nv:]
        rows = _coordinate_errors(system, sample.q, simulate_window(system, windows, sample, q, v)[0])
        return rows if self.trust is None else jnp.concatenate([rows, -self.trust * d[None, nv:]])


def _coordinate_errors(system: System, measured, simulated):
    return jax.vmap(lambda a, b: difference(system.model, a, b))(simulated, measured)


def _fit_start(rows: Callable[[Array], Array], sample, nv: int, steps: int) -> tuple[Array, Array]:
    """The offset of the initial state by Gauss-Newton steps, and the Jacobian of the rows there, as constants."""

    linearise = jax.jacfwd(lambda d: (rows(d),) * 2, has_aux=True)

    def step(d, _):
        jacobian, r = linearise(d)
        basis, upper = jnp.linalg.qr(jacobian.reshape(-1, 2 * nv))
        return d - jnp.linalg.solve(upper, basis.T @ r.reshape(-1)), None

    d, _ = jax.lax.scan(step, jnp.zeros(2 * nv, sample.v.dtype), length=steps)
    return jax.lax.stop_gradient((d, linearise(d)[0]))
