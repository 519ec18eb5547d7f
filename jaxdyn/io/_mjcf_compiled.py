"""A compiled MuJoCo model on its way to one of ours: names, switches, and pose arithmetic in numpy."""

from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from jaxdyn._errors import JaxdynError
from jaxdyn.model import ModelBuilder

IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
ORIGIN = np.zeros(3)


def engine() -> ModuleType:
    """The package mujoco, which is optional."""
    try:
        import mujoco
    except ImportError as error:
        raise JaxdynError(
            'reading MJCF needs the package mujoco, whose compiler resolves it: pip install "jaxdyn[mjcf]"'
        ) from error
    return mujoco


def quaternion_product(a, b) -> np.ndarray:
    """Hamilton's product, scalar first."""
    w, x = a[0], np.asarray(a[1:])
    return np.r_[w * b[0] - x @ b[1:], w * b[1:] + b[0] * x + np.cross(x, b[1:])]


def rotation_matrix(quaternion) -> np.ndarray:
    """Matrix of a unit quaternion."""
    w, x, y, z = np.asarray(quaternion, float) / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


@dataclass(frozen=True)
class Placing:
    """A pose `(quaternion, translation)` in numpy; `a @ b` places b's frame by a."""

    quaternion: np.ndarray = field(default_factory=lambda: IDENTITY)
    translation: np.ndarray = field(default_factory=lambda: ORIGIN)

    def __matmul__(self, other: "Placing") -> "Placing":
        at = self.translation + rotation_matrix(self.quaternion) @ other.translation
        return Placing(quaternion_product(self.quaternion, other.quaternion), at)

    def inverse(self) -> "Placing":
        """The pose of the outer frame in the inner."""
        back = self.quaternion * np.array([1.0, -1, -1, -1])
        return Placing(back, -rotation_matrix(back) @ self.translation)

    @property
    def is_identity(self) -> bool:
        """Exactly, in its numbers."""
        return bool(np.array_equal(self.quaternion, IDENTITY) and not self.translation.any())


def distinct(names: list[str], taken: set[str]) -> list[str]:
    """The names, with a number behind those that are taken already."""
    out = []
    for name in names:
        free, k = name, 2
        while free in taken:
            free, k = f"{name}_{k}", k + 1
        taken.add(free)
        out.append(free)
    return out


@dataclass
class Compiled:
    """MuJoCo's model `m`, the builder of ours, and the names that bodies and joints have in it."""

    mujoco: ModuleType
    m: Any
    origin: str
    folder: Path | None = None
    builder: ModelBuilder = field(init=False)
    #: link of each body, "world" for the first
    links: list[str] = field(init=False)
    #: joint of each MuJoCo joint
    joints: list[str] = field(init=False)
    link_names: set[str] = field(init=False)
    joint_names: set[str] = field(init=False)
    #: MuJoCo's free joints that became three slides and a ball
    split: set[int] = field(default_factory=set, init=False)

    def __post_init__(self):
        types = self.mujoco.mjtObj
        self.link_names = set()
        self.links = distinct(self.named(types.mjOBJ_BODY, self.m.nbody, "body"), self.link_names)
        self.joint_names = set()
        self.joints = distinct(self.named(types.mjOBJ_JOINT, self.m.njnt, "joint"), self.joint_names)
        gravity = np.zeros(3) if self.disabled("GRAVITY") else np.array(self.m.opt.gravity)
        self.builder = ModelBuilder(gravity=gravity, name=self.m.names.split(b"\0", 1)[0].decode(errors="replace"))

    def named(self, kind, count: int, stem: str) -> list[str]:
        """Names of all elements of one kind; those without get `stem` and their number."""
        return [self.mujoco.mj_id2name(self.m, kind, i) or f"{stem}{i}" for i in range(count)]

    def array(self, name: str, like: str) -> np.ndarray:
        """A field of the model, or zeros where an older MuJoCo does not have it."""
        return np.asarray(getattr(self.m, name)) if hasattr(self.m, name) else np.zeros(len(getattr(self.m, like)))

    def disabled(self, *flags: str) -> bool:
        """Whether any of these features is switched off in the file; MuJoCo's versions differ in what there is."""
        bits = (getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{flag}", None) for flag in flags)
        return any(bit is not None and self.m.opt.disableflags & int(bit) for bit in bits)

    def note(self, where: str, what: str):
        """A line of the model's report."""
        self.builder.add_note(where, what)

    def new_link(self, name: str) -> str:
        """A link name that is not taken."""
        return distinct([name], self.link_names)[0]

    def new_joint(self, name: str) -> str:
        """A joint name that is not taken."""
        return distinct([name], self.joint_names)[0]

    def actuator_inertia(self, joint: int) -> tuple[float, float]:
        """Armature and damping that an actuator adds to a joint, `gear^2` times its own (MuJoCo 4)."""
        drive = int(self.array("jnt_actuatorid", "jnt_type")[joint]) if hasattr(self.m, "jnt_actuatorid") else -1
        if drive < 0:
            return 0.0, 0.0
        gear = float(self.gear(drive)[0])
        return gear**2 * float(self.m.actuator_armature[drive]), gear**2 * float(self.m.actuator_damping[drive])

    def gear(self, actuator: int) -> np.ndarray:
        """Gear of an actuator's first output."""
        row = int(self.m.actuator_outadr[actuator]) if hasattr(self.m, "actuator_outadr") else actuator
        return np.array(self.m.actuator_gear[row])
