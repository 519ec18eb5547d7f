"""Sampled signals: repeats, gaps, even steps, zero-phase filters, derivatives and delays, in numpy."""

import numpy as np


def repeated_rows(t: np.ndarray, columns: list[np.ndarray], longest: float) -> np.ndarray:
    """Which rows repeat the one before: at the same time, or with the same numbers in all columns.

    Equal numbers for `longest` (s) or more are taken for rest, and stay.
    """
    same = np.zeros(len(t), bool)
    same[1:] = np.all([np.diff(x) == 0 for x in columns], axis=0)
    first = np.flatnonzero(~same)
    run = np.cumsum(~same) - 1
    last = np.append(first[1:], len(t)) - 1
    same &= (t[last] - t[first])[run] < longest
    same[1:] |= np.diff(t) == 0
    return same


def stretches(t: np.ndarray, longest: float) -> list[tuple[int, int]]:
    """First and last row (inclusive) of each stretch of times without a step beyond `longest`, s."""
    cuts = [int(k) for k in np.flatnonzero(np.diff(t) > longest)]
    return list(zip([0, *(k + 1 for k in cuts)], [*cuts, len(t) - 1], strict=True))


def interpolate(t: np.ndarray, x: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Columns x `(n, ...)` at other times by cubic Hermite polynomials with the slopes of parabolas through 3 points.

    Third-order accurate for uneven steps; constant beyond the ends. Two points make a line.
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
    """Gain of a digital Butterworth low-pass run forward and backward: `1 / (1 + (tan pi f/r / tan pi c/r)^(2 order))`.

    All in Hz; the gain at the cut-off is one half (Oppenheim and Schafer, Discrete-Time Signal Processing, 7.3).
    """
    with np.errstate(over="ignore"):  # the tangent at half the rate is as good as infinite
        ratio = np.tan(np.pi * np.minimum(frequency / rate, 0.5)) / np.tan(np.pi * cutoff / rate)
        return 1 / (1 + np.abs(ratio) ** (2 * order))


def filtered(x: np.ndarray, dt: float, cutoff: float | None, order: int, derivative: int = 0) -> np.ndarray:
    """Columns x `(n, k)` at even steps, low-passed without phase, or their derivative in time of order 1 or 2.

    The straight line between the ends passes unchanged. The rest, which is zero at both ends, is continued oddly to a
    periodic signal; on its spectrum filter and derivative are factors, `(2 pi i f)^derivative`.
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
    """The frequency (Hz) below which `share` of the power of the most lively column lies; at least one period."""
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


def delay_between(reference: np.ndarray, x: np.ndarray, dt: float, longest: float) -> float:
    """By how much x trails the reference, s, within `longest`: where their correlation is greatest in magnitude.

    `c(d) = sum_t reference(t) x(t + d)` of the signals without mean and tapered at the ends; between samples it is the
    trigonometric interpolation of c, whose maximum is found by Newton's method (Knapp and Carter 1976).
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


def likeness(reference: np.ndarray, x: np.ndarray) -> tuple[float, float]:
    """Slope of x over the reference in the least-squares sense, and their correlation."""
    a, b = reference - reference.mean(), x - x.mean()
    aa, bb, ab = float(a @ a), float(b @ b), float(a @ b)
    if aa == 0:
        return float("nan"), float("nan")
    return ab / aa, ab / np.sqrt(aa * bb) if bb > 0 else 0.0


def runs_of(mask: np.ndarray, least: int = 1) -> list[tuple[int, int]]:
    """First and last row (inclusive) of each run of true entries that has at least so many."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= least]


def at_extremes(x: np.ndarray, least: int) -> np.ndarray:
    """Rows in which a signal stays at its own greatest or least value for at least `least` samples."""
    stays = np.zeros(len(x), bool)
    if np.ptp(x) == 0:
        return stays
    for level in (x.max(), x.min()):
        for first, last in runs_of(np.abs(x - level) <= 1e-9 * np.ptp(x), least):
            stays[first : last + 1] = True
    return stays
