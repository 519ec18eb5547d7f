"""Figures without global state, and one style of axes, colours and curves."""

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn.io.files import write_bytes
from jaxdyn.simulation import Trajectory

_FORMATS = (".png", ".pdf", ".svg")
INK = "#22272e"
GREY = "#9aa3ad"
#: eight colours that colour-blind readers can distinguish (Okabe and Ito 2008, "Color universal design"), darkened
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56a0d3", "#b8860b", "#7b4fa3", "#555555")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches, drawn by Agg and independent of the global state of pyplot."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def label_axes(axes: Axes, title: str, x: str = "", y: str = ""):
    """Sets title and labels, and the common style of spines, ticks and grid."""
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold", color=INK)
    axes.set_xlabel(x, fontsize=9, color=INK)
    axes.set_ylabel(y, fontsize=9, color=INK)
    axes.tick_params(labelsize=8, color=GREY, labelcolor=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.grid(color="#e6e9ec", linewidth=0.7)
    axes.set_axisbelow(True)


def plot_columns(axes: Axes, x: np.ndarray, ys: np.ndarray, labels: Sequence[str]):
    """Plots each column of `ys` over `x`, or over the same column of `x`."""
    for k, label in enumerate(labels):
        abscissa = x if x.ndim == 1 else x[:, k]
        style = "-" if k < len(COLORS) else "--"
        axes.plot(abscissa, ys[:, k], style, color=COLORS[k % len(COLORS)], linewidth=1.3, label=label)
    _widen_constant_range(axes, ys)


def _widen_constant_range(axes: Axes, ys: np.ndarray):
    """Widens the y axis of values that are constant but for rounding, so that the curve is a straight line."""
    finite = ys[np.isfinite(ys)]
    if finite.size and np.ptp(finite) < 1e-9 * max(1.0, np.abs(finite).max()):
        middle = float(finite.mean())
        axes.set_ylim(middle - max(1.0, abs(middle)) / 10, middle + max(1.0, abs(middle)) / 10)


def draw_legend(axes: Axes, source: Axes, title: str = ""):
    """Draws the legend of the curves of `source` on otherwise empty axes."""
    axes.axis("off")
    handles, labels = source.get_legend_handles_labels()
    legend = axes.legend(handles, labels, title=title, fontsize=8, frameon=False, loc="center left")
    legend.get_title().set_fontsize(9)
    legend.get_title().set_fontweight("bold")


def check_drawable(trajectory: Trajectory, path: str | os.PathLike[str] | None):
    """Raises `ShapeError` for a batch of trajectories, and `ModelError` for a file that is not a figure."""
    if trajectory.t.ndim != 1:
        raise ShapeError(
            f"a figure shows one trajectory, not a batch of shape {trajectory.t.shape[:-1]}; select one: trajectory[k]"
        )
    check_suffix(path)


def check_suffix(path: str | os.PathLike[str] | None):
    """Raises `ModelError` for a file that is not one of the formats of figures."""
    if path is not None and Path(path).suffix.lower() not in _FORMATS:
        raise ModelError(f"{path}: the suffix of a figure must be one of {', '.join(_FORMATS)}")


def finish_figure(figure: Figure, title: str, path: str | os.PathLike[str] | None, dpi: int) -> Figure:
    """Writes the title, and the file unless the path is None; returns the figure."""
    if title:
        figure.suptitle(title, fontsize=12, fontweight="bold", color=INK, x=0.01, ha="left")
    if path is not None:
        content = io.BytesIO()
        figure.savefig(content, format=Path(path).suffix.lower()[1:], dpi=dpi)
        write_bytes(path, content.getvalue())
    return figure
