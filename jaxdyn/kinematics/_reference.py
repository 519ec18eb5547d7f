"""In which axes, and about which point, the motion of a frame is given."""

import abc
from typing import Any

from jaxdyn.spatial import _components as c


class AbstractReference(abc.ABC):
    """How a motion vector in world axes about the world's origin is given for a frame at `(r, p)`."""

    @abc.abstractmethod
    def express(self, rotation, translation, motion) -> tuple[Any, Any]:
        """The motion vector `(w, v)`, in components."""


class Local(AbstractReference):
    """In the frame's own axes, about its origin: Pinocchio's `LOCAL`."""

    def express(self, rotation, translation, motion) -> tuple[Any, Any]:
        return c.motion_to_local(rotation, translation, motion)


class World(AbstractReference):
    """In world axes, about the world's origin: Pinocchio's `WORLD`."""

    def express(self, rotation, translation, motion) -> tuple[Any, Any]:
        return motion


class WorldAligned(AbstractReference):
    """In world axes, about the frame's origin: Pinocchio's `LOCAL_WORLD_ALIGNED`."""

    def express(self, rotation, translation, motion) -> tuple[Any, Any]:
        return motion[0], c.add(motion[1], c.cross(motion[0], translation))


#: in the frame's own axes, about its origin
LOCAL = Local()
#: in world axes, about the world's origin
WORLD = World()
#: in world axes, about the frame's origin
WORLD_ALIGNED = WorldAligned()
