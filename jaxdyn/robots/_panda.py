"""The 7-joint arm Franka Emika Panda."""

import math

import numpy as np

from jaxdyn.joints import Revolute
from jaxdyn.model import Model, ModelBuilder
from jaxdyn.spatial import Inertia

_QUARTER = math.pi / 2

# Rotation about x and translation of each joint frame in the previous one: Denavit-Hartenberg parameters
# in Craig's convention, from Franka's "Robot and interface specifications"; d is along the new z axis.
_PLACEMENTS = (
    (0.0, (0.0, 0.0, 0.333)),
    (-_QUARTER, (0.0, 0.0, 0.0)),
    (_QUARTER, (0.0, -0.316, 0.0)),
    (_QUARTER, (0.0825, 0.0, 0.0)),
    (-_QUARTER, (-0.0825, 0.384, 0.0)),
    (_QUARTER, (0.0, 0.0, 0.0)),
    (_QUARTER, (0.088, 0.0, 0.0)),
)
_FLANGE = 0.107
_TCP = 0.1034  # between the finger tips of the Franka hand, from the flange

# mass, centre of mass, inertia about it (xx xy xz yy yz zz), identified by Gaz et al. 2019; the axial position of the
# centre of mass of link 1 has no effect and is zero in their table: here it is from Franka's own description
_INERTIAS = (
    (4.970684, (0.003875, 0.002081, -0.04762),
     (0.70337, -0.000139, 0.006772, 0.70661, 0.019169, 0.009117)),
    (0.646926, (-0.003141, -0.02872, 0.003495),
     (0.007962, -0.003925, 0.010254, 0.02811, 0.000704, 0.025995)),
    (3.228604, (0.027518, 0.039252, -0.066502),
     (0.037242, -0.004761, -0.011396, 0.036155, -0.012805, 0.01083)),
    (3.587895, (-0.05317, 0.104419, 0.027454),
     (0.025853, 0.007796, -0.001332, 0.019552, 0.008641, 0.028323)),
    (1.225946, (-0.011953, 0.041065, -0.038437),
     (0.035549, -0.002117, -0.004037, 0.029474, 0.000229, 0.008627)),
    (1.666555, (0.060149, -0.014117, -0.010517),
     (0.001964, 0.000109, -0.001158, 0.004354, 0.000341, 0.005433)),
    (0.735522, (0.010517, -0.004252, 0.061597),
     (0.012516, -0.000428, -0.001196, 0.010027, -0.000741, 0.004815)),
)  # fmt: skip
_HAND = (0.73, (-0.01, 0.0, 0.03), (0.001, 0.0, 0.0, 0.0025, 0.0, 0.0017))

# lower, upper (rad), velocity (rad/s), effort (N m), from Franka's specifications
_LIMITS = (
    (-2.8973, 2.8973, 2.175, 87.0),
    (-1.7628, 1.7628, 2.175, 87.0),
    (-2.8973, 2.8973, 2.175, 87.0),
    (-3.0718, -0.0698, 2.175, 87.0),
    (-2.8973, 2.8973, 2.61, 12.0),
    (-0.0175, 3.7525, 2.61, 12.0),
    (-2.8973, 2.8973, 2.61, 12.0),
)

# Gaz et al. identify sigmoids A / (1 + exp(-alpha (v + v0))) + constant; without v0, which is below 0.05 rad/s, these
# are (A / 2) tanh(alpha v / 2).
_FRICTION = (0.54615, 0.87224, 0.64068, 1.2794, 0.83904, 0.30301, 0.56489)
_STEEPNESS = (5.1181, 9.0657, 10.136, 5.5903, 8.3469, 17.133, 10.336)


def _inertia(mass, com, six) -> Inertia:
    xx, xy, xz, yy, yz, zz = six
    return Inertia(mass, np.array(com), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))


def panda(*, hand: bool = False) -> Model:
    """The 7-joint arm Franka Emika Panda on a fixed base; with `hand`, with the closed gripper as one body.

    Kinematics, limits and the inertia of the hand are from Franka's documentation. Inertial parameters and
    joint friction are identified by Gaz, Cognetti, Oliva, Robuffo Giordano and De Luca, "Dynamic
    Identification of the Franka Emika Panda Robot With Retrieval of Feasible Parameters Using
    Penalty-Based Optimization", IEEE RA-L 4(4), 2019: physically feasible parameters that reproduce the measured
    torques, not the masses of the single parts. Their friction is a sigmoid of the velocity; `friction` and
    `friction_velocity` are its symmetric part.

    Links "link1" to "link7" and "hand", joints "joint1" to "joint7"; frames "flange" (0.107 m behind joint
    7) and "hand_tcp" (between the finger tips of a mounted hand, rotated by -45 degrees about z). Example:

    ```python
    import jax.numpy as jnp
    from jaxdyn import robots

    arm = robots.panda(hand=True)
    middle = (arm.limits.lower + arm.limits.upper) / 2
    assert middle.shape == (7,) and "hand_tcp" in arm.frame_names
    ```
    """
    builder = ModelBuilder(name="Panda")
    rows = zip(_PLACEMENTS, _INERTIAS, _LIMITS, _FRICTION, _STEEPNESS, strict=True)
    for k, ((roll, at), inertial, (lower, upper, velocity, effort), friction, alpha) in enumerate(rows, 1):
        builder.add_link(
            f"link{k}",
            f"link{k - 1}" if k > 1 else "world",
            Revolute((0.0, 0.0, 1.0)),
            _inertia(*inertial),
            joint_name=f"joint{k}",
            translation=at,
            rpy=(roll, 0.0, 0.0),
            lower=lower,
            upper=upper,
            velocity=velocity,
            effort=effort,
            friction=friction / 2,
            friction_velocity=2 / alpha,
        )
    rpy = (0.0, 0.0, -math.pi / 4)
    if hand:
        builder.add_link("hand", "link7", None, _inertia(*_HAND), translation=(0.0, 0.0, _FLANGE), rpy=rpy)
    builder.add_frame("flange", "link7", translation=(0.0, 0.0, _FLANGE))
    builder.add_frame("hand_tcp", "link7", translation=(0.0, 0.0, _FLANGE + _TCP), rpy=rpy)
    return builder.build()
