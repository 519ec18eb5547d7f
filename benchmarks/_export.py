"""The benchmark robots as URDF and MJCF text: revolute joints, fixed ones, and a free base."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jaxdyn.joints import Free, Revolute


@dataclass(frozen=True)
class Link:
    """One link with the joint that carries it; rotations as matrices."""

    name: str
    parent: str | None
    joint: str
    axis: np.ndarray | None  # None: fixed
    rotation: np.ndarray
    translation: np.ndarray
    mass: float
    com: np.ndarray
    inertia: np.ndarray
    free: bool


def _matrix(quaternion) -> np.ndarray:
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def links(model) -> Iterator[Link]:
    """The links of a model in numpy, depth first."""
    for i, name in enumerate(model.link_names):
        parent = model.topology.parents[i]
        joint = model.joint(model.joint_names[i])
        axis = np.asarray(joint.joint.axis, float) if isinstance(joint.joint, Revolute) else None
        free = isinstance(joint.joint, Free)
        if axis is None and not free and joint.joint.nv:
            raise NotImplementedError(f"joint {joint.name!r}: only revolute, fixed and free ones are written")
        as_float = lambda x, i=i: np.asarray(x[i], float)
        yield Link(
            name,
            model.link_names[parent] if parent >= 0 else None,
            joint.name,
            None if axis is None else axis / np.linalg.norm(axis),
            _matrix(as_float(model.placements.rotation)),
            as_float(model.placements.translation),
            float(model.links.mass[i]),
            as_float(model.links.com),
            as_float(model.links.inertia),
            free,
        )


def _text(x) -> str:
    return " ".join(repr(float(v)) for v in np.ravel(x))


def _rpy(r: np.ndarray) -> np.ndarray:
    pitch = np.arctan2(-r[2, 0], np.hypot(r[0, 0], r[1, 0]))
    return np.array([np.arctan2(r[2, 1], r[2, 2]), pitch, np.arctan2(r[1, 0], r[0, 0])])


def _urdf_link(link: Link) -> str:
    i = link.inertia
    six = {"ixx": i[0, 0], "ixy": i[0, 1], "ixz": i[0, 2], "iyy": i[1, 1], "iyz": i[1, 2], "izz": i[2, 2]}
    entries = " ".join(f'{k}="{float(v)!r}"' for k, v in six.items())
    return (
        f'<link name="{link.name}"><inertial><origin xyz="{_text(link.com)}" rpy="0 0 0"/>'
        f'<mass value="{link.mass!r}"/><inertia {entries}/></inertial></link>\n'
    )


def _urdf_joint(link: Link) -> str:
    kind = "fixed" if link.axis is None else "revolute"
    axis = "" if link.axis is None else f'<axis xyz="{_text(link.axis)}"/>'
    limit = "" if link.axis is None else '<limit lower="-10" upper="10" effort="1000" velocity="100"/>'
    return (
        f'<joint name="{link.joint}" type="{kind}"><parent link="{link.parent or "base"}"/>'
        f'<child link="{link.name}"/><origin xyz="{_text(link.translation)}" '
        f'rpy="{_text(_rpy(link.rotation))}"/>{axis}{limit}</joint>\n'
    )


def to_urdf(model) -> str:
    """URDF text; a free base is the root link, and whoever reads the file lets it float."""
    nothing = Link("base", None, "", None, np.eye(3), np.zeros(3), 0.0, np.zeros(3), np.zeros((3, 3)), False)
    body, base = "", _urdf_link(nothing)  # frax wants inertial parameters of the root
    for link in links(model):
        body += _urdf_link(link)
        if link.free:
            base = ""
        else:
            body += _urdf_joint(link)
    return f'<?xml version="1.0"?>\n<robot name="robot">\n{base}{body}</robot>\n'


def _quaternion(r: np.ndarray) -> np.ndarray:
    import mujoco

    out = np.zeros(4)
    mujoco.mju_mat2Quat(out, np.ravel(r))
    return out


def to_mjcf(model) -> str:
    """MJCF text without geometry, limits, damping or contact."""
    everything = list(links(model))

    def body(link: Link) -> str:
        i = link.inertia
        full = (i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2])
        joint = "" if link.axis is None else f'<joint name="{link.joint}" axis="{_text(link.axis)}"/>'
        joint = f'<freejoint name="{link.joint}"/>' if link.free else joint
        children = "".join(body(child) for child in everything if child.parent == link.name)
        return (
            f'<body name="{link.name}" pos="{_text(link.translation)}" '
            f'quat="{_text(_quaternion(link.rotation))}"><inertial pos="{_text(link.com)}" '
            f'mass="{link.mass!r}" fullinertia="{_text(full)}"/>{joint}{children}</body>\n'
        )

    bodies = "".join(body(link) for link in everything if link.parent is None)
    return (
        '<mujoco><compiler angle="radian" boundmass="0" boundinertia="0" balanceinertia="false"/>\n'
        f'<option gravity="{_text(model.gravity)}"><flag constraint="disable" contact="disable"/></option>\n'
        f"<worldbody>{bodies}</worldbody></mujoco>\n"
    )
