"""Free horizons and limited rates of controls by all methods, against closed forms, linear and quadratic programs."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from jaxdyn._errors import ModelError
from jaxdyn.trajopt import (
    Bounds,
    MultipleShooting,
    Problem,
    SolveStatus,
    Trapezoidal,
    VectorField,
    ilqr,
    single_shooting,
    solve,
)

from .problems import _mass, minimum_time, push

M, D, F, T = 2.0, 1.5, 3.0, 1.2
TIME_COST = 10.0


def _effort_and_time(t, x, u):
    return u @ u + TIME_COST


def time_and_effort(mass=M) -> Problem:
    """Double integrator with minimal integral of `u^2 + 10` and free horizon."""
    field = VectorField(_mass, ("p", "v"), ("u",), jnp.asarray(mass))
    end = jnp.array([D, 0.0])
    return Problem(field, 1.0, start=jnp.zeros(2), end=end, running=_effort_and_time, free_duration=True)


def best_time(n, mass=M):
    """The minimal integral for n piecewise constant controls is `12 m^2 d^2 / T^3 / (1 - 1/n^2)`."""
    return (36 * (mass * D) ** 2 / (1 - 1 / n**2) / TIME_COST) ** 0.25


@pytest.mark.exhaustive
def test_shooting_methods_find_free_horizon():
    n = 10
    for method, error in ((ilqr, 1e-7), (single_shooting, 1e-3)):
        found = method(time_and_effort(), intervals=n)
        assert found.status == SolveStatus.SOLVED
        np.testing.assert_allclose(found.duration, best_time(n), rtol=error)
        np.testing.assert_allclose(found.cost, 4 / 3 * TIME_COST * best_time(n), rtol=error)
        np.testing.assert_allclose(found.t, np.linspace(0, best_time(n), n + 1), rtol=error)
        np.testing.assert_allclose(found.x[-1], [D, 0], atol=error)
        assert found.u.shape == (n + 1, 1)
    horizon = jax.grad(lambda m: ilqr(time_and_effort(m), intervals=n, tolerance=1e-9).duration)(M)
    np.testing.assert_allclose(horizon, best_time(n) / (2 * M), rtol=1e-4)  # of the square root of the mass


def _unit_mass(n):
    """Terminal position and velocity of a unit mass in unit time, as rows over constant or linear controls."""
    h = 1 / n
    held = np.stack([h * (1 - h * (np.arange(n) + 0.5)), np.full(n, h)])
    v = np.concatenate([np.zeros((1, n + 1)), np.cumsum(h / 2 * (np.eye(n + 1)[1:] + np.eye(n + 1)[:-1]), axis=0)])
    return held, np.stack([h / 2 * (v[1:] + v[:-1]).sum(0), v[-1]])


@pytest.mark.exhaustive
def test_minimum_time_equals_linear_program():
    n = 8
    for transcription, rows in zip((MultipleShooting(), Trapezoidal()), _unit_mass(n), strict=True):
        far = scipy.optimize.linprog(-rows[0], A_eq=rows[1:], b_eq=[0], bounds=(-1, 1))
        found = solve(minimum_time(), transcription=transcription, intervals=n).checked()
        np.testing.assert_allclose(found.duration, np.sqrt(M * D / F / -far.fun), rtol=1e-6)
    held = scipy.optimize.linprog(-_unit_mass(n)[0][0], A_eq=_unit_mass(n)[0][1:], b_eq=[0], bounds=(-1, 1))
    assert np.sqrt(1 / -held.fun) == pytest.approx(2)  # the switch is at a node: 2 sqrt(m d / F)


N, RATE = 8, 60.0


def limited() -> Problem:
    """With bounded control rates, from zero control."""
    return push(bounds=Bounds(control_rate=RATE), start_control=jnp.zeros(1))


def quadratic_program(trapezoid: bool):
    """Optimal piecewise linear controls and their cost."""
    h, e = T / N, np.eye(N + 1)
    p, v, weight = np.zeros(N + 1), np.zeros(N + 1), np.zeros((N + 1, N + 1))
    for a, b in itertools.pairwise(e):
        new = v + h / (2 * M) * (a + b)
        p = p + (h / 2 * (v + new) if trapezoid else h * v + h**2 / (6 * M) * (2 * a + b))
        v = new
        cross = np.outer(a, a) + np.outer(b, b)
        weight += h / 2 * cross if trapezoid else h / 3 * (cross + (np.outer(a, b) + np.outer(b, a)) / 2)
    rise = np.diff(e, axis=0) / h
    found = scipy.optimize.minimize(
        lambda u: u @ weight @ u,
        np.zeros(N + 1),
        jac=lambda u: 2 * weight @ u,
        method="SLSQP",
        bounds=[(0, 0)] + [(None, None)] * N,
        constraints=[
            {"type": "eq", "fun": lambda u: np.stack([p @ u - D, v @ u]), "jac": lambda u: np.stack([p, v])},
            {"type": "ineq", "fun": lambda u: RATE - rise @ u, "jac": lambda u: -rise},
            {"type": "ineq", "fun": lambda u: RATE + rise @ u, "jac": lambda u: rise},
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert (np.abs(rise @ found.x) > RATE - 1e-6).any()
    return found.x, found.fun


@pytest.mark.exhaustive
def test_rate_bounds_agree_with_quadratic_programs():
    trapezoid, exact = quadratic_program(True), quadratic_program(False)
    cases = [
        (solve(limited(), transcription=Trapezoidal(), intervals=N), trapezoid, 1e-5),
        (solve(limited(), transcription=MultipleShooting(linear=True), intervals=N), exact, 1e-5),
        (ilqr(limited(), intervals=N), exact, 1e-3),
    ]
    for found, (u, cost), error in cases:
        assert found.status == SolveStatus.SOLVED
        np.testing.assert_allclose(found.cost, cost, rtol=10 * error**2 + 1e-7)
        np.testing.assert_allclose(found.u[:, 0], u, atol=error * np.abs(u).max())
        assert np.abs(np.diff(found.u[:, 0]) / np.diff(found.t)).max() <= RATE * (1 + 1e-6)
    # the optimiser ignores bounds: it comes close, but need not converge
    near = single_shooting(limited(), intervals=N, rounds=20)
    assert near.violation < 1e-4
    np.testing.assert_allclose(near.cost, exact[1], rtol=1e-4)
    np.testing.assert_allclose(near.u[:, 0], exact[0], atol=1e-3 * np.abs(exact[0]).max())


def test_shooting_methods_reject_coupling_and_start_functions():
    with pytest.raises(ModelError, match="couples the end with an initial state"):
        ilqr(Problem(push().dynamics, 1.0, coupling=lambda a, b: a - b), intervals=2)
    with pytest.raises(ModelError, match="initial state is given by a function"):
        single_shooting(Problem(push().dynamics, 1.0, start=lambda x: x), intervals=2)
