"""The picture of a robot with its deflected beams, coloured by a quantity."""

import os

import numpy as np
from jax.typing import ArrayLike
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from jaxdyn._errors import ShapeError
from jaxdyn.loads import Deflections
from jaxdyn.model import Model
from jaxdyn.viz._canvas import COLORS, GREY, INK, check_suffix, finish_figure, new_figure

#: size of the drawn deflections relative to the robot, unless a scale is given
_SIZE = 0.1


def plot_beams(
    model: Model,
    deflections: Deflections,
    values: ArrayLike | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    row: int | None = None,
    scale: float | None = None,
    label: str = "utilisation",
    title: str | None = None,
    dpi: int = 120,
) -> Figure:
    """Draws the robot as a stick figure with deflected beams, coloured by a quantity at their sections.

    Grey lines show the rigid robot. Deflections are magnified; a circle marks the largest value.

    Arguments:

    * `model`: the robot.
    * `deflections`: the result of `deflections` or `deflections_along`.
    * `values`: the quantity at the sections, such as `stresses(...).utilisation`, with the shape of `deflections.s`;
      None draws the beams in one colour.
    * `path`: file to write, .png, .pdf or .svg. None writes no file.
    * `row`: the time to draw, an index; by default the one of the largest value, or of the largest displacement.
    * `scale`: magnification of the deflections; 0 draws the rigid robot. By default the largest displacement is drawn
      as a tenth of the size of the robot.
    * `label`: name and unit of the quantity.
    * `title`: title of the figure, by default the name of the model.
    * `dpi`: resolution of a .png in dots per inch.

    Returns the matplotlib figure, which is independent of pyplot. Raises `ShapeError` for values of another shape and
    for a batch of trajectories, and `ModelError` for another suffix of `path`.
    """
    check_suffix(path)
    points, shift, origins, numbers = _select_row(deflections, values, row)
    every = np.concatenate([points.reshape(-1, 3), origins])
    size = float(np.ptp(every, 0).max()) or 1.0
    largest = float(np.linalg.norm(shift, axis=-1).max())
    if scale is None:
        scale = _SIZE * size / largest if largest > 0 else 0.0
    moved = points + scale * shift
    figure = new_figure(7.2, 5.6)
    axes = figure.add_subplot(projection="3d")
    _draw_links(axes, model, deflections.links, points, origins)
    for beam in points:
        axes.plot(*beam.T, color=GREY, linewidth=1.2, linestyle="--")
    if numbers is None:
        for beam in moved:
            axes.plot(*beam.T, color=COLORS[0], linewidth=3.5, solid_capstyle="round")
    else:
        figure.colorbar(_draw_colored(axes, moved, numbers), ax=axes, shrink=0.7, pad=0.02, label=label)
    _style_axes(axes, np.concatenate([every, moved.reshape(-1, 3)]))
    magnified = f"deflections × {scale:.3g}, largest {1e3 * largest:.3g} mm" if scale else ""
    axes.set_title(magnified, fontsize=9, color=INK)
    return finish_figure(figure, (model.name or "") if title is None else title, path, dpi)


def _select_row(x: Deflections, values: ArrayLike | None, row: int | None):
    """Points and displacements of sections, origins of links, and values, all of one time."""
    points, shift, origins = (np.asarray(y) for y in (x.points, x.section_translation, x.origins))
    numbers = None if values is None else np.asarray(values)
    if points.ndim > 4:
        raise ShapeError(f"a figure shows one trajectory, not a batch of shape {points.shape[:-4]}; select one of it")
    if numbers is not None and numbers.shape != points.shape[:-1]:
        raise ShapeError(
            f"values has shape {numbers.shape}, and the sections have {points.shape[:-1]}; compute loads and "
            "deflections with the same beams and number of sections"
        )
    if points.ndim == 4:
        measure = np.linalg.norm(shift, axis=-1) if numbers is None else numbers
        k = int(measure.max((1, 2)).argmax()) if row is None else row
        points, shift, origins = points[k], shift[k], origins[k]
        numbers = None if numbers is None else numbers[k]
    return points, shift, origins, numbers


def _draw_links(axes, model: Model, links: tuple[str, ...], points: np.ndarray, origins: np.ndarray):
    """Lines from each link to its children and frames, by way of its beams, and a dot at each moving joint."""
    t = model.topology

    def draw(start, end):
        axes.plot(*np.stack([start, end]).T, color=GREY, linewidth=0.8)

    for k, owner in enumerate((*t.parents, *t.frame_links)):
        is_free = k < len(t.groups) and t.groups[k] >= 0 and t.group_sizes[t.groups[k]][1] == 6
        if owner >= 0:
            draw(_carrier(model.link_names[owner], links, points, origins[owner], origins[k]), origins[k])
        elif not is_free:
            draw(np.zeros(3), origins[k])
    for name in dict.fromkeys(links):
        origin = origins[model.link_index(name)]
        draw(origin, _carrier(name, links, points, origin, origin))
    joints = origins[[k for k, group in enumerate(t.groups) if group >= 0]]
    axes.plot(*joints.T, "o", color=INK, markersize=4)


def _carrier(link: str, links: tuple[str, ...], points: np.ndarray, origin: np.ndarray, place: np.ndarray):
    """The point of the beams of a link that is nearest to a place, or the origin of a link without beams."""
    rows = [points[k] for k, name in enumerate(links) if name == link]
    if not rows:
        return origin
    every = np.concatenate(rows)
    return every[np.linalg.norm(every - place, axis=1).argmin()]


def _draw_colored(axes, moved: np.ndarray, numbers: np.ndarray) -> ScalarMappable:
    """Beams as segments between sections, coloured by the larger value of both ends."""
    colors = ScalarMappable(Normalize(min(0.0, float(numbers.min())), float(numbers.max()) or 1.0), "viridis_r")
    for beam, values in zip(moved, numbers, strict=True):
        for k, value in enumerate(np.maximum(values[:-1], values[1:])):
            axes.plot(*beam[k : k + 2].T, color=colors.to_rgba(value), linewidth=4.0, solid_capstyle="round")
    worst = np.unravel_index(numbers.argmax(), numbers.shape)
    axes.plot(*moved[worst][:, None], "o", markersize=11, markerfacecolor="none", color=COLORS[1], markeredgewidth=1.6)
    return colors


def _style_axes(axes, points: np.ndarray):
    """Equal scales, a planar robot seen along its normal, and others from the side of their longest extent."""
    low, high = points.min(0), points.max(0)
    middle, half = (low + high) / 2, 0.52 * float((high - low).max()) or 0.5
    flat = int((high - low).argmin())
    is_planar = (high - low)[flat] < 0.02 * half
    for k, name in enumerate("xyz"):
        width = half / 10 if is_planar and k == flat else max(0.55 * float((high - low)[k]), 0.2 * half)
        getattr(axes, f"set_{name}lim")(middle[k] - width, middle[k] + width)
        getattr(axes, f"set_{name}label")(f"{name} [m]", fontsize=9, color=INK)
        getattr(axes, f"{name}axis").pane.set_visible(False)
        getattr(axes, f"{name}axis").set_major_locator(MaxNLocator(5))
    axes.set_aspect("equal")
    axes.tick_params(labelsize=7, colors=INK)
    if is_planar:
        axes.set_proj_type("ortho")
        elevation, azimuth = ((0, 0), (0, -90), (90, -90))[flat]
        axes.view_init(elevation, azimuth)
        getattr(axes, f"set_{'xyz'[flat]}ticks")([])
        getattr(axes, f"set_{'xyz'[flat]}label")("")
    else:
        centred = points[:, :2] - points[:, :2].mean(0)
        longest = np.linalg.svd(centred, full_matrices=False)[2][0]
        axes.view_init(20, np.degrees(np.arctan2(longest[1], longest[0])) - 70)
