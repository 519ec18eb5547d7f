"""Random robots, and the same robots in other engines (Pinocchio and MuJoCo)."""

from tests.oracles._mujoco import MujocoOracle as MujocoOracle
from tests.oracles._mujoco import to_mujoco as to_mujoco
from tests.oracles._pinocchio import PinOracle as PinOracle
from tests.oracles._pinocchio import to_pinocchio as to_pinocchio
from tests.oracles._random import ALL_KINDS as ALL_KINDS
from tests.oracles._random import MUJOCO_KINDS as MUJOCO_KINDS
from tests.oracles._random import PINOCCHIO_KINDS as PINOCCHIO_KINDS
from tests.oracles._random import random_inertia as random_inertia
from tests.oracles._random import random_joint as random_joint
from tests.oracles._random import random_model as random_model
from tests.oracles._random import random_rotation as random_rotation
from tests.oracles._random import random_state as random_state
from tests.oracles._random import relative_error as relative_error
