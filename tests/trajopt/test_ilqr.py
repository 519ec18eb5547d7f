"""Differential dynamic programming against a Riccati equation, linear and quadratic programs, and published optima."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

from jaxdyn import trajopt as to
from jaxdyn._errors import ConvergenceError, ModelError
from jaxdyn.trajopt import SolveStatus
from jaxdyn.trajopt._ilqr_backward import box_step

NAMES = ("position", "velocity"), ("force",)


def slide(t, x, u, p):
    return jnp.stack([x[1], u[0]])


def swing(t, x, u, p):
    """A pendulum of length 1 m: `qddot = u - p sin q`."""
    return jnp.stack([x[1], u[0] - p * jnp.sin(x[0])])


def quadratic(t, x, u):
    return x @ x + u @ u


def small(t, x, u):
    return u @ u


def double_integrator(force=np.inf, **given):
    dynamics = to.VectorField(slide, *NAMES)
    return to.Problem(
        dynamics, 2.0, start=jnp.array([1.0, 0.0]), bounds=to.Bounds(lower_control=-force, upper_control=force), **given
    )


def discrete(n):
    """Step of the double integrator under a held force, and Gram matrices of `quadratic` over an interval."""
    h = 2.0 / n
    a, b = np.array([[0.0, 1], [0, 0]]), np.array([[0.0], [1]])
    big = np.zeros((6, 6))
    big[:2, :2], big[:2, 2:3] = a, b
    whole = scipy.linalg.expm(h * big[:3, :3])
    f, g = whole[:2, :2], whole[:2, 2:3]
    s, w = np.polynomial.legendre.leggauss(5)
    cost = np.zeros((3, 3))
    for x, weight in zip(h * (s + 1) / 2, h * w / 2, strict=True):
        part = scipy.linalg.expm(x * big[:3, :3])[:2]
        cost += weight * (part.T @ part + np.diag([0, 0, 1.0]))
    return f, g, cost


def test_a_linear_problem_takes_one_step_of_the_riccati_recursion():
    n = 20
    found = to.ilqr(double_integrator(running=quadratic), intervals=n)
    f, g, cost = discrete(n)
    p = np.zeros((2, 2))
    for _ in range(n):
        whole = cost + np.hstack([f, g]).T @ p @ np.hstack([f, g])
        k = np.linalg.solve(whole[2:, 2:], whole[2:, :2])
        p = whole[:2, :2] - whole[:2, 2:] @ k
    assert found.status == SolveStatus.SOLVED
    assert found.iterations <= 3
    # the quadrature of the step is of fourth order
    np.testing.assert_allclose(found.details.feedback[0], -k, rtol=1e-6)
    np.testing.assert_allclose(found.cost, p[0, 0], rtol=1e-6)
    assert found.compile_seconds > 0
    assert "SOLVED" in found.report()


def box_problem():
    return double_integrator(1.5, running=small, end=jnp.array([0.0, 0.0]))


@pytest.mark.slow
def test_limits_of_controls_and_ends_are_those_of_a_quadratic_program():
    n = 20
    found = to.ilqr(box_problem(), intervals=n).checked()
    f, g, _ = discrete(n)
    reach = np.concatenate([np.linalg.matrix_power(f, n - 1 - k) @ g for k in range(n)], 1)
    target = -np.linalg.matrix_power(f, n) @ [1.0, 0.0]
    program = scipy.optimize.minimize(
        lambda u: u @ u / 10,
        np.zeros(n),
        jac=lambda u: u / 5,
        method="SLSQP",
        bounds=[(-1.5, 1.5)] * n,
        constraints={"type": "eq", "fun": lambda u: reach @ u - target, "jac": lambda u: reach},
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(found.u[:-1, 0], program.x, atol=1e-5)
    np.testing.assert_allclose(found.cost, program.fun, rtol=1e-6)
    assert np.abs(found.u).max() == pytest.approx(1.4286, abs=0.08)
    tight = to.ilqr(double_integrator(1.1, running=small, end=jnp.array([0.0, 0.0])), intervals=n).checked()
    assert (np.abs(tight.u) == 1.1).sum() >= 4  # exactly at the range
    np.testing.assert_allclose(tight.x[-1], 0, atol=1e-6)


@pytest.mark.slow
def test_what_cannot_be_met_is_named():
    found = to.ilqr(double_integrator(0.5, running=small, end=jnp.zeros(2)), intervals=20, max_iterations=200)
    assert found.status != SolveStatus.SOLVED
    assert np.isfinite(found.cost)
    worst = found.violations()[0]
    assert worst.name == "end"
    assert worst.time == 2.0
    with pytest.raises(ConvergenceError, match="end, row"):
        found.checked()
    broken = to.ilqr(eqx.tree_at(lambda p: p.start.value, box_problem(), jnp.array([jnp.nan, 0.0])), intervals=20)
    assert broken.status == SolveStatus.NOT_FINITE
    assert np.isfinite(broken.x).all()
    with pytest.raises(ModelError, match="horizon is free"):
        to.ilqr(double_integrator(running=small, free_duration=True), intervals=20)


def test_projected_newton_steps_find_the_best_in_the_box():
    rng = np.random.default_rng(0)
    solve = jax.jit(box_step)
    for _ in range(20):
        root, g = rng.normal(size=(4, 4)), rng.normal(size=4) * 3
        h = root @ root.T + 0.05 * np.eye(4)
        p, free, _, bad = solve(*map(jnp.asarray, (h, g, -np.ones(4), 0.5 * np.ones(4))))
        best = scipy.optimize.lsq_linear(np.linalg.cholesky(h).T, -np.linalg.solve(np.linalg.cholesky(h), g), (-1, 0.5))
        np.testing.assert_allclose(p, best.x, atol=1e-5)
        slope = h @ np.asarray(p) + g
        np.testing.assert_allclose(np.where(free, slope, 0), 0, atol=1e-9)
        assert not bad
    assert solve(jnp.diag(jnp.array([1.0, -1.0])), jnp.ones(2), -jnp.ones(2), jnp.ones(2))[3]


def swing_up(gravity=9.81, limit=3.0, guess=0.0):
    dynamics = to.VectorField(swing, *NAMES, parameters=jnp.asarray(gravity))
    s = jnp.linspace(0.0, 1.0, 41)
    shape = to.Guess(s, jnp.stack([np.pi * s, 0 * s], 1), guess * jnp.sin(6 * s)[:, None])
    return to.Problem(
        dynamics,
        3.0,
        start=jnp.zeros(2),
        end=jnp.array([np.pi, 0.0]),
        running=small,
        guess=shape,
        bounds=to.Bounds(lower_control=-limit, upper_control=limit),
    )


@pytest.mark.slow
def test_a_swing_up_from_a_guess_that_is_no_motion_and_many_at_once():
    solve = lambda limit: to.ilqr(swing_up(limit=limit), intervals=60)
    limits = jnp.array([5.0, 6.0, 8.0])
    many = jax.jit(jax.vmap(solve))(limits)
    assert (many.status == SolveStatus.SOLVED).all()
    assert (np.abs(many.u).max((1, 2)) <= limits).all()
    np.testing.assert_allclose(many.x[:, -1], np.broadcast_to([np.pi, 0], (3, 2)), atol=1e-6)
    np.testing.assert_allclose(solve(5.0).cost, many.cost[0], rtol=1e-9)
    np.testing.assert_allclose(many.cost[1], many.cost[2], rtol=1e-6)  # neither range is reached
    assert many.cost[0] > many.cost[1]
    motion = to.ilqr(swing_up(limit=8.0, guess=1.0), intervals=60, feasible_start=True)
    np.testing.assert_allclose(motion.cost, many.cost[2], rtol=1e-5)
    lost = solve(3.0)  # three seconds are short for so weak a motor from this guess
    assert lost.status == SolveStatus.INFEASIBLE
    assert lost.violations()[0].name == "end"


@pytest.mark.slow
def test_the_derivative_of_the_optimum():
    cost = lambda g, limit: to.ilqr(swing_up(g, limit), intervals=60, tolerance=1e-9).cost
    by_gravity, by_limit = jax.grad(cost, (0, 1))(9.81, 5.0)
    assert by_limit < -0.1  # the range is reached, and costs
    h = 1e-3
    for k, ours in ((0, by_gravity), (1, by_limit)):
        at = lambda s, k=k: cost(*(x + s * (i == k) for i, x in enumerate((9.81, 5.0))))
        difference = (at(h) - at(-h)) / (2 * h)
        assert abs(ours - difference) < 1e-4 * (1 + abs(difference))  # the cost is known to 1e-9 of itself
