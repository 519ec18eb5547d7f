"""A trajectory in one picture."""

import io
import os
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn.io._paths import write_bytes
from jaxdyn.simulation import Trajectory
from jaxdyn.viz._groups import Group, groups
from jaxdyn.viz._panels import COLORS, INK, canvas, curves, dress, legend

_FORMATS = (".png", ".pdf", ".svg")
_WHAT = ("configuration", "velocity", "effort")


def plot_trajectory(
    trajectory: Trajectory, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 120
) -> Figure:
    """Configuration, velocity, effort and energies of one trajectory over time, and velocity over configuration.

    Joints of one limb share a column of panels. Efforts are all that act, those of the joints themselves included;
    units are SI. With a `path` (.png, .pdf or .svg) the figure is written as well, whole or not at all.
    """
    if trajectory.t.ndim != 1:
        raise ShapeError(
            f"a picture is of one trajectory, not of a batch of shape {trajectory.t.shape[:-1]}; "
            "take one of it: jax.tree.map(lambda x: x[0], trajectory)"
        )
    ending = None if path is None else Path(path).suffix.lower()
    if ending is not None and ending not in _FORMATS:
        raise ModelError(f"{path}: a picture ends in one of {', '.join(_FORMATS)}")
    limbs = groups(trajectory.system.model)
    if not limbs:
        raise ModelError("the robot has no joint that moves; there is nothing to draw")
    rows = tuple(np.asarray(x) for x in (trajectory.q, trajectory.v, trajectory.action.effort))
    figure = _one(trajectory, limbs[0], rows) if len(limbs) == 1 else _many(trajectory, limbs, rows)
    name = trajectory.system.model.name if title is None else title
    if name:
        figure.suptitle(name, fontsize=12, fontweight="bold", color=INK, x=0.01, ha="left")
    if path is not None:
        content = io.BytesIO()
        figure.savefig(content, format=str(ending)[1:], dpi=dpi)
        write_bytes(path, content.getvalue())
    return figure


def _one(trajectory: Trajectory, limb: Group, rows) -> Figure:
    """Six panels: three over time, the phase portrait, the energies, and the names."""
    figure = canvas(13.0, 7.0)
    axes = figure.subplots(2, 3)
    _histories([*axes[0]], trajectory, limb, rows)
    if limb.is_plain:
        _phase(axes[1, 0], limb, rows)
    else:
        axes[1, 0].axis("off")
    _energies(axes[1, 1], trajectory)
    legend(axes[1, 2], axes[0, 0], "joints" if limb.is_plain else "")
    return figure


def _many(trajectory: Trajectory, limbs: list[Group], rows) -> Figure:
    """A column for each limb, with its names on top, and the energies below."""
    figure = canvas(3.2 * len(limbs), 14.0)
    grid = figure.add_gridspec(6, len(limbs), height_ratios=(0.7, 1, 1, 1, 1, 1))
    for k, limb in enumerate(limbs):
        column = [figure.add_subplot(grid[1 + row, k]) for row in range(3)]
        _histories(column, trajectory, limb, rows)
        if limb.is_plain:
            legend(figure.add_subplot(grid[0, k]), column[0])
            _phase(figure.add_subplot(grid[4, k]), limb, rows)
        else:
            for axes in column:
                axes.legend(fontsize=7, frameon=False, ncols=2)
    _energies(figure.add_subplot(grid[5, :]), trajectory)
    return figure


def _histories(panels: list[Axes], trajectory: Trajectory, limb: Group, rows):
    t = np.asarray(trajectory.t)
    columns = (limb.q, limb.v, limb.v)
    names = (limb.q_names, limb.v_names, limb.v_names)
    for axes, what, x, where, labels, unit in zip(
        panels, _WHAT, rows, columns, names, (limb.q_unit, limb.v_unit, limb.effort_unit), strict=True
    ):
        curves(axes, t, x[:, where], labels)
        dress(axes, what, "time [s]", _bracketed(unit))
        axes.margins(x=0)


def _phase(axes: Axes, limb: Group, rows):
    curves(axes, rows[0][:, limb.q], rows[1][:, limb.v], limb.q_names)
    for k in range(len(limb.q)):
        axes.plot(rows[0][0, limb.q[k]], rows[1][0, limb.v[k]], "o", color=COLORS[k % len(COLORS)], markersize=4)
    x, y = f"configuration {_bracketed(limb.q_unit)}", f"velocity {_bracketed(limb.v_unit)}"
    dress(axes, "phase portrait, dot: start", x, y)


def _energies(axes: Axes, trajectory: Trajectory):
    t = np.asarray(trajectory.t)
    kinetic, potential = np.asarray(trajectory.kinetic_energy), np.asarray(trajectory.potential_energy)
    values = np.stack([kinetic, potential - potential[0], kinetic + potential - potential[0]], axis=1)
    curves(axes, t, values, ("kinetic", "potential, from its start", "sum"))
    dress(axes, "energy", "time [s]", "[J]")
    axes.margins(x=0)
    axes.legend(fontsize=8, frameon=False)


def _bracketed(unit: str) -> str:
    return "" if unit in ("", "1") else f"[{unit}]"
