"""frax, which reads URDF files and holds the robot as a constant."""

import tempfile
from pathlib import Path

import numpy as np

from benchmarks._export import to_urdf
from benchmarks._problems import (
    FORWARD,
    MASS,
    RNEA,
    Problem,
    accelerations_from_mujoco,
    forces_from_mujoco,
    mass_from_mujoco,
    to_mujoco,
)

ENGINE = "frax"


def _robot(p: Problem):
    from frax.core.robot import Robot

    ordering = [n for n in p.model.joint_names if p.model.joint(n).joint.nv == 1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        path.write_text(to_urdf(p.model), encoding="utf-8")
        return Robot(str(path), joint_ordering=ordering, floating_base="quaternion" if p.floating else None)


def cases(p: Problem):
    """For each work: `(function of the state, (), state, back to jaxdyn)`."""
    robot = _robot(p)
    lift = np.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])
    q, v, a, tau = to_mujoco(p)
    rnea = lambda q, v, a: robot.rnea(q, v, a, lift, None)
    forward = lambda q, v, tau: robot.forward_dynamics(q, v, tau, None)
    return {
        RNEA: (rnea, (), (q, v, a), lambda x: forces_from_mujoco(p, x)),
        MASS: (robot.crba, (), (q,), lambda x: mass_from_mujoco(p, x)),
        FORWARD: (forward, (), (q, v, tau), lambda x: accelerations_from_mujoco(p, x)),
    }
