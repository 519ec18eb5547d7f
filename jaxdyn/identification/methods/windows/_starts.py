"""The initial states of simulated windows of a log: measured, or estimated with the parameters."""

import abc
import math
from collections.abc import Callable, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.identification.methods.windows._simulation import simulate_window
from jaxdyn.identification.methods.windows._windows import Windows, WindowSample
from jaxdyn.kinematics import difference, integrate
from jaxdyn.simulation import System
from jaxdyn.simulation.system import state_measurements


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


def _as_pairs(scales: Mapping[str, float] | tuple[tuple[str, float], ...]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted((name, float(x)) for name, x in dict(scales).items()))


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

    Measured states of actuators, such as currents and temperatures, are initial states like the others. The least
    squares over the initial states need the weights of all channels: `scales` gives, for each measurement of the log,
    its standard deviation over that of a measured coordinate, such as `{"current.elbow": 200.0}` in A/rad. Without it a
    log with measurements raises `ModelError`. The weights of the fit itself are estimated as always.
    """

    trust: float | None = eqx.field(static=True, default=None)
    steps: int = eqx.field(static=True, default=3)
    scales: Mapping[str, float] | tuple[tuple[str, float], ...] = eqx.field(
        static=True, converter=_as_pairs, default=()
    )
    spent: int = eqx.field(static=True, default=2)

    def residual(self, system, windows, sample):
        self._check_scales(sample)
        fixed = jax.lax.stop_gradient(system)
        rows = lambda system, d: self._residual_rows(system, windows, sample, d)
        unknowns = 2 * system.model.nv + len(_measured_states(fixed, sample))
        offset, jacobian = _fit_start(lambda d: rows(fixed, d), unknowns, sample.v.dtype, self.steps)
        r = rows(system, offset)
        basis = jnp.linalg.qr(jacobian.reshape(-1, unknowns))[0]
        free = (r.reshape(-1) - basis @ (basis.T @ r.reshape(-1))).reshape(r.shape).T
        return jnp.concatenate([free[: system.model.nv], free[system.model.nv :] * self._scales(sample)[:, None]])

    def _residual_rows(self, system, windows, sample, d):
        """The residuals `(k, channels)` of one window in the unit of the coordinates, the first row at its start."""
        nv, measured = system.model.nv, sample.measured or {}
        q, v = integrate(system.model, sample.q[0], d[:nv]), sample.v + d[nv : 2 * nv]
        scales = dict(zip(sorted(measured), self._scales(sample), strict=True))
        states = _measured_states(system, sample)
        offsets = {name: scales[name] * x for name, x in zip(states, d[2 * nv :], strict=True)}
        simulated, values = simulate_window(system, windows, sample, q, v, part_offsets=offsets)
        rows = _coordinate_errors(system, sample.q, simulated)
        errors = [((measured[name] - values[name]) / scales[name])[:, None] for name in sorted(measured)]
        rows = jnp.concatenate([rows, *errors], axis=1)
        if self.trust is None:
            return rows
        trusted = jnp.concatenate([-self.trust * d[nv : 2 * nv], jnp.zeros(len(errors), rows.dtype)])
        return jnp.concatenate([rows, trusted[None]])

    def _scales(self, sample: WindowSample) -> Array:
        known = dict(self.scales)
        return jnp.asarray([known[name] for name in sorted(sample.measured or {})], sample.v.dtype)

    def _check_scales(self, sample: WindowSample):
        known = dict(self.scales)
        lacking = [name for name in sorted(sample.measured or {}) if name not in known]
        if lacking:
            raise ModelError(
                f"FreeStart has no scales of {', '.join(lacking)}, which the log measures, and the initial states need "
                f"the weights of all channels; give scales={{{lacking[0]!r}: its standard deviation over that of a "
                "coordinate, ...}, take MeasuredStart, or leave them out of the log"
            )
        wrong = [f"{name}: {x:g}" for name, x in known.items() if not 0 < x < math.inf]
        if wrong:
            raise ModelError(f"FreeStart has scales {', '.join(wrong)}; expected positive numbers")


def _measured_states(system: System, sample: WindowSample) -> list[str]:
    """The measurements of a window that are states of actuators, sorted."""
    model = system.model
    start = system.initial(jnp.asarray(sample.q[0]), jnp.zeros(model.nv, sample.v.dtype))
    return sorted(set(state_measurements(system, start.parts)) & set(sample.measured or {}))


def _coordinate_errors(system: System, measured, simulated):
    return jax.vmap(lambda a, b: difference(system.model, a, b))(simulated, measured)


def _fit_start(rows: Callable[[Array], Array], unknowns: int, dtype, steps: int) -> tuple[Array, Array]:
    """The offset of the initial state by Gauss-Newton steps, and the Jacobian of the rows there, as constants."""

    linearise = jax.jacfwd(lambda d: (rows(d),) * 2, has_aux=True)

    def step(d, _):
        jacobian, r = linearise(d)
        basis, upper = jnp.linalg.qr(jacobian.reshape(-1, unknowns))
        return d - jnp.linalg.solve(upper, basis.T @ r.reshape(-1)), None

    d, _ = jax.lax.scan(step, jnp.zeros(unknowns, dtype), length=steps)
    return jax.lax.stop_gradient((d, linearise(d)[0]))
