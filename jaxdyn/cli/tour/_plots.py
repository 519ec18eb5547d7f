"""Figures of the tour, in the style of `jaxdyn.viz`, which a command may import inside functions only."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from jaxdyn.cli.tour._motions import LENGTH, Loop
from jaxdyn.cli.tour._swing import Sensitivities, Swings
from jaxdyn.model import Model
from jaxdyn.trajopt import Solution

BLUE, ORANGE, GREEN = "#2166ac", "#d6604d", "#1b8a5a"
PATHS = 250  # swings drawn in the figure of paths


class Fit(NamedTuple):
    """Initial, identified and true parameters of a fit, with standard errors."""

    names: list[str]
    start: np.ndarray
    identified: np.ndarray
    true: np.ndarray
    error: np.ndarray


class Results(NamedTuple):
    """All results of the tour."""

    robot: Model
    damped: Swings
    ideal: Swings
    gradient: Sensitivities
    differences: Sensitivities
    fit: Fit
    loop: Loop
    optimum: Solution


def save_figures(out: Path, results: Results) -> list[Path]:
    """Draws all figures into files of the folder `out` and returns their paths."""
    out.mkdir(parents=True, exist_ok=True)
    figures = {
        "tour": draw_overview(results),
        "joints": draw_joints(results),
        "energies": draw_single(draw_energies, results),
        "sensitivities": draw_single(draw_sensitivities, results),
        "parameters": draw_single(draw_parameters, results),
        "loop": draw_single(draw_loop, results),
        "swing_up": draw_single(draw_swing_up, results),
    }
    paths = []
    for name, figure in figures.items():
        paths.append(out / f"{name}.png")
        figure.savefig(paths[-1], dpi=150)
    return paths


def draw_single(draw: Callable[[Axes, Results], None], results: Results) -> Figure:
    """A figure with one panel."""
    from jaxdyn.viz import new_figure

    figure = new_figure(7.5, 4.5)
    draw(figure.add_subplot(), results)
    return figure


def draw_overview(results: Results) -> Figure:
    """A figure with a panel for each part of the tour."""
    from jaxdyn.viz import new_figure

    figure = new_figure(17.0, 6.2)
    grid = figure.add_gridspec(2, 4, width_ratios=(1.4, 1, 1.25, 0.95))
    draw_paths(figure, figure.add_subplot(grid[:, 0]), results)
    draw_angle(figure.add_subplot(grid[0, 1]), results, 3)
    draw_energies(figure.add_subplot(grid[1, 1]), results)
    draw_sensitivities(figure.add_subplot(grid[0, 2]), results)
    draw_parameters(figure.add_subplot(grid[1, 2]), results)
    draw_loop(figure.add_subplot(grid[0, 3]), results)
    draw_swing_up(figure.add_subplot(grid[1, 3]), results)
    return figure


def draw_joints(results: Results) -> Figure:
    """A figure with the angle of every joint over the batch."""
    from jaxdyn.viz import new_figure

    figure = new_figure(13.0, 6.5)
    for k, axes in enumerate(figure.subplots(2, 4).flat):
        if k < results.robot.nv:
            draw_angle(axes, results, k)
        else:
            axes.set_visible(False)
    return figure


def draw_paths(figure: Figure, axes: Axes, results: Results):
    """Paths of the tool in the damped swings, seen from the side and coloured by time."""
    from jaxdyn.viz import GREY, INK, label_axes

    swings = results.damped
    tool = swings.tool[:PATHS][..., [0, 2]]
    lines = LineCollection(
        np.concatenate([np.stack([p[:-1], p[1:]], axis=1) for p in tool]).tolist(),
        array=np.tile(swings.t[1:], len(tool)),
        cmap="viridis_r",
        linewidths=0.6,
        alpha=0.55,
    )
    axes.add_collection(lines)
    arm = swings.arm[..., [0, 2]]
    axes.plot(*arm.T, color=INK, linewidth=3.5, solid_capstyle="round", zorder=4)
    axes.plot(*arm[:-1].T, "o", color="white", markeredgecolor=INK, markersize=5.5, zorder=5)
    axes.plot(*arm[-1], "o", color=ORANGE, markersize=7, zorder=6)
    axes.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    axes.set(aspect="equal", anchor="N", xlim=(-1.02, 1.02), ylim=(-0.72, 1.55))
    label_axes(axes, f"{len(swings.q)} arms released: paths of the tool, {len(tool)} drawn", "x [m]", "z [m]")
    bar = figure.colorbar(lines, cax=axes.inset_axes((0.3, 0.945, 0.4, 0.018)), orientation="horizontal")
    bar.set_label("time [s]", fontsize=8, color=INK)
    bar.ax.tick_params(labelsize=8, color=GREY, labelcolor=INK)
    bar.outline.set_visible(False)  # pyright: ignore
    if bar.solids is not None:
        bar.solids.set_alpha(1)


def draw_fan(axes: Axes, t, samples, color: str):
    """The median, and bands that contain 50 % and 90 % of the samples."""
    low, quarter, middle, three, high = np.quantile(samples, (0.05, 0.25, 0.5, 0.75, 0.95), axis=0)
    axes.fill_between(t, low, high, color=color, alpha=0.15, linewidth=0, label="90 % of the batch")
    axes.fill_between(t, quarter, three, color=color, alpha=0.3, linewidth=0, label="50 %")
    axes.plot(t, middle, color=color, linewidth=1.8, label="median")


def draw_angle(axes: Axes, results: Results, joint: int):
    """The angle of one joint of the damped batch over time."""
    from jaxdyn.viz import GREY, label_axes

    swings = results.damped
    q = np.rad2deg(swings.q[..., joint])
    axes.plot(swings.t, q[:25].T, color=GREY, linewidth=0.5, alpha=0.6)
    draw_fan(axes, swings.t, q, BLUE)
    label_axes(axes, f"Angle of joint {joint + 1}, damped", "time [s]", "[deg]")
    axes.margins(x=0)
    axes.set_ylim(*np.quantile(q, (0.01, 0.99)))
    if joint == 3:
        axes.legend(fontsize=8, frameon=False, loc="lower right")


def draw_energies(axes: Axes, results: Results):
    """Change of energy since the start, with and without friction in the joints."""
    from jaxdyn.viz import label_axes

    for swings, color in ((results.damped, BLUE), (results.ideal, ORANGE)):
        draw_fan(axes, swings.t, swings.energy - swings.energy[:, :1], color)
    ideal = results.ideal
    drift = np.abs(ideal.energy - ideal.energy[:, :1]).max()
    note = {"fontsize": 8.5, "transform": axes.transAxes}
    label = f"without friction: constant within {1e3 * drift:.1g} mJ"
    axes.text(0.97, 0.95, label, color=ORANGE, ha="right", va="top", **note)
    axes.text(0.05, 0.1, "with friction", color=BLUE, **note)
    label_axes(axes, "Energy since the start", "time [s]", "[J]")
    axes.margins(x=0)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.16 * (high - low))


def draw_sensitivities(axes: Axes, results: Results):
    """Derivative of the final height of the tool with respect to lengths and masses, with central differences."""
    from jaxdyn.viz import INK, label_axes

    gradient, differences = results.gradient, results.differences
    x, width = np.arange(len(gradient.links)), 0.38
    length, mass = 10.0, 100.0  # from m/m to mm per centimetre, from m/kg to mm per 100 g
    for side, scale, name, color in ((-1, length, "length", BLUE), (1, mass, "mass", ORANGE)):
        change = "1 cm longer" if name == "length" else "100 g heavier"
        positions = x + side * width / 2
        axes.bar(positions, scale * getattr(gradient, name), width, color=color, label=f"link {change}")
        label = "central differences" if side > 0 else None
        axes.plot(positions, scale * getattr(differences, name), "D", color=INK, markersize=3.2, label=label)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_xticks(x, gradient.links)
    label_axes(axes, "Gradient of one swing: final height of the tool", "", "change [mm]")
    axes.grid(axis="x", visible=False)
    axes.legend(fontsize=8, frameon=False)


def draw_parameters(axes: Axes, results: Results):
    """Initial and identified parameters, relative to the true ones."""
    from jaxdyn.viz import GREY, INK, label_axes

    fit = results.fit
    x = np.arange(len(fit.names))
    axes.axhline(1, color=INK, linewidth=0.8)
    axes.plot(
        x,
        fit.start / fit.true,
        "o",
        markerfacecolor="white",
        markeredgecolor=GREY,
        markersize=5,
        label="start",
    )
    axes.vlines(x, fit.start / fit.true, fit.identified / fit.true, color=GREY, linewidth=0.7, linestyle=":")
    axes.errorbar(
        x, fit.identified / fit.true, 2 * fit.error / fit.true, fmt="o", color=GREEN, markersize=4.5, capsize=2,
        label="identified, 2 standard errors",
    )  # fmt: skip
    kinds = [name.split(".")[1] for name in fit.names]
    axes.set_xticks(x, [name.split("]")[0][-1] for name in fit.names])
    for kind in dict.fromkeys(kinds):
        members = [k for k, other in enumerate(kinds) if other == kind]
        owner = "link" if kind == "mass" else "joint"
        place = {"ha": "center", "va": "top", "transform": axes.get_xaxis_transform()}
        axes.text(float(np.mean(members)), -0.13, f"{kind} of {owner}", fontsize=8.5, color=INK, **place)
        if members[0]:
            axes.axvline(members[0] - 0.5, color="#d0d5da", linewidth=0.8)
    label_axes(axes, "Parameters identified from a noisy log", " ", "relative to the true value")
    axes.grid(axis="x", visible=False)
    axes.set_ylim(axes.get_ylim()[0], axes.get_ylim()[1] + 0.12)
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper right")


def draw_loop(axes: Axes, results: Results):
    """Poses of the four-bar linkage, and the path of the middle of its coupler."""
    from jaxdyn.viz import GREY, INK, label_axes

    loop = results.loop
    turn = slice(0, None, 6)
    for points in loop.points[turn]:
        axes.plot(*points.T, color=GREY, linewidth=0.4, alpha=0.5)
    axes.plot(*loop.middle.T, color=ORANGE, linewidth=1.8, label="middle of the coupler")
    now = loop.points[0]
    axes.plot(*now.T, color=INK, linewidth=3, solid_capstyle="round", zorder=4)
    axes.plot(*now.T, "o", color="white", markeredgecolor=INK, markersize=5.5, zorder=5)
    axes.set(aspect="equal")
    label_axes(axes, "Four-bar linkage", "x [m]", "y [m]")
    axes.legend(fontsize=8, frameon=False, loc="lower left")
    axes.margins(y=0.2)


def draw_swing_up(axes: Axes, results: Results):
    """Poses of cart and pole along the optimal trajectory."""
    from jaxdyn.viz import GREY, INK, label_axes

    optimum = results.optimum
    t, x = np.asarray(optimum.t), np.asarray(optimum.x)
    tip = LENGTH * np.stack([np.sin(x[:, 1]), -np.cos(x[:, 1])], axis=1) + np.stack([x[:, 0], 0 * t], axis=1)
    shades = 0.25 + 0.75 * t / t[-1]
    for k in range(0, len(t), 2):
        axes.plot([x[k, 0], tip[k, 0]], [0, tip[k, 1]], color=BLUE, linewidth=1.4, alpha=float(shades[k]))
    axes.plot(*tip.T, color=ORANGE, linewidth=1.8, label="path of the tip")
    axes.plot(x[::2, 0], 0 * x[::2, 0], "s", color=INK, markersize=4)
    axes.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    axes.set(aspect="equal")
    label_axes(axes, "Swing-up of minimal effort", "x [m]", "z [m]")
    axes.legend(fontsize=8, frameon=False, loc="lower right")
    axes.margins(y=0.2)
