"""Sampled signals in NumPy: repeated samples, gaps, interpolation, zero-phase filters, derivatives and delays."""

from typing import NamedTuple

import numpy as np

from jaxdyn.identification.logs import find_runs


class Segment(NamedTuple):
    """Uniform samples of one segment of a run: columns by quantity, not yet filtered."""

    t: np.ndarray
    x: dict[str, np.ndarray]


def is_repeated(t: np.ndarray, columns: list[np.ndarray], longest: float) -> np.ndarray:
    """True for rows that repeat the previous row: equal time, or equal values in all columns.

    Runs of equal values over `longest` (s) or more are rest and do not count as repeated.
    """
    repeated = np.zeros(len(t), bool)
    repeated[1:] = np.all([np.diff(x) == 0 for x in columns], axis=0)
    first = np.flatnonzero(~repeated)
    run = np.cumsum(~repeated) - 1
    last = np.append(first[1:], len(t)) - 1
    repeated &= (t[last] - t[first])[run] < longest
    repeated[1:] |= np.diff(t) == 0
    return repeated


def split_at_gaps(t: np.ndarray, longest: float) -> list[tuple[int, int]]:
    """First and last row (inclusive) of each segment without a time step greater than `longest`, s."""
    cuts = [int(k) for k in np.flatnonzero(np.diff(t) > longest)]
    return list(zip([0, *(k + 1 for k in cuts)], [*cuts, len(t) - 1], strict=True))


def interpolate_cubic(t: np.ndarray, x: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Columns x `(n, ...)` at the times `at`, by cubic Hermite interpolation with three-point finite-difference slopes.

    Third-order accurate for nonuniform steps; constant beyond the ends; linear for two points.
    """
    at = np.clip(at, t[0], t[-1])
    if len(t) < 3:
        w = ((at - t[0]) / (t[-1] - t[0])).reshape(-1, *[1] * (x.ndim - 1))
        return x[0] + w * (x[-1] - x[0])
    shape = (-1, *[1] * (x.ndim - 1))
    h = np.diff(t).reshape(shape)
    secant = np.diff(x, axis=0) / h
    inner = (h[1:] * secant[:-1] + h[:-1] * secant[1:]) / (h[1:] + h[:-1])
    slope = np.concatenate([2 * secant[:1] - inner[:1], inner, 2 * secant[-1:] - inner[-1:]])
    k = np.clip(np.searchsorted(t, at, side="right") - 1, 0, len(t) - 2)
    s = ((at - t[k]) / (t[k + 1] - t[k])).reshape(shape)
    step = h[k]
    a, b = x[k], x[k + 1]
    return (
        (1 + 2 * s) * (1 - s) ** 2 * a
        + s * (1 - s) ** 2 * step * slope[k]
        + s**2 * (3 - 2 * s) * b
        + s**2 * (s - 1) * step * slope[k + 1]
    )


def butterworth_response(frequency: np.ndarray, cutoff: float, rate: float, order: int) -> np.ndarray:
    """Gain of a zero-phase digital Butterworth low-pass: `1 / (1 + (tan(pi f / r) / tan(pi c / r))^(2 order))`.

    The frequency f, the cut-off frequency c and the sampling rate r are in Hz. The gain at the cut-off is one half,
    since the filter runs forward and backward (Oppenheim and Schafer, Discrete-Time Signal Processing, 7.3).
    """
    with np.errstate(over="ignore"):  # the tangent diverges at the Nyquist frequency
        ratio = np.tan(np.pi * np.minimum(frequency / rate, 0.5)) / np.tan(np.pi * cutoff / rate)
        return 1 / (1 + np.abs(ratio) ** (2 * order))


def filter_zero_phase(x: np.ndarray, dt: float, cutoff: float | None, order: int, derivative: int = 0) -> np.ndarray:
    """Zero-phase low-pass of columns x `(n, k)` with uniform steps, or its time derivative of order 1 or 2.

    The straight line between the end points passes unchanged. The remainder is zero at both ends and is extended to an
    odd periodic signal. The filter and the derivative multiply its spectrum by `gain(f)` and `(2 pi i f)^derivative`.
    """
    n = len(x)
    ramp = np.linspace(0.0, 1.0, n)[:, None]
    rise = x[-1] - x[0]
    rest = x - x[0] - ramp * rise
    spectrum = np.fft.rfft(np.concatenate([rest, -rest[-2:0:-1]]), axis=0)
    f = np.fft.rfftfreq(2 * (n - 1), dt)
    factor = (2j * np.pi * f) ** derivative
    if cutoff is not None:
        factor = factor * butterworth_response(f, cutoff, 1 / dt, order)
    smooth = np.fft.irfft(spectrum * factor[:, None], 2 * (n - 1), axis=0)[:n]
    line = (x[0] + ramp * rise, rise / ((n - 1) * dt), 0.0)[derivative]
    return smooth + line


def bandwidth(x: np.ndarray, dt: float, share: float = 0.999) -> float:
    """The frequency (Hz) below which each column has `share` of its power; at least one period over the signal."""
    n = len(x)
    ramp = np.linspace(0.0, 1.0, n)[:, None]
    rest = x - x[0] - ramp * (x[-1] - x[0])
    power = np.abs(np.fft.rfft(np.concatenate([rest, -rest[-2:0:-1]]), axis=0)) ** 2
    f = np.fft.rfftfreq(2 * (n - 1), dt)
    total = power.sum(axis=0)
    moving = np.ptp(x, axis=0) > 1e-3 * np.ptp(x, axis=0).max()
    if not moving.any() or total.max() == 0:
        return 1 / (n * dt)
    reached = np.cumsum(power[:, moving], axis=0) >= share * total[moving]
    return float(max(f[np.argmax(reached, axis=0)].max(), 1 / (n * dt)))


def estimate_delay(reference: np.ndarray, x: np.ndarray, dt: float, longest: float) -> float:
    """The delay of x relative to the reference, s, at most `longest`: the maximum of their absolute cross-correlation.

    `c(d) = sum_t reference(t) x(t + d)`, of the signals without mean and with a Hann taper. Newton's method finds the
    maximum of the trigonometric interpolation of c (Knapp and Carter 1976).
    """
    n = len(x)
    taper = np.hanning(n + 2)[1:-1]
    a, b = ((s - s.mean()) * taper for s in (reference, x))
    size = 1 << (2 * n).bit_length()
    cross = np.conj(np.fft.rfft(a, size)) * np.fft.rfft(b, size)
    w = 2 * np.pi * np.fft.rfftfreq(size, dt)
    correlation = np.fft.irfft(cross, size)
    reach = max(1, min(int(longest / dt), n - 1))
    lags = np.arange(-reach, reach + 1)
    k = lags[np.argmax(np.abs(correlation[lags]))]
    cross = cross * np.sign(correlation[k])
    d = float(k) * dt
    for _ in range(20):
        wave = cross * np.exp(1j * w * d)
        slope, curvature = -np.sum(w * wave.imag), -np.sum(w**2 * wave.real)
        if curvature >= 0:
            break
        step = float(np.clip(-slope / curvature, -dt / 2, dt / 2))
        d += step
        if abs(step) < 1e-9 * dt:
            break
    return d


def slope_and_correlation(reference: np.ndarray, x: np.ndarray) -> tuple[float, float]:
    """Least-squares slope of x over the reference, and their correlation coefficient."""
    a, b = reference - reference.mean(), x - x.mean()
    aa, bb, ab = float(a @ a), float(b @ b), float(a @ b)
    if aa == 0:
        return float("nan"), float("nan")
    return ab / aa, ab / np.sqrt(aa * bb) if bb > 0 else 0.0


def is_at_extreme(x: np.ndarray, least: int) -> np.ndarray:
    """True where a signal stays at its maximum or minimum for at least `least` samples."""
    constant = np.zeros(len(x), bool)
    if np.ptp(x) == 0:
        return constant
    for level in (x.max(), x.min()):
        for first, last in find_runs(np.abs(x - level) <= 1e-9 * np.ptp(x), least):
            constant[first : last + 1] = True
    return constant
