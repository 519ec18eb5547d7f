"""A closed loop that turns, and a pole that is swung up at the least cost: two more parts of the tour."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.kinematics import frame_pose, neutral
from jaxdyn.robots import four_bar
from jaxdyn.simulation import simulate
from jaxdyn.trajopt import Bounds, Problem, Solution, VectorField, solve

LENGTHS = (1.10, 0.5, 1.20, 0.75)  # m: ground, crank, coupler, rocker
LENGTH = 0.5  # m, of the pole
OPTIMUM = 58.8077  # N^2 s, Kelly, SIAM Review 59(4), 2017, on a fine mesh


class Loop(NamedTuple):
    """A four-bar linkage over time."""

    t: np.ndarray
    points: np.ndarray  # m, (times, 4, 2): its joints, from the crank's to the rocker's on the ground
    middle: np.ndarray  # m, (times, 2): middle of the coupler
    energy: np.ndarray  # J
    gap: np.ndarray  # m, by which the pin is open


def turn(crank_speed: Any, duration: float, times: int) -> Loop:
    """The linkage without friction, started at this speed of its crank (rad/s)."""
    model = four_bar(LENGTHS)
    speed = _consistent_speed(model, crank_speed)
    path = simulate(model, neutral(model), speed, jnp.linspace(0, duration, times)).checked()  # along its closure
    seen = jax.jit(jax.vmap(lambda q: _joints(model, q)))
    points, open_by = seen(path.q)
    middle = (points[:, 1] + points[:, 2]) / 2
    return Loop(*map(np.asarray, (path.t, points, middle, path.energy, open_by)))


def _consistent_speed(model, crank_speed):
    """Velocities of all joints for one of the crank: those at which the pin stays closed."""
    slip = jax.jacfwd(lambda q: _ends(model, q)[0] - _ends(model, q)[1])(neutral(model))
    others = jnp.linalg.solve(slip[:, 1:], -slip[:, 0] * crank_speed)
    return jnp.concatenate([jnp.array([crank_speed]), others])


def _ends(model, q):
    """The coupler's end and the rocker's, in the plane of the linkage."""
    along = lambda name, length: (lambda p: p.translation + p.rotation[:, 0] * length)(frame_pose(model, q, name))
    return along("coupler", LENGTHS[2])[:2], along("rocker", LENGTHS[3])[:2]


def _joints(model, q):
    end, other = _ends(model, q)
    place = lambda name: frame_pose(model, q, name).translation[:2]
    points = jnp.stack([place("crank"), place("coupler"), end, place("rocker")])
    return points, jnp.sqrt(jnp.sum((end - other) ** 2))


def cart_pole(t, x, u, p):
    """Equations of a cart that carries a pole, whose angle counts from where it hangs (Kelly 2017)."""
    cart, bob, length, gravity = p
    s, c = jnp.sin(x[1]), jnp.cos(x[1])
    d = cart + bob * s * s
    a = (length * bob * s * x[3] ** 2 + u[0] + bob * gravity * c * s) / d
    w = -(length * bob * c * s * x[3] ** 2 + u[0] * c + (cart + bob) * gravity * s) / (length * d)
    return jnp.stack([x[2], x[3], a, w])


def squares(t, x, u):
    """Integrand of the cost."""
    return u @ u


def swing_up(intervals: int) -> Solution:
    """The cart-pole's swing-up of Kelly 2017, 1 m to the side in 2 s with at most 20 N, by least squares of force."""
    numbers = jnp.array([1.0, 0.3, LENGTH, 9.81])
    names = ("position", "angle", "speed", "turning")
    field = VectorField(function=cart_pole, state_names=names, control_names=("force",), parameters=numbers)
    end, bounds = jnp.array([1.0, np.pi, 0.0, 0.0]), Bounds(lower_control=-20.0, upper_control=20.0)
    problem = Problem(field, 2.0, start=jnp.zeros(4), end=end, running=squares, bounds=bounds)
    return solve(problem, intervals=intervals)
