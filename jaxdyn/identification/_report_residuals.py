"""Measured against predicted efforts or motions, joint by joint, and whether what remains is noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.scipy.special import gammaincc

from jaxdyn.identification._prepare_signals import butterworth_response
from jaxdyn.identification._report_series import Series

_LAGS = 20


@dataclass(frozen=True)
class Whiteness:
    """Whether a residual is noise: its autocorrelation and the test of Ljung and Box.

    `r_k = sum e_t e_(t+k) / sum e_t^2`, `Q = n (n + 2) sum r_k^2 / (n - k)`, which for white noise has a chi-squared
    distribution with as many degrees of freedom as lags (Ljung and Box 1978).
    """

    #: time between the residuals that were compared, s: filtered signals hold one independent value in this time
    step: float
    #: of lags 1, 2, ...
    autocorrelation: tuple[float, ...]
    #: 95 % of the correlations of noise are within plus and minus this
    bound: float
    #: Q, and the probability that noise has a greater one
    statistic: float
    probability: float

    @property
    def white(self) -> bool:
        """Whether the probability is above 1 %."""
        return self.probability > 0.01


@dataclass(frozen=True)
class JointResidual:
    """How well the effort, or the motion, of one joint is predicted on one set of logs."""

    joint: str
    unit: str
    #: root of the mean square of measured minus predicted
    rmse: float
    #: that over the root of the mean square of the measured effort, or of the motion since the start of the window
    relative: float
    #: mean of measured minus predicted
    bias: float
    #: greatest magnitude of measured minus predicted
    greatest: float
    whiteness: Whiteness | None


def joint_residuals(
    found: Sequence[Series],
    channels: Sequence[tuple[str, str]],
    steps: Sequence[float] | None,
    filters: tuple[Any, int],
) -> tuple[JointResidual, ...]:
    """Residuals of each joint over all logs; `steps` are time steps for the test of whiteness, or None without it."""
    if not found:
        return ()
    rest = [x.measured - x.predicted for x in found]
    every, size = np.concatenate(rest), np.concatenate([x.size for x in found])
    rows = []
    for k, (joint, unit) in enumerate(channels):
        rmse, scale = (float(np.sqrt(np.mean(x[:, k] ** 2))) for x in (every, size))
        white = None if steps is None else whiteness([e[:, k] for e in rest], steps, *filters)
        relative = rmse / scale if scale > 0 else float("nan")
        mean, greatest = float(every[:, k].mean()), float(np.abs(every[:, k]).max())
        rows.append(JointResidual(joint, unit, rmse, relative, mean, greatest, white))
    return tuple(rows)


def whiteness(
    residuals: Sequence[np.ndarray], steps: Sequence[float], cutoff: float | None, order: int = 4
) -> Whiteness | None:
    """The test on residuals of several logs; None where they are too few or zero.

    A low-pass at `cutoff` (Hz) ties neighbours together. What it left is therefore compared in the band up to 0.8 of
    the cut-off, divided by its gain there, and at twice that rate: noise that was white before the filter is so again.
    """
    parts, step = [], steps[0] if steps else 0.0
    for e, dt in zip(residuals, steps, strict=True):
        part, step = (e, dt) if cutoff is None else _unfiltered(e, dt, cutoff, order)
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


def _unfiltered(e: np.ndarray, dt: float, cutoff: float, order: int) -> tuple[np.ndarray, float]:
    """The part below 0.8 of the cut-off, as it was before the filter, and its time step."""
    band = 0.8 * cutoff
    if 2 * band * dt >= 1:
        return e, dt
    keep = int(band * len(e) * dt)
    spectrum = np.fft.rfft(e - e.mean())[: keep + 1]
    gain = butterworth_response(np.fft.rfftfreq(len(e), dt)[: keep + 1], cutoff, 1 / dt, order)
    return np.fft.irfft(spectrum / gain, 2 * keep) if keep else e[:1], len(e) * dt / max(2 * keep, 1)
