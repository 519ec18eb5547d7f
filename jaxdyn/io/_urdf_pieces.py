"""Joints of the library as joints that URDF has."""

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
from jaxdyn.model._model import JointView


class Piece(NamedTuple):
    """One joint of a URDF: its type, its axis if it has one, and the coordinate of the whole that it takes.

    `ratio` is that of its own coordinate to the one it takes; only a piece that follows another has not 1.
    """

    kind: str
    axis: Any = None
    coordinate: int = 0
    ratio: float = 1.0


def _unit(axis) -> np.ndarray:
    axis = np.asarray(axis, float)
    return axis / np.linalg.norm(axis)


def _helical(joint) -> list[Piece]:
    axis = _unit(joint.axis)
    return [Piece("revolute", axis), Piece("prismatic", axis, 0, float(joint.pitch))]


def _cylindrical(joint) -> list[Piece]:
    axis = _unit(joint.axis)
    return [Piece("revolute", axis), Piece("prismatic", axis, 1)]


def _universal(joint) -> list[Piece]:
    return [Piece("revolute", _unit(joint.axis1)), Piece("revolute", _unit(joint.axis2), 1)]


_PIECES: dict[type, Callable[[Any], list[Piece]]] = {
    Fixed: lambda joint: [Piece("fixed")],
    Revolute: lambda joint: [Piece("revolute", _unit(joint.axis))],
    Continuous: lambda joint: [Piece("continuous", _unit(joint.axis))],
    Prismatic: lambda joint: [Piece("prismatic", _unit(joint.axis))],
    Planar: lambda joint: [Piece("planar", np.array([0.0, 0.0, 1.0]))],
    Free: lambda joint: [Piece("floating")],
    Helical: _helical,
    Cylindrical: _cylindrical,
    Universal: _universal,
    SphericalZYX: lambda joint: [Piece("revolute", np.eye(3)[2 - k], k) for k in range(3)],
}


def pieces_of(view: JointView) -> list[Piece]:
    """The chain of URDF joints that moves as a joint does, coordinate by coordinate."""
    make = _PIECES.get(type(view.joint))
    if make is None:
        kinds = ", ".join(kind.__name__ for kind in _PIECES)
        raise ModelError(
            f"joint {view.name!r} is a {type(view.joint).__name__} joint, which URDF cannot express; those that it "
            f"can are {kinds}. Exchange it, or keep the model with jaxdyn.save"
        )
    return make(view.joint)
