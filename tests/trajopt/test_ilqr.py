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
from jaxdyn.trajopt.ilqr._backward_pass import solve_bounded
from jaxdyn.trajopt.ilqr._stage import Expansion

from .problems import cart_pole

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


@pytest.mark.slow
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
def test_control_limits_and_terminal_conditions_agree_with_a_quadratic_program():
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
def test_infeasible_problems_report_the_violated_constraint():
    found = to.ilqr(double_integrator(0.5, running=small, end=jnp.zeros(2)), intervals=20, max_iterations=200)
    assert found.status != SolveStatus.SOLVED
    assert np.isfinite(found.cost)
    worst = found.violations()[0]
    assert worst.name == "end"
    assert worst.time == 2.0
    with pytest.raises(ConvergenceError, match="end, position"):
        found.checked()
    broken = to.ilqr(eqx.tree_at(lambda p: p.start.value, box_problem(), jnp.array([jnp.nan, 0.0])), intervals=20)
    assert broken.status == SolveStatus.NOT_FINITE
    assert np.isfinite(broken.x).all()
    with pytest.raises(ModelError, match="fixes controls at the ends"):
        to.ilqr(double_integrator(running=small, end_control=[0.0]), intervals=20)


def random_stages(rng, n, nx, nu):
    """A linear-quadratic problem with gaps: expansions of the intervals and of the end, gaps, and room for controls."""
    root = rng.normal(size=(n + 1, nx + nu, nx + nu))
    hessian = root @ np.swapaxes(root, 1, 2) + 0.1 * np.eye(nx + nu)
    gradient, jacobian = rng.normal(size=(n + 1, nx + nu)), rng.normal(size=(n, nx, nx + nu))
    zero = np.zeros(n)
    stages = Expansion(zero, gradient[:n], hessian[:n], np.zeros((n, nx)), jacobian)
    end = Expansion(np.zeros(()), gradient[n, :nx], hessian[n, :nx, :nx], np.zeros(nx), None)
    low, high = -rng.uniform(0, 2, size=(n, nu)), rng.uniform(0, 2, size=(n, nu))
    return stages, end, rng.normal(size=(n, nx)), (low, high)


def condensed(stages, end, gaps, nu):
    """The same as a function of the controls alone: Hessian and gradient."""
    n, nx = gaps.shape
    by_u, drift = np.zeros((nx, n * nu)), np.zeros(nx)
    hessian, gradient = np.zeros((n * nu,) * 2), np.zeros(n * nu)
    for k in range(n):
        rows = np.vstack([by_u, np.eye(n * nu)[k * nu : (k + 1) * nu]])
        at = np.r_[drift, np.zeros(nu)]
        hessian += rows.T @ stages.hessian[k] @ rows
        gradient += rows.T @ (stages.hessian[k] @ at + stages.gradient[k])
        by_u, drift = stages.jacobian[k] @ rows, stages.jacobian[k] @ at + gaps[k]
    return hessian + by_u.T @ end.hessian @ by_u, gradient + by_u.T @ (end.hessian @ drift + end.gradient)


@pytest.mark.slow
def test_active_set_agrees_with_a_quadratic_program():
    rng = np.random.default_rng(0)
    n, nx, nu = 6, 3, 2
    solve = jax.jit(solve_bounded)
    count = 0
    for _ in range(10):
        stages, end, gaps, room = random_stages(rng, n, nx, nu)
        gains, line, held = solve(*jax.tree.map(jnp.asarray, (stages, end, gaps, room)), jnp.zeros((n, nu), int), 0.0)
        hessian, gradient = condensed(stages, end, gaps, nu)
        root = np.linalg.cholesky(hessian)
        bounds = room[0].ravel(), room[1].ravel()
        best = scipy.optimize.lsq_linear(root.T, -np.linalg.solve(root, gradient), bounds, tol=1e-14, method="bvls")
        np.testing.assert_allclose(line.du.ravel(), best.x, atol=1e-9)
        pull = (hessian @ best.x + gradient).reshape(n, nu)
        np.testing.assert_allclose(line.pull, pull, atol=1e-8)
        np.testing.assert_array_equal(np.asarray(held) != 0, np.abs(pull) > 1e-8)
        assert not gains.bad
        count += int(np.sum(held != 0))
    assert 20 < count < 100
    indefinite = stages._replace(hessian=stages.hessian - 1e3 * np.eye(nx + nu))
    assert solve(*jax.tree.map(jnp.asarray, (indefinite, end, gaps, room)), jnp.zeros((n, nu), int), 0.0)[0].bad


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


@pytest.mark.exhaustive
def test_swing_up_from_an_infeasible_guess_and_in_a_batch():
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


def _two_joints(t, x, u, light):
    """A heavy joint that carries one of a hundredth of its inertia, both with dry friction."""
    q, v = x[:2], x[2:]
    both = light * jnp.cos(q[0] - q[1]) / 2
    mass = jnp.stack([jnp.stack([1 + light, both]), jnp.stack([both, light])])
    bias = 9.81 * jnp.stack([jnp.sin(q[0]), light * jnp.sin(q[1])]) + 0.3 * jnp.tanh(v / 0.2)
    return jnp.concatenate([v, jnp.linalg.solve(mass, u - bias)])


@pytest.mark.slow
def test_gaps_of_a_light_joint_with_friction_close():
    """Its costates are a thousandth of those of the heavy joint; weighed alike, its gaps make all steps short."""
    dynamics = to.VectorField(_two_joints, ("q1", "q2", "v1", "v2"), ("u1", "u2"), jnp.asarray(0.01))
    limit = jnp.array([16.0, 0.6])
    ends = {"start": jnp.zeros(4), "end": jnp.array([1.0, -1.5, 0.0, 0.0])}
    bounds = to.Bounds(lower_control=-limit, upper_control=limit)
    found = to.ilqr(to.Problem(dynamics, 0.6, running=small, bounds=bounds, **ends), intervals=50).checked()
    assert found.iterations < 23
    assert found.violation < 1e-8
    x, h = np.zeros(4), 0.6 / 50  # the motion under these controls, by Runge-Kutta steps written again
    rate = jax.jit(lambda x, u: _two_joints(0.0, x, u, 0.01))
    for u in np.asarray(found.u[:-1]):
        a = rate(x, u)
        b = rate(x + h / 2 * a, u)
        c = rate(x + h / 2 * b, u)
        x = x + h / 6 * (a + 2 * b + 2 * c + rate(x + h * c, u))
    np.testing.assert_allclose(x, found.x[-1], atol=1e-6)


@pytest.mark.exhaustive
def test_derivative_of_the_optimum():
    cost = lambda g, limit: to.ilqr(swing_up(g, limit), intervals=60, tolerance=1e-9).cost
    by_gravity, by_limit = jax.grad(cost, (0, 1))(9.81, 5.0)
    assert by_limit < -0.1  # the range is reached, and costs
    h = 1e-3
    for k, ours in ((0, by_gravity), (1, by_limit)):
        at = lambda s, k=k: cost(*(x + s * (i == k) for i, x in enumerate((9.81, 5.0))))
        difference = (at(h) - at(-h)) / (2 * h)
        assert abs(ours - difference) < 1e-4 * (1 + abs(difference))  # the cost is known to 1e-9 of itself


@pytest.mark.exhaustive
def test_second_derivatives_reach_the_optimum_of_multiple_shooting():
    problem = cart_pole()
    found = to.ilqr(problem, intervals=40, second_order=True)
    other = to.solve(problem, transcription=to.MultipleShooting(), intervals=40)
    assert found.status == SolveStatus.SOLVED
    assert found.iterations < 35
    np.testing.assert_allclose(found.cost, other.cost, rtol=1e-8)
    np.testing.assert_allclose(found.x, other.x, atol=1e-5)
    np.testing.assert_allclose(found.u, other.u, atol=1e-4)
    np.testing.assert_allclose(found.x[-1], [1, np.pi, 0, 0], atol=1e-6)


def hurried_swing(numbers):
    """A swing-up in which the range of the control, that of the speed and the end bind."""
    gravity, limit, speed, angle = numbers
    problem = swing_up(gravity, limit)
    turn = eqx.tree_at(lambda p: p.end.value, problem, jnp.stack([angle, 0.0 * angle]))
    return eqx.tree_at(lambda p: p.bounds.upper_state, turn, jnp.stack([jnp.inf, speed]))


@pytest.mark.exhaustive
def test_derivative_of_the_trajectory():
    solve = lambda y: to.ilqr(hurried_swing(y), intervals=40, tolerance=1e-11, second_order=True)
    moves = lambda y: (lambda r: (r.cost, r.x, r.u, r.status))(solve(y))
    numbers = jnp.array([9.81, 5.5, 4.5, np.pi])
    run = jax.jit(moves)
    _, x, u, status = run(numbers)
    assert status == SolveStatus.SOLVED
    assert (np.abs(u) >= 5.5).sum() > 0
    assert (x[:, 1] > 4.5 - 1e-9).sum() > 0
    exact = jax.jit(jax.jacfwd(lambda y: moves(y)[:3]))(numbers)
    h = 1e-5
    for k in range(4):
        above, below = run(numbers.at[k].add(h)), run(numbers.at[k].add(-h))
        for ours, a, b in zip(exact, above, below, strict=False):
            difference = (a - b) / (2 * h)
            np.testing.assert_allclose(ours[..., k], difference, atol=1e-5 * (1 + np.abs(difference).max()))
    back = jax.jit(jax.grad(lambda y: jnp.sum(jnp.sin(moves(y)[1]))))(numbers)
    np.testing.assert_allclose(back, np.einsum("ij,ijk->k", np.cos(x), exact[1]), rtol=1e-8)
