"""Figures of loads: diagrams along a link, and the robot with its deflections."""

import os

import numpy as np
from jax.typing import ArrayLike
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxdyn._errors import ModelError, ShapeError, format_names
from jaxdyn.loads import InternalLoads
from jaxdyn.viz._canvas import COLORS, GREY, check_suffix, finish_figure, label_axes, new_figure

#: quantities of the panels: title, unit, components (force or moment, index, name)
_PANELS = (
    ("axial force", "[N]", (("force", 0, "N"),)),
    ("shear force", "[N]", (("force", 1, "$V_y$"), ("force", 2, "$V_z$"))),
    ("torque", "[N m]", (("moment", 0, "T"),)),
    ("bending moment", "[N m]", (("moment", 1, "$M_y$"), ("moment", 2, "$M_z$"))),
)


def plot_internal_loads(
    loads: InternalLoads,
    link: str,
    path: str | os.PathLike[str] | None = None,
    *,
    row: int | None = None,
    title: str | None = None,
    dpi: int = 120,
) -> Figure:
    """Draws the diagrams of axial force, shear force, torque and bending moment along the beams of a link.

    Along a trajectory, curves show the state with the largest bending moment of the link, and bands the range over all
    times.

    Arguments:

    * `loads`: the result of `internal_loads` or `internal_loads_along`.
    * `link`: name of a link with beams.
    * `path`: file to write, .png, .pdf or .svg. None writes no file.
    * `row`: the time of the curves, an index; by default the one of the largest bending moment.
    * `title`: title of the figure, by default the name of the link.
    * `dpi`: resolution of a .png in dots per inch.

    Returns the matplotlib figure, which is independent of pyplot. Raises `ModelError` for another suffix of `path` and
    for a link without beams.
    """
    check_suffix(path)
    rows = [k for k, name in enumerate(loads.links) if name == link]
    if not rows:
        raise ModelError(f"the link {link!r} has no beam among the loads; links with beams are "
                         f"{format_names(dict.fromkeys(loads.links))}")  # fmt: skip
    s, force, moment = (_with_times(x, k)[:, rows] for x, k in ((loads.s, 2), (loads.force, 3), (loads.moment, 3)))
    worst = int(np.linalg.norm(moment[..., 1:], axis=-1).max((1, 2)).argmax())
    figure = new_figure(9.0, 5.6)
    for axes, (name, unit, curves) in zip(figure.subplots(2, 2).ravel(), _PANELS, strict=True):
        for color, (quantity, k, label) in zip(COLORS, curves, strict=False):
            values = (force if quantity == "force" else moment)[..., k]
            _draw_diagram(axes, s, values, worst if row is None else row, color, label)
        axes.axhline(0, color=GREY, linewidth=0.7)
        axes.margins(x=0)
        label_axes(axes, name, "distance along the link [m]", unit)
        if len(curves) > 1:
            axes.legend(fontsize=8, frameon=False)
    return finish_figure(figure, link if title is None else title, path, dpi)


def _with_times(x: ArrayLike, axes: int) -> np.ndarray:
    """The array with a leading axis of times; raises for several axes."""
    x = np.asarray(x)
    if x.ndim > axes + 1:
        raise ShapeError(
            f"a figure shows one trajectory, not a batch of shape {x.shape[: -axes - 1]}; select one of it"
        )
    return x if x.ndim == axes + 1 else x[None]


def _draw_diagram(axes: Axes, s: np.ndarray, values: np.ndarray, row: int, color: str, label: str):
    """One quantity over the distance along the beams of a link, which follow each other."""
    offset = 0.0
    for k in range(s.shape[1]):
        if len(values) > 1:
            grid, low, high = _range_over_times(s[:, k], values[:, k])
            axes.fill_between(offset + grid, low, high, color=color, alpha=0.15, linewidth=0)
        axes.plot(offset + s[row, k], values[row, k], color=color, linewidth=1.4, label=None if k else label)
        if k:
            axes.axvline(offset, color=GREY, linewidth=0.7, linestyle=":")
        offset += s[row, k].max()


def _range_over_times(s: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Least and largest values over all times; interpolated where sections slide along the beam."""
    if np.abs(s - s[0]).max() < 1e-5 * s.max():  # equal up to rounding
        return s[0], values.min(0), values.max(0)
    grid = np.linspace(0, s.max(), 201)
    rows = np.stack([np.interp(grid, x, y) for x, y in zip(s, values, strict=True)])
    return grid, rows.min(0), rows.max(0)
