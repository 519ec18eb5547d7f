"""What was measured along a log beside what the fitted robot predicts: efforts, or motions over windows."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.identification._calibration import FramePoses
from jaxdyn.identification._fit_residual import coordinate_channels, predicted_effort
from jaxdyn.identification._log import Log
from jaxdyn.identification._output_error import OutputError
from jaxdyn.identification._result import FitResult
from jaxdyn.kinematics import difference
from jaxdyn.simulation import System, effort_names


class Series(NamedTuple):
    """Rows of one log, or of the windows of one, a column a channel."""

    #: s
    t: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray
    #: what errors are relative to: the efforts, or the motion since the start of the window
    size: np.ndarray
    #: rows before which curves are broken
    breaks: tuple[int, ...] = ()


class Comparison(NamedTuple):
    """What a report compares, and how."""

    #: such as `efforts`
    what: str
    #: names and units
    channels: tuple[tuple[str, str], ...]
    series: Callable[[Log], Series]
    #: whether errors of neighbours are independent where everything is modelled
    tested: bool


def comparison(result: FitResult, predict: Callable[[Log], Any] | None) -> Comparison:
    """Motions over windows after a fit of motions; otherwise efforts, by the fitted system or as `predict` says."""
    method = result.method
    if predict is None and isinstance(method, OutputError):
        names, units = coordinate_channels(result.model)
        channels = tuple((name, "m" if unit == "N" else "rad") for name, unit in zip(names, units, strict=True))
        what = f"motion over windows of {method.windows.length:g} s"
        return Comparison(what, channels, lambda log: _motion(result.system, method, log), False)
    if predict is None and isinstance(method, FramePoses):
        raise ModelError(
            "a report compares efforts or motions, and this fit was of poses; see result.errors, or give predict="
        )
    told = (lambda log: predicted_effort(result.system, log)) if predict is None else predict
    return Comparison("efforts", tuple(effort_names(result.model)), lambda log: _efforts(log, told), True)


def _efforts(log: Log, predict: Callable[[Log], Any]) -> Series:
    measured = np.asarray(log.effort)
    return Series(np.asarray(log.t), measured, np.asarray(predict(log)), measured)


def _motion(system: System, method: OutputError, log: Log) -> Series:
    """Coordinates within the windows; of joints with quaternions, turns since the start of the window."""
    model, windows = system.model, method.windows
    sample = tuple(np.asarray(x, model.dtype) for x in windows.cut(model, log))
    ts, q = sample[:2]
    left = np.asarray(_errors(method, system, sample)).transpose(0, 2, 1)[:, : ts.shape[1]]
    seen = slice(ts.shape[1] - left.shape[1], None)  # whether the start itself is compared is the method's choice
    moved = np.asarray(_moved(model, q))[:, seen]
    shown = q[:, seen] if model.nq == model.nv else moved
    dt = float(log.dt)
    stride = max(1, round((windows.length if windows.stride is None else windows.stride) / dt)) * dt
    begin = float(log.t[0]) - sample[3] + stride * np.arange(len(ts))
    flat = lambda x: x.reshape(-1, model.nv)
    breaks = tuple(left.shape[1] * k for k in range(1, len(ts)))
    return Series((begin[:, None] + ts[:, seen]).reshape(-1), flat(shown), flat(shown - left), flat(moved), breaks)


@eqx.filter_jit
def _errors(method: OutputError, system: System, sample):
    return jax.lax.map(lambda row: method.start.residual(system, method.windows, row), sample, batch_size=64)


@jax.jit
def _moved(model, q):
    return jax.vmap(lambda window: jax.vmap(lambda x: difference(model, window[0], x))(window))(jnp.asarray(q))
