"""Parts of a model that the tree dynamics does not read: closures, couplings, actuators, shapes and notes.

Physical numbers are leaves; names, shapes and notes are static.
"""

from dataclasses import dataclass

import equinox as eqx

from jaxdyn._types import Array, Float


class Closure(eqx.Module):
    """A loop closure: a constraint between a frame on one link and a frame on another.

    `kind` is the relative motion that remains: "point" (origins coincide, any rotation), "weld" (none),
    "revolute" (rotation about the z axis), "cylindrical" (rotation about and motion along z), "prismatic"
    (motion along z), "planar" (motion in and rotation about the normal z of the plane) or "distance"
    (origins `length` apart).
    """

    name: str = eqx.field(static=True)
    kind: str = eqx.field(static=True)
    #: names of the two links, or "world"
    links: tuple[str, str] = eqx.field(static=True)
    #: quaternions of the two frames in their links, scalar first
    rotations: Float[Array, "*batch 2 4"]
    #: their origins, m
    translations: Float[Array, "*batch 2 3"]
    #: distance of the origins of a "distance" closure, m; zero for other kinds
    length: Float[Array, "*batch"]


class Coupling(eqx.Module):
    """A constraint `q_joint = sum_k c_k q_source^k` between two coordinates; `q_joint = c_0` without a source."""

    name: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    source: str | None = eqx.field(static=True)
    #: c_0, c_1, ...
    coefficients: Float[Array, "*batch order"]


class Actuator(eqx.Module):
    """An actuator: effort `gear * u` on the velocity coordinates of a joint, with the control u within `range`."""

    name: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    #: one number per velocity coordinate of the joint
    gear: Float[Array, "*batch dofs"]
    #: lower and upper bound of the control, infinite if there is none
    range: Float[Array, "*batch 2"]


@dataclass(frozen=True)
class Shape:
    """A solid on a link, for visualisation.

    `size` is the three edges of a "box", (radius, length) of a "cylinder" or "capsule" along z, (radius,) of a
    "sphere", the semi-axes of an "ellipsoid", the scale of a "mesh", or empty for a "plane".
    """

    name: str
    link: str
    kind: str
    size: tuple[float, ...]
    translation: tuple[float, ...] = (0.0, 0.0, 0.0)
    #: scalar first
    quaternion: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)
    #: file of a "mesh", as named in the description
    mesh: str = ""
    #: red, green, blue, opacity; empty if not given
    color: tuple[float, ...] = ()
    #: collision geometry rather than visual geometry
    collision: bool = False


@dataclass(frozen=True)
class Note:
    """A note in `Model.report`: an assumption, a change or an omission when a model was read or edited."""

    where: str
    what: str

    def __str__(self):
        return f"{self.where}: {self.what}"


@dataclass(frozen=True)
class Info:
    """Static metadata of a model: name, shapes and notes."""

    name: str = ""
    shapes: tuple[Shape, ...] = ()
    notes: tuple[Note, ...] = ()
