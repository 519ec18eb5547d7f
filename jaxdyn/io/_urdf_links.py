"""Links of a URDF: inertia in link axes, and solids to look at."""

from collections.abc import Callable

import numpy as np

from jaxdyn.io._known import known
from jaxdyn.io._xml import Element, fail, number, required, vector
from jaxdyn.model import ModelBuilder, Shape
from jaxdyn.spatial import Inertia, inertia_defect

_SIX = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_ZERO = (0.0, 0.0, 0.0)
_IDENTITY = (1.0, 0.0, 0.0, 0.0)


def rotation_of(origin: Element) -> np.ndarray:
    """`Rz(yaw) Ry(pitch) Rx(roll)`, or the matrix `1 + 2 w [u] + 2 [u]^2` of a quaternion `(w, u)`."""
    if "quat_xyzw" in origin.attributes:
        x, y, z, w = np.array(vector(origin, "quat_xyzw", 4)) / np.linalg.norm(vector(origin, "quat_xyzw", 4))
        cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        return np.eye(3) + 2 * w * cross + 2 * cross @ cross
    rpy = vector(origin, "rpy", 3, _ZERO)
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def origin_of(element: Element) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """`(xyz, quaternion)` of the `<origin>` of an element, the identity where it says nothing.

    The quaternion, scalar first, is that of `rpy` or, scalar last in the file, `quat_xyzw`.
    """
    origin = element.first("origin")
    if origin is None:
        return _ZERO, _IDENTITY
    xyz = vector(origin, "xyz", 3, _ZERO)
    if "quat_xyzw" not in origin.attributes:
        return xyz, quaternion_of(vector(origin, "rpy", 3, _ZERO))
    x, y, z, w = np.array(vector(origin, "quat_xyzw", 4))
    length = float(np.linalg.norm((x, y, z, w)))
    return xyz, tuple(float(k) / length for k in (w, x, y, z))


def inertia_of(link: Element, builder: ModelBuilder) -> Inertia | None:
    """What `<inertial>` says, in link axes about the centre of mass: `R I R^T`."""
    inertial = link.first("inertial")
    if inertial is None:
        return None
    note = lambda what: builder.add_note(f"link {link.attributes['name']}", what)
    mass, tensor = inertial.first("mass"), inertial.first("inertia")
    missing = [f"<{tag}>" for tag, x in (("mass", mass), ("inertia", tensor)) if x is None]
    missing += [] if tensor is None else [k for k in _SIX if k not in tensor.attributes]
    given = {k: number(tensor, k) for k in _SIX if k in tensor.attributes} if tensor is not None else {}
    m = number(mass, "value") if mass is not None else 0.0
    if missing:
        note(f"<inertial> lacks {', '.join(missing)}: left out whole, as urdfdom does; the link is massless")
        return None
    if m < 0:
        fail(inertial, f"mass is {m:g}, less than zero; correct it")
    xx, xy, xz, yy, yz, zz = (given[k] for k in _SIX)
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    defect = inertia_defect(m, matrix)
    if defect:
        note(f"{defect}: taken as it is, as Pinocchio does")
    origin, (com, quaternion) = inertial.first("origin"), origin_of(inertial)
    if origin is not None and any(quaternion[1:]):
        axes = rotation_of(origin)
        matrix = axes @ matrix @ axes.T
        matrix = (matrix + matrix.T) / 2
    if m == 0 and matrix.any():
        note("has a rotational inertia and no mass: taken as it is")
    return known(Inertia, np.array(m), np.array(com), matrix)


# --- solids ----------------------------------------------------------------------------------------


def _box(x: Element):
    return "box", vector(x, "size", 3)


def _cylinder(x: Element):
    return "cylinder", (number(x, "radius"), number(x, "length"))


def _capsule(x: Element):
    return "capsule", (number(x, "radius"), number(x, "length"))


def _sphere(x: Element):
    return "sphere", (number(x, "radius"),)


def _mesh(x: Element):
    return "mesh", vector(x, "scale", 3, (1.0, 1.0, 1.0))


_SOLIDS = {"box": _box, "cylinder": _cylinder, "capsule": _capsule, "sphere": _sphere, "mesh": _mesh}


def materials_of(robot: Element) -> dict[str, tuple[float, ...]]:
    """Colours by name: those of the robot and those that a `<visual>` defines on the way."""
    found: dict[str, tuple[float, ...]] = {}
    visuals = [v for link in robot.all("link") for v in link.all("visual")]
    for owner in [robot, *visuals]:
        for material in owner.all("material"):
            color = material.first("color")
            if color is not None and material.attributes.get("name"):
                found.setdefault(material.attributes["name"], vector(color, "rgba", 4))
    return found


def add_shapes(
    link: Element, name: str, materials: dict[str, tuple[float, ...]], find: Callable[[str, str], str], builder
):
    """Solids of `<visual>` and `<collision>`, on the link that the model calls `name`; `find` places meshes."""
    for tag in ("visual", "collision"):
        for k, element in enumerate(link.all(tag)):
            where = f"link {name}"
            geometry = element.first("geometry")
            solid = next((x for x in geometry.children if x.tag in _SOLIDS), None) if geometry else None
            if solid is None:
                kinds = ", ".join(f"<{x.tag}>" for x in geometry.children) if geometry else "nothing"
                builder.add_note(where, f"<{tag}> {k} has {kinds or 'nothing'} for a geometry: left out")
                continue
            kind, size = _SOLIDS[solid.tag](solid)
            mesh = find(required(solid, "filename"), where) if kind == "mesh" else ""
            xyz, quaternion = origin_of(element)
            shape = Shape(
                name=element.attributes.get("name") or f"{name}_{tag}_{k}",
                link=name,
                kind=kind,
                size=size,
                translation=xyz,
                quaternion=quaternion,
                mesh=mesh,
                color=_color(element, materials),
                collision=tag == "collision",
            )
            builder.add_shape(shape)


def _color(element: Element, materials: dict[str, tuple[float, ...]]) -> tuple[float, ...]:
    material = element.first("material")
    if material is None:
        return ()
    color = material.first("color")
    return materials.get(material.attributes.get("name", ""), ()) if color is None else vector(color, "rgba", 4)


def quaternion_of(rpy) -> tuple[float, ...]:
    """`q_yaw q_pitch q_roll`, scalar first."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(np.divide(rpy, 2)), np.sin(np.divide(rpy, 2))
    return (
        float(cy * cp * cr + sy * sp * sr),
        float(cy * cp * sr - sy * sp * cr),
        float(cy * sp * cr + sy * cp * sr),
        float(sy * cp * cr - cy * sp * sr),
    )
