"""Pictures of robots, and animations of their motions."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.animation import FFMpegWriter, PillowWriter
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from jaxdyn._errors import ArgumentError, ModelError, ShapeError, check_instance
from jaxdyn.io.files import write_bytes
from jaxdyn.model import Model
from jaxdyn.simulation import Trajectory
from jaxdyn.viz._camera import Camera
from jaxdyn.viz._canvas import INK, check_suffix, finish_figure
from jaxdyn.viz._motion import Motion
from jaxdyn.viz._picture import Picture
from jaxdyn.viz._scene import Scene, build_scene, link_poses, place, scene_points, stick_points

#: opacity of all robots but the last one
_GHOST = 0.25
_LIGHT = np.array([0.3, -0.5, 0.8]) / np.linalg.norm([0.3, -0.5, 0.8])


def draw(
    model: Model,
    q,
    path: str | os.PathLike[str] | None = None,
    *,
    view: tuple[float, float] | None = None,
    shapes: bool = True,
    title: str = "",
    dpi: int = 120,
) -> Figure:
    """Draws a robot at a configuration: sticks from joint to joint, and the shapes of its file.

    Arguments:

    * `q`: configuration `(nq,)`, or several `(k, nq)`, of which the last is drawn over pale ghosts of the others.
    * `path`: file to write, .png, .pdf or .svg. None writes no file.
    * `view`: azimuth and elevation of the camera, degrees. By default a planar robot is seen along the normal of its
      plane, with a scale in m, and any other from the side of its longest extent, from an elevation of 20.
    * `shapes`: whether boxes, cylinders, capsules, spheres and ellipsoids of the model are drawn.
    * `title`, `dpi`: title, and resolution of a .png in dots per inch.

    Returns the matplotlib figure, which is independent of pyplot. Example:

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    figure = jd.viz.draw(jd.robots.double_pendulum(), jnp.array([0.4, -0.8]))
    ```
    """
    check_instance("model", model, Model, "write `draw(model, q)`")
    check_suffix(path)
    q = np.asarray(q)
    if q.ndim not in (1, 2) or q.shape[-1] != model.nq:
        raise ShapeError(f"q has shape {q.shape}; expected {(model.nq,)}, or {('k', model.nq)} for several robots")
    rotation, origin = link_poses(model, np.atleast_2d(q))
    scene = build_scene(model, shapes)
    robots = _RobotPicture(scene, scene_points(scene, rotation, origin), view)
    robots.show(rotation, origin)
    return finish_figure(robots.picture.figure, title, path, dpi)


def animate(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    fps: int = 25,
    speed: float | int = 1.0,
    view: tuple[float, float] | None = None,
    shapes: bool = True,
    trace: Sequence[str] = (),
    dpi: int = 80,
) -> Path:
    """Writes an animation of a motion, .gif or .mp4; no display is needed.

    Arguments:

    * `trajectory`: the result of `simulate`, or a batch of trajectories over the same times, of which all but the
      last are pale.
    * `path`: file to write; .mp4 needs the program ffmpeg.
    * `fps`: pictures per second of the file.
    * `speed`: seconds of motion in one second of the file.
    * `view`, `shapes`: as for `draw`.
    * `trace`: names of links or frames whose paths are drawn.
    * `dpi`: resolution, dots per inch; the picture is 5 inches wide.

    Returns the path. Pictures show the samples nearest in time, so sample the motion at least as finely. Samples that
    the simulation has not reached are left out.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".gif", ".mp4"):
        raise ModelError(f"{path}: the suffix of an animation must be .gif or .mp4")
    if suffix == ".mp4" and shutil.which("ffmpeg") is None:
        raise ArgumentError(f"{path}: writing .mp4 needs the program ffmpeg, which is not on PATH; write a .gif")
    motion = Motion.of(trajectory, fps, speed)
    scene = build_scene(motion.model, shapes)
    points = scene_points(scene, motion.rotation, motion.origin)
    robots = _RobotPicture(scene, points, view, dpi)
    figure = robots.picture.figure
    paths = motion.trace(trace)
    writer = FFMpegWriter(fps) if suffix == ".mp4" else PillowWriter(fps)
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder) / f"film{suffix}"
        with writer.saving(figure, str(film), dpi):
            for k, t in enumerate(motion.t):
                traces = [p[:, : k + 1] for p in paths]
                robots.show(motion.rotation[:, k], motion.origin[:, k], traces, f"{t:.2f} s")
                writer.grab_frame()
                figure.set_layout_engine("none")  # all pictures keep the layout of the first one
        write_bytes(path, film.read_bytes())
    return path


class _RobotPicture:
    """A picture in which robots are shown one after the other."""

    def __init__(self, scene: Scene, points: np.ndarray, view, dpi: int = 120):
        self.scene, self.picture = scene, Picture(points, view, 5.0, dpi)

    def show(self, rotation: np.ndarray, origin: np.ndarray, paths: Sequence[np.ndarray] = (), caption: str = ""):
        """Shows robots at poses `(robots, links + 1, ...)`, the last one opaque, in place of what was shown."""
        picture = self.picture
        picture.clear()
        for lines in paths:
            for line in lines:
                picture.add_path(line, color=INK, linewidth=0.8, alpha=0.6)
        for k in range(len(origin)):
            self._show_robot(rotation[k], origin[k], 1.0 if k == len(origin) - 1 else _GHOST)
        if caption:
            axes = picture.axes
            axes.text(0.01, 0.99, caption, transform=axes.transAxes, fontsize=9, color=INK, va="top")

    def _show_robot(self, rotation: np.ndarray, origin: np.ndarray, opacity: float):
        scene, picture = self.scene, self.picture
        picture.add_polygons(*_lit_faces(scene, rotation, origin, picture.camera), opacity=opacity)
        ends, colors = stick_points(scene, rotation, origin), [s.color for s in scene.sticks]
        picture.add_segments(ends, colors, 4.0, alpha=opacity, capstyle="round")
        marks = place(rotation, origin, scene.joint_links, scene.joints)
        picture.add_points(marks, 14, color="white", edgecolors=INK, linewidths=0.9, alpha=opacity)


def _lit_faces(scene: Scene, rotation: np.ndarray, origin: np.ndarray, camera: Camera):
    """Faces that look at the observer, from back to front, and their colours under a lamp."""
    faces: list[tuple[float, np.ndarray, np.ndarray]] = []
    for solid in scene.solids:
        points = place(rotation, origin, [solid.link] * len(solid.vertices), solid.vertices)
        flat, color = camera.project(points), np.asarray(to_rgb(solid.color))
        for face in solid.faces:
            corners = list(face)
            normal = np.cross(points[corners[1]] - points[corners[0]], points[corners[2]] - points[corners[0]])
            normal = normal / max(float(np.linalg.norm(normal)), 1e-30)
            if normal @ camera.axes[2] > 0:
                faces.append(
                    (flat[corners, 2].mean(), flat[corners, :2], color * (0.65 + 0.35 * max(0.0, normal @ _LIGHT)))
                )
    faces.sort(key=lambda x: x[0])
    return [x[1] for x in faces], [x[2] for x in faces]
