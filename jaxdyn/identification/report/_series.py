"""Measured and predicted values along a log: efforts, or motions over windows."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn.identification.fitting import FitResult
from jaxdyn.identification.logs import Log
from jaxdyn.identification.methods import FramePoses, OutputError
from jaxdyn.identification.residuals import compare_efforts, dof_channels
from jaxdyn.kinematics import difference
from jaxdyn.simulation import System, effort_names


class Series(NamedTuple):
    """Measured and predicted values of one log or of its windows, one column per channel."""

    #: s
    t: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray
    #: reference of relative errors: the efforts, or the displacement since the start of the window
    size: np.ndarray
    #: rows at which a new window starts
    breaks: tuple[int, ...] = ()


class Comparison(NamedTuple):
    """The quantity that a report compares."""

    #: such as `efforts`
    quantity: str
    #: names and units
    channels: tuple[tuple[str, str], ...]
    series: Callable[[Log], Series]
    #: whether the residuals of an exact model are independent, as the whiteness test requires
    is_tested: bool


def choose_comparison(result: FitResult, predict: Callable[[Log], ArrayLike] | None) -> Comparison:
    """Motions over windows after a fit by `OutputError`; otherwise efforts, of the fitted system or of `predict`."""
    method = result.method
    if predict is None and isinstance(method, OutputError):
        names, units = dof_channels(result.model)
        channels = tuple((name, "m" if unit == "N" else "rad") for name, unit in zip(names, units, strict=True))
        quantity = f"motion over windows of {method.windows.length:g} s"
        return Comparison(quantity, channels, lambda log: _motion_series(result.system, method, log), False)
    if predict is None and isinstance(method, FramePoses):
        raise ModelError(
            "a report compares efforts or motions, but this fit used frame poses; see result.errors, or pass predict="
        )
    if predict is None:
        compare = lambda log: compare_efforts(result.system, log)
    else:
        compare = lambda log: (np.asarray(log.effort), np.asarray(predict(log)))
    return Comparison("efforts", tuple(effort_names(result.model)), lambda log: _effort_series(log, compare), True)


def _effort_series(log: Log, compare: Callable[[Log], tuple[np.ndarray, np.ndarray]]) -> Series:
    measured, predicted = compare(log)
    return Series(np.asarray(log.t), measured, predicted, measured)


def _motion_series(system: System, method: OutputError, log: Log) -> Series:
    """Coordinates within the windows; displacements since the start of the window for joints with quaternions."""
    model, windows = system.model, method.windows
    sample = jax.tree.map(lambda x: np.asarray(x, model.dtype), windows.cut(model, log))
    ts, q = sample.ts, sample.q
    residual = np.asarray(_window_residuals(method, system, sample)).transpose(0, 2, 1)[:, : ts.shape[1], : model.nv]
    compared = slice(ts.shape[1] - residual.shape[1], None)  # measured starts have no residual
    displacement = np.asarray(_displacements(model, q))[:, compared]
    measured = q[:, compared] if model.nq == model.nv else displacement
    dt = float(log.dt)
    stride = max(1, round((windows.length if windows.stride is None else windows.stride) / dt)) * dt
    begin = float(log.t[0]) - sample.start + stride * np.arange(len(ts))
    flat = lambda x: x.reshape(-1, model.nv)
    breaks = tuple(residual.shape[1] * k for k in range(1, len(ts)))
    times = (begin[:, None] + ts[:, compared]).reshape(-1)
    return Series(times, flat(measured), flat(measured - residual), flat(displacement), breaks)


@eqx.filter_jit
def _window_residuals(method: OutputError, system: System, sample):
    return jax.lax.map(lambda row: method.start.residual(system, method.windows, row), sample, batch_size=64)


@jax.jit
def _displacements(model, q):
    return jax.vmap(lambda window: jax.vmap(lambda x: difference(model, window[0], x))(window))(jnp.asarray(q))
