"""The entries of a `ModelBuilder`."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jaxdyn.joints import AbstractJoint
from jaxdyn.spatial import Inertia


class MasslessInertia(NamedTuple):
    """The inertia of a massless link."""

    mass: Any = np.zeros(())
    com: Any = np.zeros(3)
    inertia: Any = np.zeros((3, 3))


@dataclass
class LinkEntry:
    """A link and the joint that connects it to its parent; the pose places the joint frame in the parent."""

    name: str
    parent: str
    joint_name: str
    joint: AbstractJoint
    inertia: Inertia | None
    rotation: Any
    translation: Any
    properties: dict[str, Any]
