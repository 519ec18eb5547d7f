"""The rotation of a closed loop, and the optimal swing-up of a pole."""

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
    """The motion of a four-bar linkage."""

    t: np.ndarray
    points: np.ndarray  # m, (times, 4, 2): joint positions, from the crank to the rocker
    middle: np.ndarray  # m, (times, 2): middle of the coupler
    energy: np.ndarray  # J
    gap: np.ndarray  # m, between the ends of coupler and rocker


def simulate_linkage(crank_speed: Any, duration: float, times: int) -> Loop:
    """Simulates the linkage without friction, with an initial speed of its crank in rad/s."""
    model = four_bar(LENGTHS)
    speed = _consistent_velocity(model, crank_speed)
    path = simulate(model, neutral(model), speed, jnp.linspace(0, duration, times)).checked()
    evaluate = jax.jit(jax.vmap(lambda q: _joint_positions(model, q)))
    points, gap = evaluate(path.q)
    middle = (points[:, 1] + points[:, 2]) / 2
    return Loop(*map(np.asarray, (path.t, points, middle, path.energy, gap)))


def _consistent_velocity(model, crank_speed):
    """The joint velocities that satisfy the closure for a speed of the crank."""
    gap_jacobian = jax.jacfwd(lambda q: _coupler_and_rocker_ends(model, q)[0] - _coupler_and_rocker_ends(model, q)[1])(
        neutral(model)
    )
    others = jnp.linalg.solve(gap_jacobian[:, 1:], -gap_jacobian[:, 0] * crank_speed)
    return jnp.concatenate([jnp.array([crank_speed]), others])


def _coupler_and_rocker_ends(model, q):
    """Ends of the coupler and of the rocker in the plane of the linkage, m."""
    along = lambda name, length: (lambda p: p.translation + p.rotation[:, 0] * length)(frame_pose(model, q, name))
    return along("coupler", LENGTHS[2])[:2], along("rocker", LENGTHS[3])[:2]


def _joint_positions(model, q):
    coupler, rocker = _coupler_and_rocker_ends(model, q)
    position = lambda name: frame_pose(model, q, name).translation[:2]
    points = jnp.stack([position("crank"), position("coupler"), coupler, position("rocker")])
    return points, jnp.sqrt(jnp.sum((coupler - rocker) ** 2))


def cart_pole(t, x, u, p):
    """Equations of motion of a cart-pole; the angle is zero where the pole hangs (Kelly 2017)."""
    cart, bob, length, gravity = p
    s, c = jnp.sin(x[1]), jnp.cos(x[1])
    d = cart + bob * s * s
    a = (length * bob * s * x[3] ** 2 + u[0] + bob * gravity * c * s) / d
    w = -(length * bob * c * s * x[3] ** 2 + u[0] * c + (cart + bob) * gravity * s) / (length * d)
    return jnp.stack([x[2], x[3], a, w])


def squared_force(t, x, u):
    """Running cost, N^2."""
    return u @ u


def solve_swing_up(intervals: int) -> Solution:
    """The swing-up of Kelly 2017: 1 m to the side in 2 s with at most 20 N, for the least integral of force squared."""
    numbers = jnp.array([1.0, 0.3, LENGTH, 9.81])
    names = ("position", "angle", "speed", "turning")
    field = VectorField(function=cart_pole, state_names=names, control_names=("force",), parameters=numbers)
    end, bounds = jnp.array([1.0, np.pi, 0.0, 0.0]), Bounds(lower_control=-20.0, upper_control=20.0)
    problem = Problem(field, 2.0, start=jnp.zeros(4), end=end, running=squared_force, bounds=bounds)
    return solve(problem, intervals=intervals)
