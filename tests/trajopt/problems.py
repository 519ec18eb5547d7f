"""Optimal control problems with known optima, shared by the tests."""

import jax.numpy as jnp
import numpy as np

from jaxdyn.trajopt import Bounds, Problem, VectorField

PI = np.pi


def _mass(t, x, u, m):
    return jnp.stack([x[1], u[0] / m])


def _effort(t, x, u):
    return u @ u


def _time(t, x):
    return t


def push(mass=2.0, distance=1.5, duration=1.2, **options) -> Problem:
    """Double integrator from rest to rest, least integral of u^2, `12 m^2 d^2 / T^3`: `u = 6 m d (T - 2 t) / T^3`."""
    d = VectorField(_mass, ("p", "v"), ("u",), jnp.asarray(mass))
    end = jnp.stack([jnp.asarray(distance), jnp.zeros(())])
    return Problem(d, jnp.asarray(duration), start=jnp.zeros(2), end=end, running=_effort, **options)


def minimum_time(mass=2.0, distance=1.5, force=3.0) -> Problem:
    """Minimum-time double integrator with bounded force: `T = 2 sqrt(m d / F)`."""
    d = VectorField(_mass, ("p", "v"), ("u",), jnp.asarray(mass))
    end = jnp.stack([jnp.asarray(distance), jnp.zeros(())])
    bounds = Bounds(lower_control=-jnp.asarray(force), upper_control=jnp.asarray(force))
    return Problem(d, 1.0, start=jnp.zeros(2), end=end, final=_time, bounds=bounds, free_duration=True)


def _cart(t, x, u, p):
    m1, m2, l, g = p
    s, c = jnp.sin(x[1]), jnp.cos(x[1])
    d = m1 + m2 * s * s
    a = (l * m2 * s * x[3] ** 2 + u[0] + m2 * g * c * s) / d
    b = -(l * m2 * c * s * x[3] ** 2 + u[0] * c + (m1 + m2) * g * s) / (l * d)
    return jnp.stack([x[2], x[3], a, b])


def cart_pole(parameters=(1.0, 0.3, 0.5, 9.81), distance=1.0, force=20.0, **options) -> Problem:
    """Swing-up of Kelly, SIAM Review 59(4), 2017, sections 6 and 10."""
    d = VectorField(_cart, ("x", "angle", "v", "w"), ("force",), jnp.asarray(parameters))
    end = jnp.stack([jnp.asarray(distance), jnp.asarray(PI), jnp.zeros(()), jnp.zeros(())])
    bounds = Bounds(lower_control=-force, upper_control=force)
    return Problem(d, 2.0, start=jnp.zeros(4), end=end, running=_effort, bounds=bounds, **options)


def _telescope(t, x, u, length):
    rho, _, phi = x[:3]
    inertia = ((length - rho) ** 3 + rho**3) / 3
    return jnp.concatenate([x[3:], jnp.stack([u[0] / length, u[1] / (inertia * jnp.sin(phi) ** 2), u[2] / inertia])])


def robot_arm() -> Problem:
    """ "Robot Arm" of COPS 3.0 (Dolan, More and Munson 2004, problem 8; Moessner-Beigel 1995), minimum time."""
    names = ("rho", "theta", "phi")
    d = VectorField(_telescope, (*names, *(f"d{n}" for n in names)), names, jnp.asarray(5.0))
    wide = np.full(3, np.inf)
    bounds = Bounds(np.array([0, -PI, 0, *-wide]), np.array([5, PI, PI, *wide]), -1.0, 1.0)
    start, end = (np.array([4.5, theta, PI / 4, 0, 0, 0]) for theta in (0, 2 * PI / 3))
    return Problem(d, 1.0, start=start, end=end, final=_time, bounds=bounds, free_duration=True)


def _links(t, x, u, _):
    s, c = jnp.sin(x[2]), jnp.cos(x[2])
    d = 31 / 36 + 9 / 4 * s * s
    a = s * (9 / 4 * c * x[0] ** 2 + 2 * x[1] ** 2) + 4 / 3 * (u[0] - u[1]) - 3 / 2 * c * u[1]
    b = -(s * (7 / 2 * x[0] ** 2 + 9 / 4 * c * x[1] ** 2) - 7 / 3 * u[1] + 3 / 2 * c * (u[0] - u[1]))
    return jnp.stack([a / d, b / d, x[1] - x[0], x[0]])


def two_link_arm() -> Problem:
    """Minimum-time two-link arm (Luus, "Iterative Dynamic Programming", 2000, section 12.4.2; TwoLinkArm of PSOPT)."""
    d = VectorField(_links, ("w1", "w2", "elbow", "shoulder"), ("u1", "u2"))
    bounds = Bounds(lower_control=-1.0, upper_control=1.0)
    start, end = np.array([0, 0, 0.5, 0]), np.array([0, 0, 0.5, 0.522])
    return Problem(d, 3.0, start=start, end=end, final=_time, bounds=bounds, free_duration=True)
