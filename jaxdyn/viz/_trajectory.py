"""The figure of a trajectory."""

import os

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxdyn._errors import ModelError
from jaxdyn.simulation import Trajectory
from jaxdyn.viz._canvas import (
    COLORS,
    check_drawable,
    draw_legend,
    finish_figure,
    label_axes,
    new_figure,
    plot_columns,
)
from jaxdyn.viz._groups import Group, group_coordinates

_QUANTITIES = ("configuration", "velocity", "effort")


def plot_trajectory(
    trajectory: Trajectory, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 120
) -> Figure:
    """Draws configuration, velocity, effort and energies of one trajectory over time, and its phase portrait.

    The joints of one limb share a column of panels. Efforts are the sum of all that act on a joint, its own passive
    forces included. Units are SI.

    Arguments:

    * `trajectory`: the result of `simulate` for one initial state, times of shape `(T,)`.
    * `path`: file to write, .png, .pdf or .svg; written completely or not at all. None writes no file.
    * `title`: title of the figure, by default the name of the model.
    * `dpi`: resolution of a .png in dots per inch.

    Returns the matplotlib figure, which is independent of pyplot. Raises `ShapeError` for a batch of trajectories, and
    `ModelError` for another suffix of `path` and for a robot without moving joints.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.viz import plot_trajectory

    pendulum = jd.robots.pendulum()
    trajectory = jd.simulate(pendulum, jnp.array([1.0]), jnp.zeros(1), jnp.linspace(0.0, 2.0, 101))
    figure = plot_trajectory(trajectory, title="swing")
    assert len(figure.axes) == 6
    ```
    """
    check_drawable(trajectory, path)
    limbs = group_coordinates(trajectory.system.model)
    if not limbs:
        raise ModelError("the robot has no moving joint; there is nothing to draw")
    rows = tuple(np.asarray(x) for x in (trajectory.q, trajectory.v, trajectory.action.effort))
    figure = _draw_single_limb(trajectory, limbs[0], rows) if len(limbs) == 1 else _draw_limbs(trajectory, limbs, rows)
    name = trajectory.system.model.name if title is None else title
    return finish_figure(figure, name, path, dpi)


def _draw_single_limb(trajectory: Trajectory, limb: Group, rows: tuple[np.ndarray, ...]) -> Figure:
    """Six panels: three histories, the phase portrait, the energies, and the legend."""
    figure = new_figure(13.0, 7.0)
    axes = figure.subplots(2, 3)
    _draw_histories([*axes[0]], trajectory, limb, rows)
    if limb.is_plain:
        _draw_phase_portrait(axes[1, 0], limb, rows)
    else:
        axes[1, 0].axis("off")
    _draw_energies(axes[1, 1], trajectory)
    draw_legend(axes[1, 2], axes[0, 0], "joints" if limb.is_plain else "")
    return figure


def _draw_limbs(trajectory: Trajectory, limbs: list[Group], rows: tuple[np.ndarray, ...]) -> Figure:
    """A column of panels for each limb, with its legend on top, and the energies below."""
    figure = new_figure(3.2 * len(limbs), 14.0)
    grid = figure.add_gridspec(6, len(limbs), height_ratios=(0.7, 1, 1, 1, 1, 1))
    for k, limb in enumerate(limbs):
        column = [figure.add_subplot(grid[1 + row, k]) for row in range(3)]
        _draw_histories(column, trajectory, limb, rows)
        if limb.is_plain:
            draw_legend(figure.add_subplot(grid[0, k]), column[0])
            _draw_phase_portrait(figure.add_subplot(grid[4, k]), limb, rows)
        else:
            for axes in column:
                axes.legend(fontsize=7, frameon=False, ncols=2)
    _draw_energies(figure.add_subplot(grid[5, :]), trajectory)
    return figure


def _draw_histories(panels: list[Axes], trajectory: Trajectory, limb: Group, rows: tuple[np.ndarray, ...]):
    t = np.asarray(trajectory.t)
    columns = (limb.q, limb.v, limb.v)
    names = (limb.q_names, limb.v_names, limb.v_names)
    for axes, quantity, x, where, labels, unit in zip(
        panels, _QUANTITIES, rows, columns, names, (limb.q_unit, limb.v_unit, limb.effort_unit), strict=True
    ):
        plot_columns(axes, t, x[:, where], labels)
        label_axes(axes, quantity, "time [s]", _in_brackets(unit))
        axes.margins(x=0)


def _draw_phase_portrait(axes: Axes, limb: Group, rows: tuple[np.ndarray, ...]):
    plot_columns(axes, rows[0][:, limb.q], rows[1][:, limb.v], limb.q_names)
    for k in range(len(limb.q)):
        axes.plot(rows[0][0, limb.q[k]], rows[1][0, limb.v[k]], "o", color=COLORS[k % len(COLORS)], markersize=4)
    x, y = f"configuration {_in_brackets(limb.q_unit)}", f"velocity {_in_brackets(limb.v_unit)}"
    label_axes(axes, "phase portrait, dot: start", x, y)


def _draw_energies(axes: Axes, trajectory: Trajectory):
    t = np.asarray(trajectory.t)
    kinetic, potential = np.asarray(trajectory.kinetic_energy), np.asarray(trajectory.potential_energy)
    values = np.stack([kinetic, potential - potential[0], kinetic + potential - potential[0]], axis=1)
    plot_columns(axes, t, values, ("kinetic", "potential, relative to the start", "total"))
    label_axes(axes, "energy", "time [s]", "[J]")
    axes.margins(x=0)
    axes.legend(fontsize=8, frameon=False)


def _in_brackets(unit: str) -> str:
    return "" if unit in ("", "1") else f"[{unit}]"
