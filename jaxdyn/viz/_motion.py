"""The motion of the links in an animation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxdyn._errors import ModelError, ShapeError, check_instance, check_positive
from jaxdyn.model import Model
from jaxdyn.simulation import Trajectory
from jaxdyn.viz._scene import link_poses, place


@dataclass(frozen=True)
class Motion:
    """Poses of the links at the pictures of an animation, for each trajectory of a batch."""

    #: the robot, of a batch the last one
    model: Model
    #: times of the pictures, s
    t: np.ndarray
    #: rotations `(batch, pictures, links + 1, 3, 3)` and origins `(batch, pictures, links + 1, 3)`, the world last
    rotation: np.ndarray
    origin: np.ndarray

    @classmethod
    def of(cls, trajectory: Trajectory, fps: float | int, speed: float | int) -> "Motion":
        """The poses of a trajectory at `fps` pictures per second of a film in which time runs at `speed`."""
        check_instance("trajectory", trajectory, Trajectory, "write `animate(simulate(...), path)`")
        check_positive("fps", fps, "1/s")
        check_positive("speed", speed, "s per second of the film")
        q = np.asarray(trajectory.q)
        if q.ndim not in (2, 3):
            raise ShapeError(f"the trajectory has configurations of shape {q.shape}; expected one batch axis at most")
        samples = [trajectory] if q.ndim == 2 else [trajectory[k] for k in range(len(q))]
        t = np.asarray(samples[0].t)
        last = max(1, min(int(np.asarray(x.reached).sum()) for x in samples))
        times = np.arange(t[0], t[last - 1] + 0.5 * speed / fps, speed / fps)
        nearest = np.abs(t[:last] - times[:, None]).argmin(axis=1)
        poses = [link_poses(x.system.model, np.asarray(x.q)[nearest]) for x in samples]
        rotation, origin = (np.stack(x) for x in zip(*poses, strict=True))
        return cls(samples[-1].system.model, t[nearest], rotation, origin)

    def trace(self, names: Sequence[str]) -> list[np.ndarray]:
        """Positions `(batch, pictures, 3)` of links and frames."""
        model, paths = self.model, []
        for name in names:
            frames = model.topology.frame_names
            if name in model.link_names:
                link, point = model.link_names.index(name), np.zeros(3)
            elif name in frames:
                k = frames.index(name)
                link, point = model.topology.frame_links[k], np.asarray(model.frames.translation)[k]
            else:
                raise ModelError(f"no link or frame is called {name!r}")
            paths.append(place(self.rotation, self.origin, [link], point[None])[..., 0, :])
        return paths
