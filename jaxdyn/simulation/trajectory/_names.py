"""Names and units of coordinates, velocities and generalised forces."""

from jaxdyn.joints import (
    Continuous,
    Cylindrical,
    Free,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    SphericalZYX,
    Universal,
)
from jaxdyn.model import Model
from jaxdyn.recursion import check_model

_TURN, _LENGTH = ("rad", "rad/s"), ("m", "m/s")
_W3 = (("wx", "rad/s"), ("wy", "rad/s"), ("wz", "rad/s"))
_QUATERNION = tuple((name, "1") for name in "wxyz")
#: names and units of the components of q and of v
_COMPONENTS = {
    Free: (
        (*((f"q{x}", "1") for x in "wxyz"), ("x", "m"), ("y", "m"), ("z", "m")),
        (*_W3, ("vx", "m/s"), ("vy", "m/s"), ("vz", "m/s")),
    ),
    Spherical: (_QUATERNION, _W3),
    Planar: ((("x", "m"), ("y", "m"), ("angle", "rad")), (("vx", "m/s"), ("vy", "m/s"), ("w", "rad/s"))),
    SphericalZYX: tuple(tuple((name, unit) for name in "zyx") for unit in _TURN),
    Cylindrical: tuple((("angle", a), ("slide", b)) for a, b in zip(_TURN, _LENGTH, strict=True)),
    Universal: tuple((("1", unit), ("2", unit)) for unit in _TURN),
    Prismatic: tuple((("", unit),) for unit in _LENGTH),
    **{kind: tuple((("", unit),) for unit in _TURN) for kind in (Revolute, Continuous, Helical)},
}
_EFFORT = {"rad/s": "N m", "m/s": "N", "": ""}


def coordinate_names(model: Model) -> tuple[tuple[str, str], ...]:
    """Name and unit of each entry of q: the name of the joint, with the component if the joint has several."""
    return _component_names(model, 0)


def velocity_names(model: Model) -> tuple[tuple[str, str], ...]:
    """Name and unit of each entry of v, in the form of `coordinate_names`."""
    return _component_names(model, 1)


def effort_names(model: Model) -> tuple[tuple[str, str], ...]:
    """Name and unit of each generalised force: the names of v, with N m or N."""
    return tuple((name, _EFFORT[unit]) for name, unit in velocity_names(model))


def _component_names(model: Model, which: int) -> tuple[tuple[str, str], ...]:
    """Names and units of the entries of q (0) or v (1)."""
    check_model(model)
    topology = model.topology
    followers = {follower for follower, _ in topology.mimics}
    names: dict[int, tuple[str, str]] = {}
    for i in topology.bodies:
        if i in followers:
            continue
        where, joint = topology.joint_slices(i)[which], topology.joint_names[i]
        count = where.stop - where.start
        plain = tuple((str(k) if count > 1 else "", "") for k in range(count))
        parts = _COMPONENTS.get(type(model.joints[topology.groups[i]]), (plain, plain))[which]
        for k, (part, unit) in enumerate(parts):
            names[where.start + k] = (f"{joint}.{part}" if part else joint, unit)
    return tuple(names[k] for k in sorted(names))
