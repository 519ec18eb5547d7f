"""Line and bar plots as SVG."""

from collections.abc import Sequence
from html import escape

import numpy as np

_W, _H, _LEFT, _BELOW, _ABOVE = 520, 170, 58, 26, 14
_MAX_POINTS = 700
#: measured, predicted, residual
COLOURS = ("#4c72b0", "#dd8452", "#8c8c8c")


def plot_curves(title: str, unit: str, lines: Sequence[tuple[str, np.ndarray, np.ndarray, str]]) -> str:
    """Curves (label, t, x, colour) over time; NaN interrupts a curve."""
    t = np.concatenate([line[1] for line in lines])
    x = np.concatenate([line[2] for line in lines])
    x = x[np.isfinite(x)]
    low, high = (float(x.min()), float(x.max())) if len(x) else (0.0, 1.0)
    room = 0.05 * (high - low) or max(abs(high), 1.0) * 0.05
    frame = _Axes(float(np.nanmin(t)), float(np.nanmax(t)), low - room, high + room)
    drawn = [_curve_path(frame, times, values, colour) for _, times, values, colour in lines]
    return _wrap_svg(title, [*frame.axes("s", unit), *drawn, *_legend(lines)])


def plot_bars(title: str, heights: Sequence[float], bound: float) -> str:
    """Bars at 1, 2, ..., with dashed lines at plus and minus `bound`."""
    top = max(1.2 * bound, 1.1 * max(map(abs, heights), default=0.0))
    frame = _Axes(0.0, len(heights) + 1.0, -top, top)
    width = 0.6 * (frame.x(1.0) - frame.x(0.0))
    drawn = []
    for k, height in enumerate(heights, 1):
        y, zero = frame.y(height), frame.y(0.0)
        colour = COLOURS[0] if abs(height) <= bound else COLOURS[1]
        drawn.append(
            f'<rect x="{frame.x(k) - width / 2:.1f}" y="{min(y, zero):.1f}" width="{width:.1f}" '
            f'height="{abs(y - zero):.1f}" fill="{colour}"/>'
        )
    for level in (-bound, 0.0, bound):
        y, dash = frame.y(level), ' stroke-dasharray="4 3"' if level else ""
        drawn.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_W - 6}" y2="{y:.1f}" stroke="#444"{dash}/>')
    return _wrap_svg(title, [*frame.axes("lag", "correlation"), *drawn])


class _Axes:
    """Axes of a plot: the map from values to SVG coordinates."""

    def __init__(self, left: float, right: float, low: float, high: float):
        self.left, self.right = left, right if right > left else left + 1.0
        self.low, self.high = low, high if high > low else low + 1.0

    def x(self, value):
        return _LEFT + (value - self.left) / (self.right - self.left) * (_W - 6 - _LEFT)

    def y(self, value):
        return _H - _BELOW - (value - self.low) / (self.high - self.low) * (_H - _BELOW - _ABOVE)

    def axes(self, across: str, up: str) -> list[str]:
        drawn = [
            f'<rect x="{_LEFT}" y="{_ABOVE}" width="{_W - 6 - _LEFT}" height="{_H - _BELOW - _ABOVE}" fill="none" '
            'stroke="#bbb"/>'
        ]
        for value in _ticks(self.left, self.right):
            drawn.append(f'<text x="{self.x(value):.1f}" y="{_H - 12}" text-anchor="middle">{value:.6g}</text>')
        for value in _ticks(self.low, self.high):
            y = self.y(value)
            drawn.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_W - 6}" y2="{y:.1f}" stroke="#eee"/>')
            drawn.append(f'<text x="{_LEFT - 4}" y="{y + 3.5:.1f}" text-anchor="end">{value:.4g}</text>')
        drawn.append(f'<text x="{_W - 6}" y="{_H - 1}" text-anchor="end">{escape(across)}</text>')
        drawn.append(
            f'<text transform="translate(10 {(_H - _BELOW + _ABOVE) / 2:.0f}) rotate(-90)" text-anchor="middle">'
            f"{escape(up)}</text>"
        )
        return drawn


def _ticks(low: float, high: float, count: int = 8) -> list[float]:
    """Round numbers between `low` and `high`."""
    raw = (high - low) / count
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    first = np.ceil(low / step)
    return [float(k * step) + 0.0 for k in np.arange(first, np.floor(high / step) + 1)]  # no -0


def _curve_path(frame: _Axes, t: np.ndarray, x: np.ndarray, colour: str) -> str:
    """A curve of at most some hundred points; longer curves keep the minimum and maximum of each group."""
    if len(t) > _MAX_POINTS:
        size = -(-len(t) // (_MAX_POINTS // 2))
        groups = range(0, len(t), size)
        rows = []
        for k in groups:
            part = x[k : k + size]
            if np.isfinite(part).all():
                rows += sorted({k + int(np.argmin(part)), k + int(np.argmax(part))})
            else:
                rows.append(k + int(np.argmax(~np.isfinite(part))))
        t, x = t[rows], x[rows]
    pieces, pen = [], "M"
    for a, b in zip(t, x, strict=True):
        if np.isfinite(b):
            pieces.append(f"{pen}{frame.x(a):.1f} {frame.y(b):.1f}")
            pen = "L"
        else:
            pen = "M"
    return f'<path d="{"".join(pieces)}" fill="none" stroke="{colour}" stroke-width="1.2"/>'


def _legend(lines) -> list[str]:
    drawn, at = [], _W - 6
    for label, _, _, colour in reversed(lines):
        drawn.append(f'<text x="{at}" y="10" text-anchor="end" fill="{colour}">{escape(label)}</text>')
        at -= 7 * len(label) + 10
    return drawn


def _wrap_svg(title: str, drawn: list[str]) -> str:
    head = f'<svg viewBox="0 0 {_W} {_H}" width="{_W}" height="{_H}" role="img" xmlns="http://www.w3.org/2000/svg">'
    text = f'<text x="{_LEFT}" y="10" font-weight="bold">{escape(title)}</text>'
    return "\n".join([head, f"<title>{escape(title)}</title>", text, *drawn, "</svg>"])
