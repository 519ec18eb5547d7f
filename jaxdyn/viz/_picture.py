"""A picture of things in space: a figure with a camera, into which segments, polygons and points are drawn."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection

from jaxdyn.viz._camera import Camera, choose_camera
from jaxdyn.viz._canvas import GREY, label_axes, new_figure
from jaxdyn.viz._scene import ground_grid


class Picture:
    """A figure whose extent holds given points, seen by the camera of a view or along the normal of a planar scene."""

    def __init__(self, points: np.ndarray, view: tuple[float, float] | None, width: float, dpi: int = 120):
        points = points[np.isfinite(points).all(axis=1)]
        self.camera = choose_camera(points, view)
        self._ground = [] if self.camera.is_planar else ground_grid(points)
        flat = self.camera.project(np.concatenate([points, *self._ground]))
        low, high = flat[:, :2].min(axis=0), flat[:, :2].max(axis=0)
        extent = np.maximum(high - low, 0.5 * max(*(high - low), 1e-3))  # a picture at most twice as long as wide
        middle, half = (low + high) / 2, 0.5 * extent + 0.08 * extent.max()
        self._low, self._high = middle - half, middle + half
        self.figure = new_figure(width, width * np.clip(half[1] / half[0], 0.5, 1.4))
        self.figure.set_dpi(dpi)
        self.axes = self.figure.add_subplot()
        self.clear()

    def clear(self):
        """Removes all but the ground and the labels."""
        self.axes.clear()
        self.axes.set_aspect("equal")
        self.axes.set_xlim(self._low[0], self._high[0])
        self.axes.set_ylim(self._low[1], self._high[1])
        _label(self.axes, self.camera)
        ground = [self.camera.project(x)[:, :2] for x in self._ground]
        self.axes.add_collection(LineCollection(ground, colors="#e3e6ea", linewidths=0.7))

    def add_segments(self, ends: np.ndarray, colors: Sequence, width: float, *, layer: float = 3.0, **style):
        """Draws segments between points `(n, 2, 3)` in the world, the farthest first."""
        flat = self.camera.project(np.asarray(ends).reshape(-1, 2, 3))
        order = np.argsort(flat[..., 2].mean(axis=1))
        lines = [flat[k, :, :2] for k in order]
        colors = [colors[k] for k in order]
        self.axes.add_collection(LineCollection(lines, colors=colors, linewidths=width, zorder=layer, **style))

    def add_path(self, points: np.ndarray, **style):
        """Draws a curve through points `(n, 3)`."""
        flat = self.camera.project(points)
        self.axes.plot(flat[:, 0], flat[:, 1], **style)

    def add_polygons(self, polygons: Sequence[np.ndarray], colors: Sequence, *, opacity: float):
        """Draws polygons in the coordinates of the picture."""
        style = {"edgecolors": "face", "linewidths": 0.3, "zorder": 2}
        self.axes.add_collection(PolyCollection(polygons, facecolors=colors, alpha=opacity, **style))

    def add_points(self, points: np.ndarray, size: int, **style):
        """Draws dots at points `(n, 3)`."""
        flat = self.camera.project(points)
        self.axes.scatter(flat[:, 0], flat[:, 1], s=size, **{"zorder": 4, **style})


def _label(axes: Axes, camera: Camera):
    """A scale in m for planar scenes, the world's axes for others."""
    if camera.is_planar:
        across, up = ("xyz"[int(np.abs(camera.axes[k]).argmax())] for k in (0, 1))
        label_axes(axes, "", f"{across} [m]", f"{up} [m]")
        return
    axes.axis("off")
    style = {"transform": axes.transAxes, "fontsize": 8, "color": GREY, "ha": "center", "va": "center"}
    for name, axis in zip("xyz", camera.axes.T, strict=True):
        x, y = axis[:2]
        tip, corner = (0.93 + 0.05 * x, 0.07 + 0.05 * y), (0.93, 0.07)
        axes.annotate("", tip, corner, "axes fraction", arrowprops={"arrowstyle": "->", "color": GREY})
        axes.text(0.93 + 0.07 * x, 0.07 + 0.07 * y, name, **style)
