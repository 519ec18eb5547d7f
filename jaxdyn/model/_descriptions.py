"""What a model carries for others to interpret: closures, actuators, shapes for viewing, and notes.

The tree dynamics does not read any of it. Physical numbers are leaves; names and what is only looked at are not.
"""

from dataclasses import dataclass

import equinox as eqx

from jaxdyn._types import Array, Float


class Closure(eqx.Module):
    """A frame on one link that is tied to a frame on another, closing a loop of the tree.

    `kind` says which relative motion is left: "point" (origins coincide, any rotation), "weld" (none),
    "revolute" (rotation about the z axis), "cylindrical" (rotation about and motion along z), "prismatic"
    (motion along z), "planar" (motion in and rotation about the normal z of the plane) or "distance"
    (origins `length` apart).
    """

    name: str = eqx.field(static=True)
    kind: str = eqx.field(static=True)
    #: the two links, or "world"
    links: tuple[str, str] = eqx.field(static=True)
    #: quaternions of the two frames in their links, scalar first
    rotations: Float[Array, "*batch 2 4"]
    #: their origins, m
    translations: Float[Array, "*batch 2 3"]
    #: distance of the origins of a "distance" closure, m; otherwise zero
    length: Float[Array, "*batch"]


class Coupling(eqx.Module):
    """Two joint coordinates tied by `q_joint = polynomial(q_source)`; without a source, `q_joint = c_0`."""

    name: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    source: str | None = eqx.field(static=True)
    #: from the constant upwards
    coefficients: Float[Array, "*batch order"]


class Actuator(eqx.Module):
    """A drive: effort `gear * u` on the velocity coordinates of a joint, `u` within `range`."""

    name: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    #: one number a velocity coordinate of the joint
    gear: Float[Array, "*batch dofs"]
    #: least and greatest control, infinite where there is none
    range: Float[Array, "*batch 2"]


@dataclass(frozen=True)
class Shape:
    """A solid on a link, to be looked at.

    `size` is the three edges of a "box", (radius, length) of a "cylinder" or "capsule" along z, (radius,) of a
    "sphere", the semi-axes of an "ellipsoid", the scale of a "mesh" or nothing for a "plane".
    """

    name: str
    link: str
    kind: str
    size: tuple[float, ...]
    translation: tuple[float, ...] = (0.0, 0.0, 0.0)
    #: scalar first
    quaternion: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)
    #: file of a "mesh" as the description names it
    mesh: str = ""
    #: red, green, blue, opacity, if given
    color: tuple[float, ...] = ()
    #: meant for collisions rather than for the eye
    collision: bool = False


@dataclass(frozen=True)
class Note:
    """Something assumed, changed or left out while a model was read: where, and what."""

    where: str
    what: str

    def __str__(self):
        return f"{self.where}: {self.what}"


@dataclass(frozen=True)
class Info:
    """What of a model is neither tree nor number."""

    name: str = ""
    shapes: tuple[Shape, ...] = ()
    notes: tuple[Note, ...] = ()
