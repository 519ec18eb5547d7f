"""One panel of a picture: axes, colours and curves."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

INK, GREY = "#22272e", "#9aa3ad"
#: eight colours that are told apart without red and green (Okabe and Ito 2008, "Color universal design"), darkened
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56a0d3", "#b8860b", "#7b4fa3", "#555555")


def canvas(width: float, height: float) -> Figure:
    """An empty figure, in inches, that knows no global state."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def dress(axes: Axes, title: str, x: str, y: str):
    """Title, labels and quiet lines."""
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold", color=INK)
    axes.set_xlabel(x, fontsize=9, color=INK)
    axes.set_ylabel(y, fontsize=9, color=INK)
    axes.tick_params(labelsize=8, color=GREY, labelcolor=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.grid(color="#e6e9ec", linewidth=0.7)
    axes.set_axisbelow(True)


def curves(axes: Axes, x: np.ndarray, ys: np.ndarray, labels: Sequence[str]):
    """A curve for each column of `ys`, over x or over the columns of x."""
    for k, label in enumerate(labels):
        at = x if x.ndim == 1 else x[:, k]
        style = "-" if k < len(COLORS) else "--"
        axes.plot(at, ys[:, k], style, color=COLORS[k % len(COLORS)], linewidth=1.3, label=label)
    level(axes, ys)


def level(axes: Axes, ys: np.ndarray):
    """A range of the y axis that shows rounding of a constant as constant."""
    known = ys[np.isfinite(ys)]
    if known.size and np.ptp(known) < 1e-9 * max(1.0, np.abs(known).max()):
        middle = float(known.mean())
        axes.set_ylim(middle - max(1.0, abs(middle)) / 10, middle + max(1.0, abs(middle)) / 10)


def legend(axes: Axes, source: Axes, title: str = ""):
    """The names of the curves of `source`, one below the other on empty axes."""
    axes.axis("off")
    handles, labels = source.get_legend_handles_labels()
    shown = axes.legend(handles, labels, title=title, fontsize=8, frameon=False, loc="center left")
    shown.get_title().set_fontsize(9)
    shown.get_title().set_fontweight("bold")
