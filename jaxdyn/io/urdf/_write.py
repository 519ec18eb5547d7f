"""Writing of URDF files."""

import os
import re
from collections.abc import Collection, Sequence
from xml.sax.saxutils import quoteattr

import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn.io.files import LARGEST, write_bytes
from jaxdyn.io.urdf._joint_chains import UrdfJoint, urdf_joint_chain
from jaxdyn.io.urdf._joints import make_unique_name
from jaxdyn.io.urdf._read import ROOT_JOINT
from jaxdyn.io.urdf._unsupported import check_concrete, check_supported
from jaxdyn.joints import Fixed, Free
from jaxdyn.model import Actuator, Model, Shape

#: a number or several
_Numbers = ArrayLike | Sequence[float]
_BAD_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MUJOCO_LEAST = "1e-14"  # just above the mass that MuJoCo treats as zero


def write_urdf(
    model: Model,
    path: str | os.PathLike[str] | None = None,
    *,
    omit_base: bool = False,
    without: Collection[str] = (),
) -> str:
    """Writes a model as URDF.

    Numbers keep all their digits. Universal, cylindrical and z-y-x joints become chains of simple joints
    `<joint>_1`, `<joint>_2`, ... with massless links `<link>_1`, ... between them. A helical joint becomes a
    revolute joint and a prismatic one that mimics it. Named frames become massless links. The joint of a root is
    written as a joint on a link called `world`, a free joint with the type `floating`. A single root that is fixed at
    the origin of the world by a joint called `root_joint` becomes the root of the file instead.

    URDF cannot express `armature`, `stiffness` (with its rest position), `friction_velocity`, `gravity`, `closures`,
    limits and friction of planar and free joints (`planar_and_free`), and some `shapes` and `actuators`. A comment at
    the head of the file names the joints that MuJoCo and Pinocchio interpret differently (mimicking, helical, planar).

    Arguments:

    * `model`: one model with concrete numbers.
    * `path`: file to write, completely or not at all; None writes no file.
    * `omit_base`: make the link behind a free joint the root of the file, as is common for walking robots. Load such
      files with `floating_base=True`, or with Pinocchio's `JointModelFreeFlyer`.
    * `without`: names of inexpressible features to omit, from the list above.

    Returns the text. Raises `ModelError` for features that URDF cannot express and `without` does not name, for other
    types of joints, for batches and traced models, and for a frame with the name of a link.

    ```python
    import jaxdyn as jd

    arm = jd.robots.panda()
    text = jd.write_urdf(arm, without=("friction_velocity",))
    assert jd.parse_urdf(text).nv == arm.nv
    ```
    """
    check_concrete(model)
    without = set(without)
    check_supported(model, without)
    text = _Writer(model, omit_base, without).text()
    if path is not None:
        write_bytes(path, text.encode())
    return text


def format_numbers(numbers: _Numbers) -> str:
    """Numbers with all their digits, separated by spaces."""
    return " ".join(repr(float(x)) for x in np.ravel(np.asarray(numbers, float)))


def rpy_from_quaternion(quaternion: _Numbers) -> np.ndarray:
    """Roll, pitch and yaw of a quaternion of any length, accurate at a pitch of 90 degrees too.

    Yaw and pitch come from the rotated x axis, roll from the rotation that remains after the yaw is undone, which
    compensates any error of the yaw.
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
    """The lines of a URDF, and the names in use."""

    def __init__(self, model: Model, omit_base: bool, without: set[str]):
        self.model, self.omit_base, self.without = model, omit_base, without
        t = model.topology
        self.taken = dict.fromkeys(("world", *t.link_names, *t.joint_names, *model.frame_names), 0)
        self.lines: list[str] = []
        self.has_chains = False
        self.chains = {i: urdf_joint_chain(model.joint(name)) for i, name in enumerate(t.joint_names)}
        self.names = {
            i: [name] if len(self.chains[i]) == 1 else self._number_names(name, len(self.chains[i]))
            for i, name in enumerate(t.joint_names)
        }
        self.mimics = {a: (b, k) for k, (a, b) in enumerate(t.mimics)}

    def _number_names(self, name: str, n: int) -> list[str]:
        self.has_chains = True
        return [make_unique_name(f"{name}_{k + 1}", self.taken) for k in range(n)]

    def text(self) -> str:
        model, root = self.model, self._file_root()
        body = self.lines
        if root is None:
            self._add_link("world", None)
        for i in range(model.num_links):
            self._add_link_with_joint(i, is_root=i == root)
        for k in range(len(model.frame_names)):
            self._add_frame(k)
        if "actuators" not in self.without:
            for drive in model.actuators:
                self._add_transmission(drive)
        massless = (g >= 0 and not float(m) for g, m in zip(model.topology.groups, model.links.mass, strict=True))
        needs_bound = self.has_chains or any(massless)
        bounds = f' boundmass="{_MUJOCO_LEAST}" boundinertia="{_MUJOCO_LEAST}"' if needs_bound else ""
        head = ['<?xml version="1.0" encoding="utf-8"?>', f"<robot name={_quote(model.name or 'robot')}>"]
        engine = f'  <mujoco><compiler inertiafromgeom="false"{bounds}/></mujoco>'
        return "\n".join([*head, *self._comments(), engine, *body, "</robot>", ""])

    def _comments(self) -> list[str]:
        """Comments on joints that MuJoCo interprets differently from Pinocchio and jaxdyn."""
        kinds = {joint.kind for chain in self.chains.values() for joint in chain}
        comments = {
            "MuJoCo ignores mimic; the joints that mimic others move independently there": any(
                "<mimic" in x for x in self.lines
            ),
            "MuJoCo expresses velocities of planar joints in the axes of the parent": "planar" in kinds,
        }
        return [f"  <!-- {text} -->" for text, applies in comments.items() if applies]

    def _file_root(self) -> int | None:
        """The link that becomes the root of the file, or None if a link called `world` does."""
        model = self.model
        roots = [i for i, parent in enumerate(model.topology.parents) if parent < 0]
        on_world = "shapes" not in self.without and any(s.link == "world" for s in model.shapes)
        joints = [model.joint(model.joint_names[i]) for i in roots]
        if self.omit_base:
            if len(roots) != 1 or not isinstance(joints[0].joint, Free) or not self._at_origin(roots[0]) or on_world:
                raise ModelError(
                    "omit_base expects a model with one root, whose free joint is placed at the origin of the world, "
                    "and no shapes on the world; write this model with its base"
                )
            return roots[0]
        is_plain = len(roots) == 1 and isinstance(joints[0].joint, Fixed) and joints[0].name == ROOT_JOINT
        return roots[0] if is_plain and self._at_origin(roots[0]) and not on_world else None

    def _at_origin(self, i: int) -> bool:
        rotation, translation = (
            np.asarray(x[i]) for x in (self.model.placements.rotation, self.model.placements.translation)
        )
        return not rotation[1:].any() and not translation.any()

    def _add_link_with_joint(self, i: int, *, is_root: bool):
        """Adds the joints above link i, and the link."""
        model, t = self.model, self.model.topology
        name = t.link_names[i]
        if is_root:
            self._add_link(name, i)
            return
        parent = t.link_names[t.parents[i]] if t.parents[i] >= 0 else "world"
        last = len(self.chains[i]) - 1
        for k in range(last + 1):
            child = name if k == last else make_unique_name(f"{name}_{k + 1}", self.taken)
            pose = (model.placements.translation[i], model.placements.rotation[i]) if k == 0 else None
            self._add_joint(i, k, parent, child, pose)
            self._add_link(child, i if k == last else None)
            parent = child

    def _add_link(self, name: str, i: int | None):
        links, inside = self.model.links, []
        if i is not None and (float(links.mass[i]) or np.asarray(links.inertia[i]).any()):
            tensor = np.asarray(links.inertia[i], float)
            tensor = (tensor + tensor.T) / 2
            six = dict(zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), tensor[np.triu_indices(3)], strict=True))
            inside = [
                "    <inertial>",
                f'      <origin xyz="{format_numbers(links.com[i])}" rpy="0.0 0.0 0.0"/>',
                f'      <mass value="{format_numbers(links.mass[i])}"/>',
                f"      <inertia {_attributes(six)}/>",
                "    </inertial>",
            ]
        if "shapes" not in self.without and (i is not None or name == "world"):
            inside += [line for shape in self.model.shapes if shape.link == name for line in _shape(shape)]
        head = f"  <link name={_quote(name)}"
        self.lines += [f"{head}>", *inside, "  </link>"] if inside else [f"{head}/>"]

    def _add_joint(self, i: int, k: int, parent: str, child: str, pose):
        joint = self.chains[i][k]
        self.lines += [
            f'  <joint name={_quote(self.names[i][k])} type="{joint.kind}">',
            f"    <parent link={_quote(parent)}/>",
            f"    <child link={_quote(child)}/>",
        ]
        if pose is not None:
            self.lines.append(f"    {_origin(*pose)}")
        if joint.axis is not None:
            self.lines.append(f'    <axis xyz="{format_numbers(joint.axis)}"/>')
        self._add_coordinate(i, k, joint)
        self.lines.append("  </joint>")

    def _add_coordinate(self, i: int, k: int, joint: UrdfJoint):
        """Adds limits, friction and mimicry of a URDF joint with one coordinate."""
        if joint.kind not in ("revolute", "continuous", "prismatic"):
            return
        mimic = self._mimic_relation(i, k, joint)
        model, view = self.model, self.model.joint(self.model.joint_names[i])
        if mimic is not None:
            self._add_limit(joint, -np.inf, np.inf, np.inf, np.inf)
            source, ratio, offset = mimic
            self.lines.append(
                f"    <mimic joint={_quote(source)} {_attributes({'multiplier': ratio, 'offset': offset})}/>"
            )
            return
        k_q, k_v = view.q.start + joint.coordinate, view.v.start + joint.coordinate
        limits, properties = model.limits, model.properties
        self._add_limit(joint, limits.lower[k_q], limits.upper[k_q], limits.effort[k_v], limits.velocity[k_v])
        damping, friction = properties.damping[k_v], properties.friction[k_v]
        if damping or friction:
            self.lines.append(f"    <dynamics {_attributes({'damping': damping, 'friction': friction})}/>")

    def _add_limit(self, joint: UrdfJoint, lower, upper, effort, velocity):
        drive = {"effort": effort, "velocity": velocity}
        range_ = {} if joint.kind == "continuous" else {"lower": lower, "upper": upper}
        if range_ or any(np.isfinite(x) for x in drive.values()):
            given = {key: np.clip(x, -LARGEST, LARGEST) for key, x in (range_ | drive).items()}
            self.lines.append(f"    <limit {_attributes(given)}/>")

    def _mimic_relation(self, i: int, k: int, joint: UrdfJoint):
        """`(source, ratio, offset)` of a URDF joint that mimics another one or the first of its chain, or None."""
        if i in self.mimics:
            source, row = self.mimics[i]
            ratio, offset = float(self.model.mimic.ratio[row]), float(self.model.mimic.offset[row])
            return self.names[source][0], joint.ratio * ratio, joint.ratio * offset
        return (self.names[i][0], joint.ratio, 0.0) if k > 0 and joint.coordinate == 0 else None

    def _add_frame(self, k: int):
        model = self.model
        link = model.frame_names[k]
        if link in ("world", *model.link_names):
            raise ModelError(
                f"the frame {link!r} has the name of a link, and frames become links of the file; rename it"
            )
        self.lines += [
            f'  <joint name={_quote(make_unique_name(f"{link}_frame", self.taken))} type="fixed">',
            f"    <parent link={_quote(model.link_names[model.topology.frame_links[k]])}/>",
            f"    <child link={_quote(link)}/>",
            f"    {_origin(model.frames.translation[k], model.frames.rotation[k])}",
            "  </joint>",
            f"  <link name={_quote(link)}/>",
        ]

    def _add_transmission(self, drive: Actuator):
        joint = self.names[self.model.joint(drive.joint).index][0]
        self.lines += [
            f"  <transmission name={_quote(drive.name)}>",
            "    <type>transmission_interface/SimpleTransmission</type>",
            f"    <joint name={_quote(joint)}/>",
            f"    <actuator name={_quote(drive.name)}>",
            f"      <mechanicalReduction>{format_numbers(drive.gear)}</mechanicalReduction>",
            "    </actuator>",
            "  </transmission>",
        ]


def _origin(translation: _Numbers, quaternion: _Numbers) -> str:
    return f"<origin {_attributes({'xyz': translation, 'rpy': rpy_from_quaternion(quaternion)})}/>"


def _attributes(numbers: dict) -> str:
    return " ".join(f'{key}="{format_numbers(x)}"' for key, x in numbers.items())


def _quote(name: str) -> str:
    if not name:
        raise ModelError("an element of the model has an empty name, which URDF does not allow; give it a name")
    if _BAD_IN_XML.search(name) or name != name.strip():
        raise ModelError(f"the name {name!r} has characters that XML does not allow; rename it")
    return quoteattr(name)


def _shape(shape: Shape) -> list[str]:
    size = {
        "box": lambda: f'<box size="{format_numbers(shape.size)}"/>',
        "sphere": lambda: f'<sphere radius="{format_numbers(shape.size[0])}"/>',
        "cylinder": lambda: (
            f'<cylinder radius="{format_numbers(shape.size[0])}" length="{format_numbers(shape.size[1])}"/>'
        ),
        "capsule": lambda: (
            f'<capsule radius="{format_numbers(shape.size[0])}" length="{format_numbers(shape.size[1])}"/>'
        ),
        "mesh": lambda: f'<mesh filename={_quote(shape.mesh)} scale="{format_numbers(shape.size)}"/>',
    }[shape.kind]()
    tag = "collision" if shape.collision else "visual"
    color = [
        f"      <material name={_quote(f'{shape.name}_material')}>",
        f'        <color rgba="{format_numbers(shape.color)}"/>',
        "      </material>",
    ]
    return [
        f"    <{tag} name={_quote(shape.name)}>",
        f"      {_origin(shape.translation, shape.quaternion)}",
        f"      <geometry>{size}</geometry>",
        *(color if shape.color else []),
        f"    </{tag}>",
    ]
