"""Pictures of the tour."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from jaxdyn.cli._motions import LENGTH, Loop
from jaxdyn.cli._swing import Sensitivities, Swings
from jaxdyn.model import Model
from jaxdyn.trajopt import Solution

BLUE, ORANGE, GREEN, GREY, INK = "#2166ac", "#d6604d", "#1b8a5a", "#9aa3ad", "#22272e"
PATHS = 250  # swings drawn in the picture of paths


class Fit(NamedTuple):
    """What a fit started from and what it found."""

    names: list[str]
    start: np.ndarray
    found: np.ndarray
    true: np.ndarray
    error: np.ndarray


class Results(NamedTuple):
    """All that the tour has to show."""

    robot: Model
    damped: Swings
    ideal: Swings
    slopes: Sensitivities
    differences: Sensitivities
    fit: Fit
    loop: Loop
    best: Solution


def save(out: Path, results: Results) -> list[Path]:
    """Draws everything into files of the folder `out` and returns their paths."""
    out.mkdir(parents=True, exist_ok=True)
    figures = {
        "tour": overview(results),
        "joints": joints(results),
        "energies": single(energies, results),
        "sensitivities": single(sensitivities, results),
        "parameters": single(parameters, results),
        "loop": single(loop, results),
        "swing_up": single(swing_up, results),
    }
    paths = []
    for name, figure in figures.items():
        paths.append(out / f"{name}.png")
        figure.savefig(paths[-1], dpi=150)
    return paths


def canvas(width: float, height: float) -> Figure:
    """An empty figure, in inches, that knows no global state."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def dress(axes: Axes, title: str, x: str = "", y: str = ""):
    """Title, labels and quiet lines."""
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold", color=INK)
    axes.set_xlabel(x, fontsize=9, color=INK)
    axes.set_ylabel(y, fontsize=9, color=INK)
    axes.tick_params(labelsize=8, color=GREY, labelcolor=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.grid(color="#e6e9ec", linewidth=0.7)
    axes.set_axisbelow(True)


def single(draw: Callable[[Axes, Results], None], results: Results) -> Figure:
    """One drawing on a page of its own."""
    figure = canvas(7.5, 4.5)
    draw(figure.add_subplot(), results)
    return figure


def overview(results: Results) -> Figure:
    """The whole tour on one page."""
    figure = canvas(17.0, 6.2)
    grid = figure.add_gridspec(2, 4, width_ratios=(1.4, 1, 1.25, 0.95))
    paths(figure, figure.add_subplot(grid[:, 0]), results)
    angle(figure.add_subplot(grid[0, 1]), results, 3)
    energies(figure.add_subplot(grid[1, 1]), results)
    sensitivities(figure.add_subplot(grid[0, 2]), results)
    parameters(figure.add_subplot(grid[1, 2]), results)
    loop(figure.add_subplot(grid[0, 3]), results)
    swing_up(figure.add_subplot(grid[1, 3]), results)
    return figure


def joints(results: Results) -> Figure:
    """Every joint's angle over the batch."""
    figure = canvas(13.0, 6.5)
    for k, axes in enumerate(figure.subplots(2, 4).flat):
        if k < results.robot.nv:
            angle(axes, results, k)
        else:
            axes.set_visible(False)
    return figure


def paths(figure: Figure, axes: Axes, results: Results):
    """Paths of the tool of damped swings, seen from the side, coloured by time."""
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
    dress(axes, f"{len(swings.q)} arms let go: paths of the tool, {len(tool)} drawn", "x [m]", "z [m]")
    bar = figure.colorbar(lines, cax=axes.inset_axes((0.3, 0.945, 0.4, 0.018)), orientation="horizontal")
    bar.set_label("time [s]", fontsize=8, color=INK)
    bar.ax.tick_params(labelsize=8, color=GREY, labelcolor=INK)
    bar.outline.set_visible(False)  # pyright: ignore
    if bar.solids is not None:
        bar.solids.set_alpha(1)


def fan(axes: Axes, t, samples, color: str):
    """Median and bands that hold half and nine tenths of the samples."""
    low, quarter, middle, three, high = np.quantile(samples, (0.05, 0.25, 0.5, 0.75, 0.95), axis=0)
    axes.fill_between(t, low, high, color=color, alpha=0.15, linewidth=0, label="90 % of the batch")
    axes.fill_between(t, quarter, three, color=color, alpha=0.3, linewidth=0, label="50 %")
    axes.plot(t, middle, color=color, linewidth=1.8, label="median")


def angle(axes: Axes, results: Results, joint: int):
    """One joint of the damped batch over time."""
    swings = results.damped
    q = np.rad2deg(swings.q[..., joint])
    axes.plot(swings.t, q[:25].T, color=GREY, linewidth=0.5, alpha=0.6)
    fan(axes, swings.t, q, BLUE)
    dress(axes, f"Angle of joint {joint + 1}, damped", "time [s]", "[deg]")
    axes.margins(x=0)
    axes.set_ylim(*np.quantile(q, (0.01, 0.99)))
    if joint == 3:
        axes.legend(fontsize=8, frameon=False, loc="lower right")


def energies(axes: Axes, results: Results):
    """Energy lost since the start, with and without losses in the joints."""
    for swings, color in ((results.damped, BLUE), (results.ideal, ORANGE)):
        fan(axes, swings.t, swings.energy - swings.energy[:, :1], color)
    ideal = results.ideal
    drift = np.abs(ideal.energy - ideal.energy[:, :1]).max()
    note = {"fontsize": 8.5, "transform": axes.transAxes}
    kept = f"without friction: constant within {1e3 * drift:.1g} mJ"
    axes.text(0.97, 0.95, kept, color=ORANGE, ha="right", va="top", **note)
    axes.text(0.05, 0.1, "with friction", color=BLUE, **note)
    dress(axes, "Energy since the start", "time [s]", "[J]")
    axes.margins(x=0)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.16 * (high - low))


def sensitivities(axes: Axes, results: Results):
    """What a longer or heavier link does to the final height of the tool, with central differences."""
    ours, theirs = results.slopes, results.differences
    x, width = np.arange(len(ours.links)), 0.38
    length, mass = 10.0, 100.0  # mm in m/m for one centimetre, mm in m/kg for a tenth of a kilogram
    for side, scale, name, color in ((-1, length, "length", BLUE), (1, mass, "mass", ORANGE)):
        more = "1 cm longer" if name == "length" else "100 g heavier"
        at = x + side * width / 2
        axes.bar(at, scale * getattr(ours, name), width, color=color, label=f"link {more}")
        label = "central differences" if side > 0 else None
        axes.plot(at, scale * getattr(theirs, name), "D", color=INK, markersize=3.2, label=label)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_xticks(x, ours.links)
    dress(axes, "Gradient of one swing: final height of the tool", "", "change [mm]")
    axes.grid(axis="x", visible=False)
    axes.legend(fontsize=8, frameon=False)


def parameters(axes: Axes, results: Results):
    """Start and end of the fit, relative to the truth."""
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
    axes.vlines(x, fit.start / fit.true, fit.found / fit.true, color=GREY, linewidth=0.7, linestyle=":")
    axes.errorbar(
        x, fit.found / fit.true, 2 * fit.error / fit.true, fmt="o", color=GREEN, markersize=4.5, capsize=2,
        label="recovered, 2 standard errors",
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
    dress(axes, "Parameters recovered from a noisy log", " ", "relative to the true value")
    axes.grid(axis="x", visible=False)
    axes.set_ylim(axes.get_ylim()[0], axes.get_ylim()[1] + 0.12)
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper right")


def loop(axes: Axes, results: Results):
    """A four-bar linkage: where its bars have been, and the path of its coupler's middle."""
    loop = results.loop
    turn = slice(0, None, 6)
    for points in loop.points[turn]:
        axes.plot(*points.T, color=GREY, linewidth=0.4, alpha=0.5)
    axes.plot(*loop.middle.T, color=ORANGE, linewidth=1.8, label="middle of the coupler")
    now = loop.points[0]
    axes.plot(*now.T, color=INK, linewidth=3, solid_capstyle="round", zorder=4)
    axes.plot(*now.T, "o", color="white", markeredgecolor=INK, markersize=5.5, zorder=5)
    axes.set(aspect="equal")
    dress(axes, "Four-bar linkage", "x [m]", "y [m]")
    axes.legend(fontsize=8, frameon=False, loc="lower left")
    axes.margins(y=0.2)


def swing_up(axes: Axes, results: Results):
    """Poses of cart and pole along the optimal motion."""
    best = results.best
    t, x = np.asarray(best.t), np.asarray(best.x)
    tip = LENGTH * np.stack([np.sin(x[:, 1]), -np.cos(x[:, 1])], axis=1) + np.stack([x[:, 0], 0 * t], axis=1)
    shades = 0.25 + 0.75 * t / t[-1]
    for k in range(0, len(t), 2):
        axes.plot([x[k, 0], tip[k, 0]], [0, tip[k, 1]], color=BLUE, linewidth=1.4, alpha=float(shades[k]))
    axes.plot(*tip.T, color=ORANGE, linewidth=1.8, label="path of the pole's end")
    axes.plot(x[::2, 0], 0 * x[::2, 0], "s", color=INK, markersize=4)
    axes.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    axes.set(aspect="equal")
    dress(axes, "Swing-up with the least effort", "x [m]", "z [m]")
    axes.legend(fontsize=8, frameon=False, loc="lower right")
    axes.margins(y=0.2)
