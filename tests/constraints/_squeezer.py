"""Andrews' squeezing mechanism, from the Test Set for IVP Solvers (Mazzia and Magherini 2008), section II-10.

Hairer and Wanner, Solving Ordinary Differential Equations II, section VI.9, print it too. Both have B at
(-0.03635, 0.03273) and zt = 0.04 in the version that gives the published solution.
"""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.spatial import Inertia

#: beta, Theta, gamma, Phi, delta, Omega, epsilon among the model's coordinates
ORDER = np.array([0, 1, 2, 4, 3, 6, 5])
_A, _B, _C = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)
_LOOPS = {"k3": (0.0, -0.035), "k4": (0.0, -0.02), "k6": (0.02, 0.0)}


@ft.cache
def squeezer():
    """Model, closures and initial configuration: seven bodies; the three loops are cut at the point P."""
    b = jd.ModelBuilder(gravity=(0, 0, 0))

    def add(name, parent, at, mass, com, about):
        body = Inertia(mass, np.array([*com, 0.0]), np.diag([about, about, about]))
        b.add_link(name, parent, jd.joints.Revolute((0, 0, 1)), body, translation=(*at, 0.0))

    add("k1", "world", (0, 0), 0.04325, (0.00092, 0), 2.194e-6)
    add("k2", "k1", (0.007, 0), 0.00365, (-0.0115, 0), 4.410e-7)
    add("k3", "world", _B, 0.02373, (0.01043, -0.01874), 5.255e-6)
    add("k5", "world", _A, 0.07050, (0.02308, 0.00916), 1.169e-5)
    add("k4", "k5", (0.04, 0), 0.00706, (0, 0.01421 - 0.02), 5.667e-7)
    add("k7", "world", _A, 0.05498, (0.00449, -0.01228), 1.912e-5)
    add("k6", "k7", (0, -0.04), 0.00706, (0.02 - 0.01421, 0), 5.667e-7)
    b.add_frame("D", "k3", translation=(0.02, -0.018, 0))
    model = b.build()
    loops = tuple(jc.PointClosure(n, ("k2", (-0.028, 0, 0)), (n, (*at, 0.0))) for n, at in _LOOPS.items())
    start = (
        -0.0617138900142764496358948458001, 0.0, 0.455279819163070380255912382449, 0.222668390165885884674473185609,
        0.487364979543842550225598953530, -0.222668390165885884674473185609, 1.23054744454982119249735015568,
    )  # fmt: skip
    return model, loops, jnp.zeros(7).at[ORDER].set(jnp.array(start))


def _spring_energy(model, q):
    stretch = jd.frame_pose(model, q, "D").translation[:2] - jnp.array(_C)
    return 4530.0 / 2 * (jnp.linalg.norm(stretch) - 0.07785) ** 2


def drive(t, q, v):
    """The torque of 0.033 N m on the first body, and the spring from C to D."""
    return jnp.zeros(7).at[0].set(0.033) - jax.grad(_spring_energy, 1)(squeezer()[0], q)


def multipliers(model, q, dynamics):
    """Multipliers in the published order: x and y in world axes for each loop."""
    turn = jd.frame_pose(model, q, "k2").rotation
    return np.concatenate([(turn @ dynamics.multiplier(name))[:2] for name in _LOOPS])
