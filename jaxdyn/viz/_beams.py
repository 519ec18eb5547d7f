"""The picture of a robot with its deflected beams, coloured by a quantity."""

import os

import numpy as np
from jax.typing import ArrayLike
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from jaxdyn._errors import ShapeError
from jaxdyn.loads import Deflections
from jaxdyn.model import Model
from jaxdyn.viz._canvas import COLORS, GREY, INK, check_suffix, finish_figure
from jaxdyn.viz._picture import Picture

#: size of the drawn deflections relative to the robot, unless a scale is given
_SIZE = 0.1


def plot_beams(
    model: Model,
    deflections: Deflections,
    values: ArrayLike | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    row: int | None = None,
    view: tuple[float, float] | None = None,
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
    * `view`: azimuth and elevation of the camera, degrees, as for `draw`.
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
    picture = Picture(np.concatenate([every, moved.reshape(-1, 3)]), view, 6.4, dpi)
    _draw_links(picture, model, deflections.links, points, origins)
    for beam in points:
        picture.add_path(beam, color=GREY, linewidth=1.2, linestyle="--")
    if numbers is None:
        for beam in moved:
            picture.add_segments(_pairs(beam), [COLORS[0]] * (len(beam) - 1), 4.0, capstyle="round")
    else:
        colors = _draw_colored(picture, moved, numbers)
        picture.figure.colorbar(colors, ax=picture.axes, shrink=0.7, pad=0.02, label=label)
    magnified = f"deflections × {scale:.3g}, largest {1e3 * largest:.3g} mm" if scale else ""
    picture.axes.set_title(magnified, fontsize=9, color=INK)
    return finish_figure(picture.figure, (model.name or "") if title is None else title, path, dpi)


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


def _pairs(points: np.ndarray) -> np.ndarray:
    """The segments `(n - 1, 2, 3)` between points `(n, 3)`."""
    return np.stack([points[:-1], points[1:]], axis=1)


def _draw_links(picture: Picture, model: Model, links: tuple[str, ...], points: np.ndarray, origins: np.ndarray):
    """Lines from each link to its children and frames, by way of its beams, and a dot at each moving joint."""
    t = model.topology
    lines = []
    for k, owner in enumerate((*t.parents, *t.frame_links)):
        is_free = k < len(t.groups) and t.groups[k] >= 0 and t.group_sizes[t.groups[k]][1] == 6
        if owner >= 0:
            lines.append((_carrier(model.link_names[owner], links, points, origins[owner], origins[k]), origins[k]))
        elif not is_free:
            lines.append((np.zeros(3), origins[k]))
    for name in dict.fromkeys(links):
        origin = origins[model.link_index(name)]
        lines.append((origin, _carrier(name, links, points, origin, origin)))
    picture.add_segments(np.array(lines), [GREY] * len(lines), 1.2, layer=2.0)
    joints = origins[[k for k, group in enumerate(t.groups) if group >= 0]]
    picture.add_points(joints, 14, color="white", edgecolors=INK, linewidths=0.9)


def _carrier(link: str, links: tuple[str, ...], points: np.ndarray, origin: np.ndarray, place: np.ndarray):
    """The point of the beams of a link that is nearest to a place, or the origin of a link without beams."""
    rows = [points[k] for k, name in enumerate(links) if name == link]
    if not rows:
        return origin
    every = np.concatenate(rows)
    return every[np.linalg.norm(every - place, axis=1).argmin()]


def _draw_colored(picture: Picture, moved: np.ndarray, numbers: np.ndarray) -> ScalarMappable:
    """Beams as segments between sections, coloured by the larger value of both ends."""
    colors = ScalarMappable(Normalize(min(0.0, float(numbers.min())), float(numbers.max()) or 1.0), "viridis_r")
    segments = np.concatenate([_pairs(beam) for beam in moved])
    shades = colors.to_rgba(np.maximum(numbers[:, :-1], numbers[:, 1:]).ravel())
    picture.add_segments(segments, list(shades), 4.0, capstyle="round")
    worst = moved[np.unravel_index(numbers.argmax(), numbers.shape)]
    picture.add_points(worst[None], 130, facecolors="none", edgecolors=COLORS[1], linewidths=1.6)
    return colors
