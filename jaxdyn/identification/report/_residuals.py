"""Residuals of efforts or motions by joint, and the whiteness test of Ljung and Box."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jax.scipy.special import gammaincc

from jaxdyn.identification.preparation import butterworth_response
from jaxdyn.identification.report._series import Series

_LAGS = 20


@dataclass(frozen=True)
class Whiteness:
    """Autocorrelation of a residual, and the whiteness test of Ljung and Box.

    `r_k = sum e_t e_(t+k) / sum e_t^2`, `Q = n (n + 2) sum r_k^2 / (n - k)`, which for white noise has a chi-squared
    distribution with one degree of freedom per lag (Ljung and Box 1978).
    """

    #: time between the tested residuals, s; filtered residuals are decimated to independent values
    step: float
    #: autocorrelation r_k at lags 1, 2, ...
    autocorrelation: tuple[float, ...]
    #: 95 % bound of the autocorrelation of white noise
    bound: float
    #: Q, and the p-value: the probability that white noise exceeds Q
    statistic: float
    probability: float

    @property
    def white(self) -> bool:
        """Whether the p-value is above 1 %."""
        return self.probability > 0.01


@dataclass(frozen=True)
class JointResidual:
    """The residual of the effort, or of the motion, of one joint on one set of logs."""

    joint: str
    unit: str
    #: root mean square of measured minus predicted
    rmse: float
    #: rmse over the root mean square of the measured effort, or of the displacement since the start of the window
    relative: float
    #: mean of measured minus predicted
    bias: float
    #: maximum magnitude of measured minus predicted
    greatest: float
    whiteness: Whiteness | None


def joint_residuals(
    series: Sequence[Series],
    channels: Sequence[tuple[str, str]],
    steps: Sequence[float] | None,
    filters: tuple[float | int | None, int],
) -> tuple[JointResidual, ...]:
    """Residuals of each joint over all logs; `steps`: time steps for the whiteness test, or None to omit it."""
    if not series:
        return ()
    residuals = [x.measured - x.predicted for x in series]
    stacked, size = np.concatenate(residuals), np.concatenate([x.size for x in series])
    rows = []
    for k, (joint, unit) in enumerate(channels):
        rmse, scale = (float(np.sqrt(np.mean(x[:, k] ** 2))) for x in (stacked, size))
        white = None if steps is None else whiteness([e[:, k] for e in residuals], steps, *filters)
        relative = rmse / scale if scale > 0 else float("nan")
        mean, greatest = float(stacked[:, k].mean()), float(np.abs(stacked[:, k]).max())
        rows.append(JointResidual(joint, unit, rmse, relative, mean, greatest, white))
    return tuple(rows)


def whiteness(
    residuals: Sequence[np.ndarray], steps: Sequence[float], cutoff: float | int | None, order: int = 4
) -> Whiteness | None:
    """The whiteness test on residuals of several logs; None if there are too few samples or all are zero.

    A low-pass filter correlates neighbouring samples. Filtered residuals are therefore restricted to the band up to 0.8
    of the cut-off frequency, divided by the gain of the filter, and decimated to twice that band: noise that was white
    before the filter is white again.

    Arguments:

    * `residuals`: residuals of each log, `(n,)` each.
    * `steps`: time step of each log, s.
    * `cutoff`: cut-off frequency of the filter, Hz, or None without a filter; `order`: its order.
    """
    parts, step = [], steps[0] if steps else 0.0
    for e, dt in zip(residuals, steps, strict=True):
        part, step = (e, dt) if cutoff is None else _undo_filter(e, dt, cutoff, order)
        parts += [part - part.mean()] if len(part) > 1 else []
    n = sum(map(len, parts))
    lags = min(_LAGS, n // 5)
    power = sum(float(e @ e) for e in parts)
    if lags < 1 or power == 0:
        return None
    r = np.array([sum(float(e[:-k] @ e[k:]) for e in parts if len(e) > k) / power for k in range(1, lags + 1)])
    statistic = float(n * (n + 2) * np.sum(r**2 / (n - np.arange(1, lags + 1))))
    probability = float(gammaincc(lags / 2, statistic / 2))
    return Whiteness(float(step), tuple(map(float, r)), 1.96 / np.sqrt(n), statistic, probability)


def _undo_filter(e: np.ndarray, dt: float, cutoff: float, order: int) -> tuple[np.ndarray, float]:
    """The residual before the filter in the band up to 0.8 of the cut-off frequency, and its time step."""
    band = 0.8 * cutoff
    if 2 * band * dt >= 1:
        return e, dt
    keep = int(band * len(e) * dt)
    spectrum = np.fft.rfft(e - e.mean())[: keep + 1]
    gain = butterworth_response(np.fft.rfftfreq(len(e), dt)[: keep + 1], cutoff, 1 / dt, order)
    return np.fft.irfft(spectrum / gain, 2 * keep) if keep else e[:1], len(e) * dt / max(2 * keep, 1)
