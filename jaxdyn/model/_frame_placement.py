"""The body and the pose of a named link or frame."""

from typing import NamedTuple

from jaxdyn._errors import ModelError
from jaxdyn.model.structure import Model
from jaxdyn.recursion import link_offsets
from jaxdyn.spatial import Pose


class FramePlacement(NamedTuple):
    """A frame as its pose in a moving body (`Topology.bodies`), or in the world (body -1)."""

    body: int
    pose: Pose


def place_frame(model: Model, name: str) -> FramePlacement:
    """The moving body of the link or frame called `name`, and the pose of the frame in that body."""
    t = model.topology
    pose = Pose.identity(model.dtype)
    if name in model.link_names:
        link = model.link_index(name)
    elif name in model.frame_names:
        row = model.frame_index(name)
        link = t.frame_links[row]
        pose = Pose.from_quaternion(model.frames.rotation[row], model.frames.translation[row])
    else:
        raise ModelError(
            f"no link or frame is called {name!r}; links are {', '.join(model.link_names) or 'none'}; "
            f"frames are {', '.join(model.frame_names) or 'none'}"
        )
    if t.groups[link] < 0:
        rotation, translation = link_offsets(model)
        pose = Pose(rotation[link], translation[link]) @ pose
    return FramePlacement(t.body_of_link[link], pose)
