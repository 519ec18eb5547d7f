"""Gaps of shapes that touch at several points: the ends of a capsule, the corners of a box."""

import itertools

import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn.constraints.types import End, as_end
from jaxdyn.contact.geometry._capsule import Capsule
from jaxdyn.contact.geometry._contract import AbstractSurface
from jaxdyn.contact.geometry._gap import Gap
from jaxdyn.contact.geometry._point import Point
from jaxdyn.contact.geometry._sphere import Sphere
from jaxdyn.spatial import Pose


def capsule_ends(
    first: End | str | tuple, capsule: Capsule, second: End | str | tuple, surface: AbstractSurface
) -> tuple[Gap, Gap]:
    """Gaps of the hemispheres at the ends of a capsule, the one at negative z first.

    A capsule that lies on a plane, or in a cylinder or a sphere, touches it at both ends. Arguments as in `Gap`.

    ```python
    import jaxdyn.contact as ct

    left, right = ct.capsule_ends("foot", ct.Capsule(radius=0.02, length=0.1), "world", ct.Plane())
    assert right.first.translation[2] == 0.05 and right.shape.radius == 0.02
    ```
    """
    frame = as_end(first)
    half = jnp.stack([jnp.zeros_like(capsule.length)] * 2 + [capsule.length / 2])
    lower, upper = (Gap(_move(frame, p), Sphere(capsule.radius), second, surface) for p in (-half, half))
    return lower, upper


def box_corners(first: End | str | tuple, size, second: End | str | tuple, surface: AbstractSurface) -> tuple[Gap, ...]:
    """Gaps of the eight corners of a box, the last coordinate varying fastest from negative to positive.

    Arguments as in `Gap`; `size`: lengths of the edges along x, y and z of the frame at the centre of the box, `(3,)`,
    m. Corners touch a plane and the inside of a curved surface; edges and faces of the box are not considered.

    ```python
    import jaxdyn.contact as ct

    corners = ct.box_corners("cube", (0.1, 0.1, 0.1), "world", ct.Plane())
    assert len(corners) == 8 and corners[7].first.translation[0] == 0.05
    ```
    """
    frame, half = as_end(first), as_float(size) / 2
    signs = itertools.product((-1, 1), repeat=3)
    return tuple(Gap(_move(frame, half * jnp.array(s, half.dtype)), Point(), second, surface) for s in signs)


def _move(frame: End, point) -> End:
    """A frame with the same axes at a point given in them."""
    return End(frame.link, Pose.from_quaternion(frame.rotation, frame.translation).apply(point), frame.rotation)
