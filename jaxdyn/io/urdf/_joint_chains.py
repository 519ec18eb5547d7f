"""Joints of the library as chains of URDF joints."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.joints import (
    Continuous,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    SphericalZYX,
    Universal,
)
from jaxdyn.model import JointView


class UrdfJoint(NamedTuple):
    """A URDF joint in the chain of a joint: its type, its axis if any, and the coordinate of the joint that drives it.

    `ratio` is the ratio of its displacement to that coordinate, which differs from 1 only for mimicking joints.
    """

    kind: str
    axis: np.ndarray | None = None
    coordinate: int = 0
    ratio: float = 1.0


def _normalise(axis) -> np.ndarray:
    axis = np.asarray(axis, float)
    return axis / np.linalg.norm(axis)


def _helical(joint) -> list[UrdfJoint]:
    axis = _normalise(joint.axis)
    return [UrdfJoint("revolute", axis), UrdfJoint("prismatic", axis, 0, float(joint.pitch))]


def _cylindrical(joint) -> list[UrdfJoint]:
    axis = _normalise(joint.axis)
    return [UrdfJoint("revolute", axis), UrdfJoint("prismatic", axis, 1)]


def _universal(joint) -> list[UrdfJoint]:
    return [UrdfJoint("revolute", _normalise(joint.axis1)), UrdfJoint("revolute", _normalise(joint.axis2), 1)]


_CHAINS: dict[type, Callable[[Any], list[UrdfJoint]]] = {
    Fixed: lambda joint: [UrdfJoint("fixed")],
    Revolute: lambda joint: [UrdfJoint("revolute", _normalise(joint.axis))],
    Continuous: lambda joint: [UrdfJoint("continuous", _normalise(joint.axis))],
    Prismatic: lambda joint: [UrdfJoint("prismatic", _normalise(joint.axis))],
    Planar: lambda joint: [UrdfJoint("planar", np.array([0.0, 0.0, 1.0]))],
    Free: lambda joint: [UrdfJoint("floating")],
    Helical: _helical,
    Cylindrical: _cylindrical,
    Universal: _universal,
    SphericalZYX: lambda joint: [UrdfJoint("revolute", np.eye(3)[2 - k], k) for k in range(3)],
}


def urdf_joint_chain(view: JointView) -> list[UrdfJoint]:
    """The chain of URDF joints with the same motion and coordinates as a joint."""
    make = _CHAINS.get(type(view.joint))
    if make is None:
        kinds = ", ".join(kind.__name__ for kind in _CHAINS)
        raise ModelError(
            f"joint {view.name!r} is a {type(view.joint).__name__} joint, which URDF cannot express; it can "
            f"express {kinds}. Replace the joint, or keep the model with jaxdyn.save"
        )
    return make(view.joint)
