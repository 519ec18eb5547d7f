"""Optimal control problems in terms that jaxdyn and CasADi both read."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

PI, INF = np.pi, np.inf


class Case(NamedTuple):
    """A problem; `field(x, u, lib)` returns a list, lib has sin and cos."""

    name: str
    field: Callable[..., list]
    #: integrand `cost(x, u)`; None for the least time
    cost: Callable[..., Any] | None
    start: tuple
    end: tuple
    force: tuple
    duration: float
    free: bool = False
    lower: tuple = ()
    upper: tuple = ()
    published: str = ""
    #: sizes of the meshes; both solvers on each
    intervals: tuple[int, ...] = (40,)
    #: states in between that the guess passes, equally far apart; the line from start to end without
    via: tuple = ()
    #: controls of the guess
    push: float = 0.0
    #: what the controls are at the end, or nothing
    end_control: tuple = ()

    @property
    def nu(self) -> int:
        """Number of controls."""
        return CONTROLS.get(self.field, 1)

    def guess(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points of the horizon, states and controls there."""
        x = np.array([self.start, *self.via, self.end], float)
        return np.linspace(0, 1, len(x)), x, np.full((len(x), self.nu), self.push)


def cart_pole(x, u, lib):
    """Kelly, SIAM Review 59(4), 2017, section 6."""
    m1, m2, l, g = 1.0, 0.3, 0.5, 9.81
    s, c = lib.sin(x[1]), lib.cos(x[1])
    d = m1 + m2 * s * s
    a = (l * m2 * s * x[3] ** 2 + u[0] + m2 * g * c * s) / d
    return [x[2], x[3], a, -(l * m2 * c * s * x[3] ** 2 + u[0] * c + (m1 + m2) * g * s) / (l * d)]


def robot_arm(x, u, lib):
    """COPS 3.0 (Dolan, More and Munson 2004), problem 8."""
    inertia = ((5.0 - x[0]) ** 3 + x[0] ** 3) / 3
    return [x[3], x[4], x[5], u[0] / 5.0, u[1] / (inertia * lib.sin(x[2]) ** 2), u[2] / inertia]


def two_link(x, u, lib):
    """Luus, "Iterative Dynamic Programming", 2000, section 12.4.2; TwoLinkArm of PSOPT."""
    s, c = lib.sin(x[2]), lib.cos(x[2])
    d = 31 / 36 + 9 / 4 * s * s
    a = s * (9 / 4 * c * x[0] ** 2 + 2 * x[1] ** 2) + 4 / 3 * (u[0] - u[1]) - 3 / 2 * c * u[1]
    b = -(s * (7 / 2 * x[0] ** 2 + 9 / 4 * c * x[1] ** 2) - 7 / 3 * u[1] + 3 / 2 * c * (u[0] - u[1]))
    return [a / d, b / d, x[1] - x[0], x[0]]


def pendulum(x, u, lib):
    """1 kg at 1 m, damping 0.1 N m s."""
    return [x[1], u[0] - 0.1 * x[1] - 9.81 * lib.sin(x[0])]


def acrobot(x, u, lib):
    """`jaxdyn.robots.acrobot()`, whose docstring has the equations."""
    g, l1, lc1, lc2, i1, i2 = 9.81, 1.0, 0.5, 1.0, 1 / 12, 1 / 3
    s, c = lib.sin(x[1]), lib.cos(x[1])
    m11, m12, m22 = lc1**2 + i1 + l1**2 + lc2**2 + 2 * l1 * lc2 * c + i2, lc2**2 + l1 * lc2 * c + i2, lc2**2 + i2
    g2 = lc2 * g * lib.sin(x[0] + x[1])
    r1 = l1 * lc2 * s * x[3] * (2 * x[2] + x[3]) - (lc1 + l1) * g * lib.sin(x[0]) - g2
    r2 = u[0] - l1 * lc2 * s * x[2] ** 2 - g2
    d = m11 * m22 - m12 * m12
    return [x[2], x[3], (m22 * r1 - m12 * r2) / d, (m11 * r2 - m12 * r1) / d]


def quadrotor(x, u, lib):
    """In a plane: 0.5 kg, 0.17 m from the middle to a rotor, 0.0023 kg m^2, thrusts u."""
    push = (u[0] + u[1]) / 0.5
    return [x[3], x[4], x[5], push * lib.sin(x[2]), push * lib.cos(x[2]) - 9.81, 0.17 * (u[0] - u[1]) / 0.0023]


def squares(x, u):
    """The sum of squares of the controls."""
    return sum(u[k] ** 2 for k in range(u.shape[0]))


CONTROLS = {robot_arm: 3, two_link: 2, quadrotor: 2}

CART_POLE = Case(
    "cart-pole swing-up",
    cart_pole,
    squares,
    (0,) * 4,
    (1, PI, 0, 0),
    (-20, 20),
    2.0,
    published="58.8077",
    intervals=(40, 80, 160),
)
#: 58.8839489745 is what the test of the same example in dymos 1.15 asks for, to a part in a thousand, from an optimiser
#: stopped at 1e-5; solved to 1e-9 its script gives 58.83924866
WITHOUT_FORCE = CART_POLE._replace(
    name="cart-pole, no force at the end", end_control=(0,), published="58.8839", intervals=(40,)
)
ROBOT_ARM = Case(
    "COPS robot arm",
    robot_arm,
    None,
    (4.5, 0, PI / 4, 0, 0, 0),
    (4.5, 2 * PI / 3, PI / 4, 0, 0, 0),
    (-1, 1),
    1.0,
    True,
    (0, -PI, 0, -INF, -INF, -INF),
    (5, PI, PI, INF, INF, INF),
    "9.1409",
    (60, 120, 200),
)
TWO_LINK = Case(
    "two-link arm",
    two_link,
    None,
    (0, 0, 0.5, 0),
    (0, 0, 0.5, 0.522),
    (-1, 1),
    3.0,
    True,
    published="2.9823",
    intervals=(50, 100, 200),
)
#: in swings: from hanging to one side, to the other, and over
PENDULUM = Case(
    "pendulum swing-up",
    pendulum,
    squares,
    (0, 0),
    (PI, 0),
    (-4, 4),
    4.0,
    intervals=(60,),
    via=((1, 0), (-1.5, 0)),
)
ACROBOT = Case(
    "acrobot swing-up",
    acrobot,
    squares,
    (0,) * 4,
    (PI, 0, 0, 0),
    (-20, 20),
    5.0,
    intervals=(100,),
    via=((1, -1, 0, 0), (-1, 1, 0, 0)),
)
QUADROTOR = Case(
    "quadrotor turned over",
    quadrotor,
    squares,
    (0, 0, PI, 0, 0, 0),
    (0,) * 6,
    (0, 5),
    1.5,
    intervals=(60,),
    push=2.4525,
)
CASES = (CART_POLE, WITHOUT_FORCE, PENDULUM, ACROBOT, QUADROTOR, ROBOT_ARM, TWO_LINK)
