"""Writing URDF."""

import os
import re
from collections.abc import Collection
from xml.sax.saxutils import quoteattr

import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.io._paths import write_bytes
from jaxdyn.io._urdf import ROOT_JOINT
from jaxdyn.io._urdf_joints import new_name
from jaxdyn.io._urdf_lost import check_concrete, check_expressible
from jaxdyn.io._urdf_pieces import Piece, pieces_of
from jaxdyn.io._xml import LARGEST
from jaxdyn.joints import Fixed, Free
from jaxdyn.model import Actuator, Model, Shape

_BAD_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MUJOCO_LEAST = "1e-14"  # just above the mass that MuJoCo takes for none


def write_urdf(
    model: Model,
    path: str | os.PathLike[str] | None = None,
    *,
    omit_base: bool = False,
    without: Collection[str] = (),
) -> str:
    """The model as a URDF text, written to `path` too if one is given.

    Numbers keep all their digits. Universal, cylindrical and z-y-x joints become chains of simple joints,
    called `<joint>_1`, `<joint>_2`, ... with massless links `<link>_1`, ... between them; a helical one a
    revolute joint and a prismatic one that mimics it; named frames become massless links. Each other kind of
    joint is refused by name.

    What holds the root is written out as a joint on a link called `world`, a free joint as one of type
    floating. A single root that is fixed where the world is, by a joint called `root_joint`, is the root of
    the file. With `omit_base` so is the link that a free joint carries, as in most files of walking robots:
    load these with `floating_base=True`, or with Pinocchio's `JointModelFreeFlyer`.

    URDF has no place for `armature`, `stiffness` (and rest), `friction_velocity`, `gravity`, `closures`, for
    limits and friction of planar and free joints (`planar_and_free`), and for some `shapes` and `actuators`.
    A model that has such is refused unless `without` names it, which then is left out. What MuJoCo reads in
    another way than Pinocchio (mimicking joints, helical ones with them, and planar ones) is said in a comment at
    the head of the file. A frame that has the name of a link is refused.
    """
    check_concrete(model)
    without = set(without)
    check_expressible(model, without)
    text = _Writer(model, omit_base, without).text()
    if path is not None:
        write_bytes(path, text.encode())
    return text


def text_of(numbers) -> str:
    """Numbers with all their digits."""
    return " ".join(repr(float(x)) for x in np.ravel(np.asarray(numbers, float)))


def rpy_of(quaternion) -> np.ndarray:
    """Roll, pitch and yaw of a quaternion of any length; accurate where the pitch is a right angle too.

    Yaw and pitch come from the turned x axis, and roll from what is left when the yaw is taken back, which
    makes up for any error in it.
    """
    w, x, y, z = np.asarray(quaternion, float) / np.linalg.norm(np.asarray(quaternion, float))
    first = (1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y))
    second = (2 * (x * y - w * z), 1 - 2 * (x * x + z * z))
    third = (2 * (x * z + w * y), 2 * (y * z - w * x))
    yaw = np.arctan2(first[1], first[0])
    pitch = np.arctan2(-first[2], np.hypot(first[0], first[1]))
    s, c = np.sin(yaw), np.cos(yaw)
    roll = np.arctan2(s * third[0] - c * third[1], c * second[1] - s * second[0])
    return np.array([roll, pitch, yaw])


class _Writer:
    """Lines of a URDF and the names in them."""

    def __init__(self, model: Model, omit_base: bool, without: set[str]):
        self.model, self.omit_base, self.without = model, omit_base, without
        t = model.topology
        self.taken = dict.fromkeys(("world", *t.link_names, *t.joint_names, *model.frame_names), 0)
        self.lines: list[str] = []
        self.split = False
        self.pieces = {i: pieces_of(model.joint(name)) for i, name in enumerate(t.joint_names)}
        self.names = {
            i: [name] if len(self.pieces[i]) == 1 else self._numbered(name, len(self.pieces[i]))
            for i, name in enumerate(t.joint_names)
        }
        self.follows = {a: (b, k) for k, (a, b) in enumerate(t.mimics)}

    def _numbered(self, name: str, n: int) -> list[str]:
        self.split = True
        return [new_name(f"{name}_{k + 1}", self.taken) for k in range(n)]

    def text(self) -> str:
        model, bare = self.model, self._bare_root()
        body = self.lines
        if bare is None:
            self._link("world", None)
        for i in range(model.num_links):
            self._carried(i, root=i == bare)
        for k in range(len(model.frame_names)):
            self._frame(k)
        if "actuators" not in self.without:
            for drive in model.actuators:
                self._transmission(drive)
        massless = (g >= 0 and not float(m) for g, m in zip(model.topology.groups, model.links.mass, strict=True))
        bounded = self.split or any(massless)
        bounds = f' boundmass="{_MUJOCO_LEAST}" boundinertia="{_MUJOCO_LEAST}"' if bounded else ""
        head = ['<?xml version="1.0" encoding="utf-8"?>', f"<robot name={_quoted(model.name or 'robot')}>"]
        engine = f'  <mujoco><compiler inertiafromgeom="false"{bounds}/></mujoco>'
        return "\n".join([*head, *self._warnings(), engine, *body, "</robot>", ""])

    def _warnings(self) -> list[str]:
        """Comments on what MuJoCo, which reads URDF too, reads in another way than Pinocchio and jaxdyn."""
        kinds = {piece.kind for pieces in self.pieces.values() for piece in pieces}
        told = {
            "mimic is not read by MuJoCo, where these joints move on their own": any("<mimic" in x for x in self.lines),
            "velocities of planar joints are along the axes of the parent in MuJoCo": "planar" in kinds,
        }
        return [f"  <!-- {what} -->" for what, said in told.items() if said]

    def _bare_root(self) -> int | None:
        """The link that is the root of the file, if it is not to hang on a link called world."""
        model = self.model
        roots = [i for i, parent in enumerate(model.topology.parents) if parent < 0]
        on_world = "shapes" not in self.without and any(s.link == "world" for s in model.shapes)
        joints = [model.joint(model.joint_names[i]) for i in roots]
        if self.omit_base:
            if len(roots) != 1 or not isinstance(joints[0].joint, Free) or not self._at_origin(roots[0]) or on_world:
                raise ModelError(
                    "omit_base is for a model with one root, carried by a free joint placed at the origin of the "
                    "world, and nothing else on the world; write this one with its base"
                )
            return roots[0]
        plain = len(roots) == 1 and isinstance(joints[0].joint, Fixed) and joints[0].name == ROOT_JOINT
        return roots[0] if plain and self._at_origin(roots[0]) and not on_world else None

    def _at_origin(self, i: int) -> bool:
        rotation, translation = (
            np.asarray(x[i]) for x in (self.model.placements.rotation, self.model.placements.translation)
        )
        return not rotation[1:].any() and not translation.any()

    def _carried(self, i: int, *, root: bool):
        """Link i, and before it what carries it."""
        model, t = self.model, self.model.topology
        name = t.link_names[i]
        if root:
            self._link(name, i)
            return
        parent = t.link_names[t.parents[i]] if t.parents[i] >= 0 else "world"
        last = len(self.pieces[i]) - 1
        for k in range(last + 1):
            child = name if k == last else new_name(f"{name}_{k + 1}", self.taken)
            place = (model.placements.translation[i], model.placements.rotation[i]) if k == 0 else None
            self._joint(i, k, parent, child, place)
            self._link(child, i if k == last else None)
            parent = child

    def _link(self, name: str, i: int | None):
        links, inside = self.model.links, []
        if i is not None and (float(links.mass[i]) or np.asarray(links.inertia[i]).any()):
            tensor = np.asarray(links.inertia[i], float)
            tensor = (tensor + tensor.T) / 2
            six = dict(zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), tensor[np.triu_indices(3)], strict=True))
            inside = [
                "    <inertial>",
                f'      <origin xyz="{text_of(links.com[i])}" rpy="0.0 0.0 0.0"/>',
                f'      <mass value="{text_of(links.mass[i])}"/>',
                f"      <inertia {_attributes(six)}/>",
                "    </inertial>",
            ]
        if "shapes" not in self.without and (i is not None or name == "world"):
            inside += [line for shape in self.model.shapes if shape.link == name for line in _shape(shape)]
        head = f"  <link name={_quoted(name)}"
        self.lines += [f"{head}>", *inside, "  </link>"] if inside else [f"{head}/>"]

    def _joint(self, i: int, k: int, parent: str, child: str, place):
        piece = self.pieces[i][k]
        self.lines += [
            f'  <joint name={_quoted(self.names[i][k])} type="{piece.kind}">',
            f"    <parent link={_quoted(parent)}/>",
            f"    <child link={_quoted(child)}/>",
        ]
        if place is not None:
            self.lines.append(f'    <origin xyz="{text_of(place[0])}" rpy="{text_of(rpy_of(place[1]))}"/>')
        if piece.axis is not None:
            self.lines.append(f'    <axis xyz="{text_of(piece.axis)}"/>')
        self._coordinate(i, k, piece)
        self.lines.append("  </joint>")

    def _coordinate(self, i: int, k: int, piece: Piece):
        """Limits, friction and gearing of a piece with one coordinate."""
        if piece.kind not in ("revolute", "continuous", "prismatic"):
            return
        gear = self._gear(i, k, piece)
        model, view = self.model, self.model.joint(self.model.joint_names[i])
        if gear is not None:
            self._limit(piece, -np.inf, np.inf, np.inf, np.inf)
            source, ratio, offset = gear
            self.lines.append(
                f'    <mimic joint={_quoted(source)} multiplier="{text_of(ratio)}" offset="{text_of(offset)}"/>'
            )
            return
        at_q, at_v = view.q.start + piece.coordinate, view.v.start + piece.coordinate
        limits, properties = model.limits, model.properties
        self._limit(piece, limits.lower[at_q], limits.upper[at_q], limits.effort[at_v], limits.velocity[at_v])
        damping, friction = properties.damping[at_v], properties.friction[at_v]
        if damping or friction:
            self.lines.append(f'    <dynamics damping="{text_of(damping)}" friction="{text_of(friction)}"/>')

    def _limit(self, piece: Piece, lower, upper, effort, velocity):
        drive = {"effort": effort, "velocity": velocity}
        bounded = {} if piece.kind == "continuous" else {"lower": lower, "upper": upper}
        if bounded or any(np.isfinite(x) for x in drive.values()):
            given = {key: np.clip(x, -LARGEST, LARGEST) for key, x in (bounded | drive).items()}
            self.lines.append(f"    <limit {_attributes(given)}/>")

    def _gear(self, i: int, k: int, piece: Piece):
        """`(source, ratio, offset)` of a piece that follows another joint or the first piece of its own."""
        if i in self.follows:
            source, row = self.follows[i]
            ratio, offset = float(self.model.mimic.ratio[row]), float(self.model.mimic.offset[row])
            return self.names[source][0], piece.ratio * ratio, piece.ratio * offset
        return (self.names[i][0], piece.ratio, 0.0) if k > 0 and piece.coordinate == 0 else None

    def _frame(self, k: int):
        model = self.model
        link = model.frame_names[k]
        if link in ("world", *model.link_names):
            raise ModelError(f"the frame {link!r} has the name of a link, and would be a link of the file; rename it")
        at, turned = model.frames.translation[k], rpy_of(model.frames.rotation[k])
        self.lines += [
            f'  <joint name={_quoted(new_name(f"{link}_frame", self.taken))} type="fixed">',
            f"    <parent link={_quoted(model.link_names[model.topology.frame_links[k]])}/>",
            f"    <child link={_quoted(link)}/>",
            f'    <origin xyz="{text_of(at)}" rpy="{text_of(turned)}"/>',
            "  </joint>",
            f"  <link name={_quoted(link)}/>",
        ]

    def _transmission(self, drive: Actuator):
        joint = self.names[self.model.joint(drive.joint).index][0]
        self.lines += [
            f"  <transmission name={_quoted(drive.name)}>",
            "    <type>transmission_interface/SimpleTransmission</type>",
            f"    <joint name={_quoted(joint)}/>",
            f"    <actuator name={_quoted(drive.name)}>",
            f"      <mechanicalReduction>{text_of(drive.gear)}</mechanicalReduction>",
            "    </actuator>",
            "  </transmission>",
        ]


def _attributes(numbers) -> str:
    return " ".join(f'{key}="{text_of(x)}"' for key, x in numbers.items())


def _quoted(name: str) -> str:
    if not name:
        raise ModelError("something of the model has an empty name, which a URDF cannot hold; give it one")
    if _BAD_IN_XML.search(name) or name != name.strip():
        raise ModelError(f"the name {name!r} has characters that XML cannot hold; rename what it names")
    return quoteattr(name)


def _shape(shape: Shape) -> list[str]:
    size = {
        "box": lambda: f'<box size="{text_of(shape.size)}"/>',
        "sphere": lambda: f'<sphere radius="{text_of(shape.size[0])}"/>',
        "cylinder": lambda: f'<cylinder radius="{text_of(shape.size[0])}" length="{text_of(shape.size[1])}"/>',
        "capsule": lambda: f'<capsule radius="{text_of(shape.size[0])}" length="{text_of(shape.size[1])}"/>',
        "mesh": lambda: f'<mesh filename={_quoted(shape.mesh)} scale="{text_of(shape.size)}"/>',
    }[shape.kind]()
    tag = "collision" if shape.collision else "visual"
    color = [
        f"      <material name={_quoted(f'{shape.name}_material')}>",
        f'        <color rgba="{text_of(shape.color)}"/>',
        "      </material>",
    ]
    return [
        f"    <{tag} name={_quoted(shape.name)}>",
        f'      <origin xyz="{text_of(shape.translation)}" rpy="{text_of(rpy_of(shape.quaternion))}"/>',
        f"      <geometry>{size}</geometry>",
        *(color if shape.color else []),
        f"    </{tag}>",
    ]
