"""Transcriptions: closed-form optima, infeasible problems, guesses that are far off."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn._errors import ConvergenceError, ModelError
from jaxdyn.trajopt import (
    Bounds,
    Guess,
    HermiteSimpson,
    MultipleShooting,
    PathConstraint,
    SolveStatus,
    Trapezoidal,
    solve,
)

from .problems import cart_pole, minimum_time, push

COST = 12 * 2.0**2 * 1.5**2 / 1.2**3


@pytest.mark.slow
def test_double_integrator_has_closed_form_optimum():
    found = solve(push(), intervals=6).checked()
    np.testing.assert_allclose(found.cost, COST, rtol=1e-10)
    t = np.asarray(found.t)
    np.testing.assert_allclose(found.u[:, 0], 6 * 2.0 * 1.5 * (1.2 - 2 * t) / 1.2**3, atol=1e-7)
    s = t / 1.2
    np.testing.assert_allclose(found.x[:, 0], 1.5 * (3 * s**2 - 2 * s**3), atol=1e-9)
    assert found.run_seconds > 0
    assert found.compile_seconds > 0
    assert solve(push(mass=3.0), intervals=6).compile_seconds == 0


@pytest.mark.slow("linear")
@pytest.mark.parametrize(
    ("transcription", "error"),
    [
        (HermiteSimpson(separated=False), 1e-9),
        (MultipleShooting(linear=True), 1e-9),
        (MultipleShooting(steps=2), 0.03),  # piecewise constant controls
    ],
    ids=("compressed", "linear", "constant"),
)
def test_transcriptions_agree(transcription, error):
    found = solve(push(), transcription=transcription, intervals=6).checked()
    np.testing.assert_allclose(found.cost, COST, rtol=error)
    assert np.abs(found.x[-1] - np.array([1.5, 0])).max() < 1e-8


@pytest.mark.slow
def test_trapezoidal_optimum_equals_quadratic_program():
    n, h, m = 6, 0.2, 2.0
    u = np.eye(n + 1)
    v = np.concatenate([np.zeros((1, n + 1)), np.cumsum(h / (2 * m) * (u[1:] + u[:-1]), axis=0)])
    p = h / 2 * (v[1:] + v[:-1]).sum(0)
    weights = np.full(n + 1, h)
    weights[[0, -1]] /= 2
    A, b = np.stack([p, v[-1]]), np.array([1.5, 0.0])
    least = b @ np.linalg.solve(A / weights @ A.T, b)
    found = solve(push(), transcription=Trapezoidal(), intervals=n).checked()
    np.testing.assert_allclose(found.cost, least, rtol=1e-9)
    assert abs(least - COST) < 0.12 * COST


@pytest.mark.slow
def test_minimum_time_is_bang_bang():
    found = solve(minimum_time(), intervals=8).checked()  # the switch is at a node
    np.testing.assert_allclose(found.duration, 2 * np.sqrt(2.0 * 1.5 / 3.0), rtol=1e-7)
    np.testing.assert_allclose(np.abs(found.details.middle), 3.0, atol=1e-3)


@pytest.mark.exhaustive
def test_minimum_time_converges_from_random_guesses():
    """Random states, controls and horizons: many of these guesses need the restoration phase."""
    most = 0
    for seed in range(40):
        draw = np.random.default_rng(seed)
        x, u = draw.normal(size=(2, 2)) * 20, draw.uniform(-3, 3, size=(2, 1))
        p = minimum_time().with_guess(Guess(jnp.array([0.0, 1.0]), jnp.asarray(x), jnp.asarray(u)))
        p = eqx.tree_at(lambda p: p.duration, p, jnp.asarray(10.0 ** draw.uniform(-1.5, 1.5)))
        found = solve(p, intervals=8).checked()
        np.testing.assert_allclose(found.duration, 2 * np.sqrt(2.0 * 1.5 / 3.0), rtol=1e-7)
        most = max(most, int(found.iterations))
    assert 20 < most < 100


def _speed(t, x, u):
    return x[1]


def _limited(speed=np.inf, slowest=-np.inf, force=np.inf, fastest=np.inf, rate=np.inf):
    path = (PathConstraint("speed", _speed, lower=slowest, upper=speed),)
    return push(path=path, bounds=Bounds(None, np.array([np.inf, fastest]), -force, force, np.array([rate])))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "name"),
    [
        ({"force": 1.0}, "end"),
        ({"speed": 0.5}, "end"),
        ({"rate": 5.0}, "end"),
        ({"fastest": 0.5}, "end"),
        ({"slowest": 0.2}, "start"),
    ],
    ids=("force", "speed", "rate", "state", "path"),
)
def test_infeasible_problem_names_violated_constraint(limits, name):
    found = solve(_limited(**limits), intervals=12, max_iterations=150)
    assert found.status == SolveStatus.INFEASIBLE
    assert np.isfinite(found.x).all()
    assert found.violation > 0.02
    worst = found.violations()[0]
    assert worst.amount == pytest.approx(float(found.violation))
    assert name in {v.name for v in found.violations() if v.amount > 0.02}
    with pytest.raises(ConvergenceError, match=worst.name):
        found.checked()


@pytest.mark.slow
def test_status_of_numbers_that_are_not_finite():
    for p in (push(mass=0.0), push(mass=np.nan), push(distance=np.inf)):
        found = solve(p, intervals=6)
        assert found.status == SolveStatus.NOT_FINITE
        assert np.isfinite(found.x).all() and np.isfinite(found.u).all()


@pytest.mark.slow
def test_path_constraints_and_rate_bounds_are_satisfied():
    found = solve(_limited(speed=1.6, rate=100.0), intervals=12, max_iterations=150).checked()
    assert found.x[:, 1].max() <= 1.6 + 1e-7
    assert found.x[:, 1].max() > 1.6 - 1e-3
    assert found.cost > COST
    assert np.abs(np.diff(found.u[:, 0]) / np.diff(found.t)).max() <= 100 + 1e-6


@pytest.mark.exhaustive
def test_status_of_bad_guesses():
    p = cart_pole()

    def attempt(x, u):
        guess = Guess(jnp.array([0.0, 1.0]), jnp.stack([jnp.zeros(4), x]), jnp.stack([u, u]))
        found = solve(p.with_guess(guess), intervals=10, max_iterations=60)
        return found.status, found.iterations, found.x, found.u, found.cost, found.violation, found.optimality

    ends = jnp.array([[1.0, np.pi, 0, 0], [1e3, -50.0, 1e2, 1e2], [np.nan, 0, 0, 0], [np.inf, 0, 0, 0]])
    status, iterations, *numbers = jax.jit(jax.vmap(attempt))(ends, jnp.zeros((4, 1)))
    assert status[0] == SolveStatus.SOLVED
    assert (status[2:] == SolveStatus.NOT_FINITE).all()
    assert iterations.max() <= 60
    assert all(jnp.isfinite(x).all() for x in numbers)


def test_rate_bounds_of_piecewise_constant_controls_are_rejected():
    with pytest.raises(ModelError, match="linear=True"):
        solve(push(bounds=Bounds(control_rate=1.0)), transcription=MultipleShooting(), intervals=2)
