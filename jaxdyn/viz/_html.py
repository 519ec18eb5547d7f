"""A motion as one page of HTML that opens offline, in which the observer turns the picture and the clock."""

import html
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.io.files import write_bytes
from jaxdyn.simulation import Trajectory
from jaxdyn.viz._camera import choose_camera
from jaxdyn.viz._motion import Motion
from jaxdyn.viz._scene import build_scene, ground_grid, scene_points

_TEMPLATE = Path(__file__).with_name("viewer.html")


@dataclass(frozen=True)
class Page:
    """A page of HTML; a notebook shows it in place, `str(page)` is its text."""

    text: str

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        frame = f'srcdoc="{html.escape(self.text)}" style="width: 100%; height: 420px; border: 0"'
        return f"<iframe {frame}></iframe>"


def to_html(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    fps: float | int = 50,
    view: tuple[float, float] | None = None,
    shapes: bool = True,
    trace: Sequence[str] = (),
    title: str | None = None,
) -> Path:
    """Writes a motion as one self-contained page that opens offline in any browser.

    Drag turns the picture, shift and drag moves it, the wheel zooms; the page has a time slider and a choice of speed.

    Arguments:

    * `trajectory`: the result of `simulate`, or a batch of trajectories over the same times, of which all but the
      last are pale.
    * `path`: file to write, .html.
    * `fps`: stored poses per second.
    * `view`: azimuth and elevation of the camera at first, degrees.
    * `shapes`, `trace`: as for `animate`.
    * `title`: title of the page, by default the name of the model.

    Returns the path.
    """
    path = Path(path)
    if path.suffix.lower() != ".html":
        raise ModelError(f"{path}: the suffix of the page must be .html")
    page = as_html(trajectory, fps=fps, view=view, shapes=shapes, trace=trace, title=title)
    write_bytes(path, str(page).encode())
    return path


def as_html(
    trajectory: Trajectory,
    *,
    fps: float | int = 50,
    view: tuple[float, float] | None = None,
    shapes: bool = True,
    trace: Sequence[str] = (),
    title: str | None = None,
) -> Page:
    """The page of `to_html` as an object that a notebook displays."""
    motion = Motion.of(trajectory, fps, 1.0)
    scene = build_scene(motion.model, shapes)
    points = scene_points(scene, motion.rotation, motion.origin)
    points = points[np.isfinite(points).all(axis=1)]
    low, high = points.min(axis=0), points.max(axis=0)
    poses = np.concatenate([motion.rotation.reshape(*motion.rotation.shape[:3], 9), motion.origin], axis=-1)
    data = {
        "times": _numbers(motion.t),
        "poses": _numbers(poses),
        "sticks": [[s.links, _numbers(s.points), s.color] for s in scene.sticks],
        "solids": [[s.link, _numbers(s.vertices), s.faces, s.color] for s in scene.solids],
        "ground": [_numbers(edge) for edge in ground_grid(points)],
        "traces": [_numbers(path) for paths in motion.trace(trace) for path in paths],
        "centre": _numbers((low + high) / 2),
        "radius": max(float(np.linalg.norm(high - low)) / 2, 1e-3),
        "view": choose_camera(points, view).angles,
    }
    name = html.escape(motion.model.name if title is None else title)
    text = _TEMPLATE.read_text(encoding="utf-8").replace("TITLE", name)
    return Page(text.replace("DATA", json.dumps(data, separators=(",", ":")).replace("</", "<\\/")))


def _numbers(array: np.ndarray) -> list:
    """Nested lists rounded to a hundredth of a millimetre; numbers that are not finite become zero."""
    return np.round(np.nan_to_num(np.asarray(array, float), posinf=0.0, neginf=0.0), 5).tolist()
