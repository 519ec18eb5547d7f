"""Links of a URDF: inertia in link axes, and shapes."""

from collections.abc import Callable

import numpy as np

from jaxdyn.io.files import Element, fail, read_number, read_vector, with_numpy_leaves
from jaxdyn.model import ModelBuilder, Shape
from jaxdyn.spatial import Inertia, inertia_defect

_SIX = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_ZERO = (0.0, 0.0, 0.0)
_IDENTITY = (1.0, 0.0, 0.0, 0.0)


def read_rotation(origin: Element) -> np.ndarray:
    """`Rz(yaw) Ry(pitch) Rx(roll)`, or the matrix `1 + 2 w [u] + 2 [u]^2` of a quaternion `(w, u)`."""
    if "quat_xyzw" in origin.attributes:
        x, y, z, w = np.array(read_vector(origin, "quat_xyzw", 4)) / np.linalg.norm(read_vector(origin, "quat_xyzw", 4))
        cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        return np.eye(3) + 2 * w * cross + 2 * cross @ cross
    rpy = read_vector(origin, "rpy", 3, _ZERO)
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def read_origin(element: Element) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """`(xyz, quaternion)` of the `<origin>` of an element; the identity by default.

    The quaternion, scalar first, comes from `rpy` or from `quat_xyzw`, which is scalar last.
    """
    origin = element.first("origin")
    if origin is None:
        return _ZERO, _IDENTITY
    xyz = read_vector(origin, "xyz", 3, _ZERO)
    if "quat_xyzw" not in origin.attributes:
        return xyz, quaternion_from_rpy(read_vector(origin, "rpy", 3, _ZERO))
    x, y, z, w = np.array(read_vector(origin, "quat_xyzw", 4))
    length = float(np.linalg.norm((x, y, z, w)))
    return xyz, tuple(float(k) / length for k in (w, x, y, z))


def read_inertia(link: Element, builder: ModelBuilder) -> Inertia | None:
    """The inertia of `<inertial>` about the centre of mass, in link axes: `R I R^T`."""
    inertial = link.first("inertial")
    if inertial is None:
        return None
    note = lambda what: builder.add_note(f"link {link.attributes['name']}", what)
    mass, tensor = inertial.first("mass"), inertial.first("inertia")
    six = {} if tensor is None else {k: read_number(tensor, k) for k in _SIX if k in tensor.attributes}
    if mass is None:
        note("<inertial> has no <mass>: ignored, as by urdfdom; the link is massless")
        return None
    m = read_number(mass, "value")
    if m < 0:
        fail(inertial, f"mass is {m:g}, which is negative; correct it")
    missing = ["<inertia>"] if tensor is None else [k for k in _SIX if k not in six]
    if missing:
        what = "the mass is kept and the rotational inertia is zero, as by Pinocchio"
        note(f"<inertial> has no {', '.join(missing)}: {what}")
        six = dict.fromkeys(_SIX, 0.0)
    xx, xy, xz, yy, yz, zz = (six[k] for k in _SIX)
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    defect = inertia_defect(m, matrix)
    if defect:
        note(f"{defect}: kept, as by Pinocchio")
    origin, (com, quaternion) = inertial.first("origin"), read_origin(inertial)
    if origin is not None and any(quaternion[1:]):
        axes = read_rotation(origin)
        matrix = axes @ matrix @ axes.T
        matrix = (matrix + matrix.T) / 2
    if m == 0 and matrix.any():
        note("has a rotational inertia without mass: kept")
    return with_numpy_leaves(Inertia, np.array(m), np.array(com), matrix)


# --- shapes ----------------------------------------------------------------------------------------


def _box(x: Element):
    return "box", read_vector(x, "size", 3)


def _cylinder(x: Element):
    return "cylinder", (read_number(x, "radius"), read_number(x, "length"))


def _capsule(x: Element):
    return "capsule", (read_number(x, "radius"), read_number(x, "length"))


def _sphere(x: Element):
    return "sphere", (read_number(x, "radius"),)


def _mesh(x: Element):
    return "mesh", read_vector(x, "scale", 3, (1.0, 1.0, 1.0))


_SOLIDS = {"box": _box, "cylinder": _cylinder, "capsule": _capsule, "sphere": _sphere, "mesh": _mesh}


def read_materials(robot: Element) -> dict[str, tuple[float, ...]]:
    """Colours by the names of materials, which `<robot>` or a `<visual>` defines."""
    found: dict[str, tuple[float, ...]] = {}
    visuals = [v for link in robot.all("link") for v in link.all("visual")]
    for owner in [robot, *visuals]:
        for material in owner.all("material"):
            color = material.first("color")
            if color is not None and material.attributes.get("name"):
                found.setdefault(material.attributes["name"], read_vector(color, "rgba", 4))
    return found


def add_shapes(
    link: Element,
    name: str,
    materials: dict[str, tuple[float, ...]],
    find_mesh: Callable[[Element, str], str],
    builder: ModelBuilder,
):
    """Adds the shapes of `<visual>` and `<collision>` to the link `name`; `find_mesh` resolves the name in an
    element `<mesh>`.
    """
    for tag in ("visual", "collision"):
        for k, element in enumerate(link.all(tag)):
            where = f"link {name}"
            geometry = element.first("geometry")
            solid = next((x for x in geometry.children if x.tag in _SOLIDS), None) if geometry else None
            if solid is None:
                kinds = ", ".join(f"<{x.tag}>" for x in geometry.children) if geometry else "nothing"
                builder.add_note(where, f"<{tag}> {k} has the geometry {kinds or 'nothing'}: ignored")
                continue
            kind, size = _SOLIDS[solid.tag](solid)
            mesh = find_mesh(solid, where) if kind == "mesh" else ""
            xyz, quaternion = read_origin(element)
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
    return materials.get(material.attributes.get("name", ""), ()) if color is None else read_vector(color, "rgba", 4)


def quaternion_from_rpy(rpy) -> tuple[float, ...]:
    """`q_yaw q_pitch q_roll`, scalar first."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(np.divide(rpy, 2)), np.sin(np.divide(rpy, 2))
    return (
        float(cy * cp * cr + sy * sp * sr),
        float(cy * cp * sr - sy * sp * cr),
        float(cy * sp * cr + sy * cp * sr),
        float(sy * cp * cr - cy * sp * sr),
    )
