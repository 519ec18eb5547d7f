"""A compiled MuJoCo model and the builder of the jaxdyn model: names, disabled features, and poses in numpy."""

from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from jaxdyn._errors import JaxdynError
from jaxdyn.model import ModelBuilder
from jaxdyn.spatial import hamilton_product

IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
ORIGIN = np.zeros(3)


def import_mujoco() -> ModuleType:
    """The optional package mujoco; raises `JaxdynError` if it is not installed."""
    try:
        import mujoco
    except ImportError as error:
        raise JaxdynError('reading MJCF needs the package mujoco; install it: pip install "jaxdyn[mjcf]"') from error
    return mujoco


def rotation_matrix(quaternion: np.ndarray) -> np.ndarray:
    """The rotation matrix of a quaternion of any length, scalar first."""
    w, x, y, z = np.asarray(quaternion, float) / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


@dataclass(frozen=True)
class NumpyPose:
    """A pose `(quaternion, translation)` in numpy; `a @ b` composes poses."""

    quaternion: np.ndarray = field(default_factory=lambda: IDENTITY)
    translation: np.ndarray = field(default_factory=lambda: ORIGIN)

    def __matmul__(self, other: "NumpyPose") -> "NumpyPose":
        translation = self.translation + rotation_matrix(self.quaternion) @ other.translation
        return NumpyPose(np.array(hamilton_product(self.quaternion, other.quaternion)), translation)

    def inverse(self) -> "NumpyPose":
        """The inverse pose."""
        back = self.quaternion * np.array([1.0, -1, -1, -1])
        return NumpyPose(back, -rotation_matrix(back) @ self.translation)

    @property
    def is_identity(self) -> bool:
        """True if the pose is exactly the identity."""
        return bool(np.array_equal(self.quaternion, IDENTITY) and not self.translation.any())


def make_distinct(names: list[str], taken: set[str]) -> list[str]:
    """The names, with a number appended to those that are in `taken`, to which all are added."""
    out = []
    for name in names:
        unique, k = name, 2
        while unique in taken:
            unique, k = f"{name}_{k}", k + 1
        taken.add(unique)
        out.append(unique)
    return out


@dataclass
class CompiledModel:
    """MuJoCo's model `m`, the builder of the jaxdyn model, and the names of bodies and joints in the latter."""

    mujoco: ModuleType
    m: Any
    origin: str
    folder: Path | None = None
    builder: ModelBuilder = field(init=False)
    #: link of each body; "world" is the first
    links: list[str] = field(init=False)
    #: joint of each MuJoCo joint
    joints: list[str] = field(init=False)
    link_names: set[str] = field(init=False)
    joint_names: set[str] = field(init=False)
    #: MuJoCo's free joints that are split into three slides and a ball
    split: set[int] = field(default_factory=set, init=False)
    #: tendons that are read as couplings of joints
    coupled_tendons: set[int] = field(default_factory=set, init=False)

    def __post_init__(self):
        types = self.mujoco.mjtObj
        self.link_names = set()
        self.links = make_distinct(self.element_names(types.mjOBJ_BODY, self.m.nbody, "body"), self.link_names)
        self.joint_names = set()
        self.joints = make_distinct(self.element_names(types.mjOBJ_JOINT, self.m.njnt, "joint"), self.joint_names)
        gravity = np.zeros(3) if self.is_disabled("GRAVITY") else np.array(self.m.opt.gravity)
        self.builder = ModelBuilder(gravity=gravity, name=self.m.names.split(b"\0", 1)[0].decode(errors="replace"))

    def element_names(self, kind: Any, count: int, stem: str) -> list[str]:
        """Names of all elements of one kind; an element without a name gets `stem` and its number."""
        return [self.mujoco.mj_id2name(self.m, kind, i) or f"{stem}{i}" for i in range(count)]

    def field_or_zeros(self, name: str, like: str) -> np.ndarray:
        """A field of the model, or zeros if this version of MuJoCo does not have it."""
        return np.asarray(getattr(self.m, name)) if hasattr(self.m, name) else np.zeros(len(getattr(self.m, like)))

    def is_disabled(self, *flags: str) -> bool:
        """True if the file disables any of these features; not every version of MuJoCo has all of them."""
        bits = (getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{flag}", None) for flag in flags)
        return any(bit is not None and self.m.opt.disableflags & int(bit) for bit in bits)

    def note(self, where: str, text: str):
        """Adds a note to the report of the model."""
        self.builder.add_note(where, text)

    def new_link(self, name: str) -> str:
        """A link name that is not in use."""
        return make_distinct([name], self.link_names)[0]

    def new_joint(self, name: str) -> str:
        """A joint name that is not in use."""
        return make_distinct([name], self.joint_names)[0]

    def actuator_inertia(self, joint: int) -> tuple[float, float]:
        """Armature and damping that an actuator adds to its joint, `gear^2` times its own (MuJoCo 4)."""
        drive = (
            int(self.field_or_zeros("jnt_actuatorid", "jnt_type")[joint]) if hasattr(self.m, "jnt_actuatorid") else -1
        )
        if drive < 0:
            return 0.0, 0.0
        gear = float(self.gear(drive)[0])
        return gear**2 * float(self.m.actuator_armature[drive]), gear**2 * float(self.m.actuator_damping[drive])

    def gear(self, actuator: int) -> np.ndarray:
        """Gear of the first output of an actuator."""
        row = int(self.m.actuator_outadr[actuator]) if hasattr(self.m, "actuator_outadr") else actuator
        return np.array(self.m.actuator_gear[row])
