"""References: the axes and the point in which the motion of a frame is expressed."""

import abc

import jax

from jaxdyn._errors import check_instance
from jaxdyn.recursion import components as c

Components = tuple[jax.Array, jax.Array, jax.Array]


class AbstractReference(abc.ABC):
    """Expresses a motion vector, given in world axes about the world's origin, for a frame at `(r, p)`."""

    @abc.abstractmethod
    def express(self, rotation, translation, motion) -> tuple[Components, Components]:
        """The motion vector `(w, v)`, in components."""


class Local(AbstractReference):
    """In the frame's own axes, about its origin: Pinocchio's `LOCAL`."""

    def express(self, rotation, translation, motion) -> tuple[Components, Components]:
        return c.motion_to_local(rotation, translation, motion)


class World(AbstractReference):
    """In world axes, about the world's origin: Pinocchio's `WORLD`."""

    def express(self, rotation, translation, motion) -> tuple[Components, Components]:
        return motion


class WorldAligned(AbstractReference):
    """In world axes, about the frame's origin: Pinocchio's `LOCAL_WORLD_ALIGNED`."""

    def express(self, rotation, translation, motion) -> tuple[Components, Components]:
        return motion[0], c.add(motion[1], c.cross(motion[0], translation))


def check_reference(reference: AbstractReference):
    """Raises `ArgumentError` unless `reference` is an `AbstractReference`."""
    check_instance("reference", reference, AbstractReference, "pass jaxdyn.LOCAL, WORLD or WORLD_ALIGNED")


#: in the frame's own axes, about its origin
LOCAL = Local()
#: in world axes, about the world's origin
WORLD = World()
#: in world axes, about the frame's origin
WORLD_ALIGNED = WorldAligned()
