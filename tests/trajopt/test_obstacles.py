"""Obstacle avoidance: path constraints of several methods, and violation between nodes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.trajopt import (
    Guess,
    MultipleShooting,
    PathConstraint,
    Problem,
    SolveStatus,
    VectorField,
    draw_guesses,
    ilqr,
    multi_start,
)

CENTRE, RADIUS = np.array([0.5, 0.1]), 0.3


def _point(t, x, u, p):
    return jnp.concatenate([x[2:], u])


def _effort(t, x, u):
    return u @ u


def _distance(t, x, u):
    d = x[:2] - CENTRE
    return jnp.sqrt(d @ d)


def past(side=-1.0) -> Problem:
    """From the origin to (1, 0) in one second, past a disc slightly above the straight line."""
    field = VectorField(_point, ("x", "y", "vx", "vy"), ("fx", "fy"))
    end = jnp.array([1.0, 0.0, 0.0, 0.0])
    middle = jnp.array([0.5, 0.1 + 0.4 * side, 1.0, 0.0])
    guess = Guess(jnp.array([0.0, 0.5, 1.0]), jnp.stack([jnp.zeros(4), middle, end]), jnp.zeros((3, 2)))
    clear = PathConstraint("disc", _distance, lower=RADIUS)
    return Problem(field, 1.0, start=jnp.zeros(4), end=end, running=_effort, path=(clear,), guess=guess)


N = 12


@pytest.fixture(scope="module")
def found():
    """Solutions from a guess above the disc, from one below it, and from six random guesses."""
    above, below = past(side=+1.0), past()
    drawn = draw_guesses(above, jax.random.key(1), 6, spread=0.8, push=0.0, points=3)
    guesses = jax.tree.map(lambda a, b, c: jnp.concatenate([a[None], b[None], c]), above.guess, below.guess, drawn)
    return multi_start(above, guesses, batch=1, transcription=MultipleShooting(), intervals=N)


@pytest.mark.exhaustive
def test_multi_start_finds_shorter_path(found):
    """The path above the disc is longer; a guess above the disc converges to it."""
    assert found.cost.shape == found.status.shape == (8,)
    solved = np.asarray(found.status) == SolveStatus.SOLVED
    assert solved[:2].all()
    assert found.cost[0] > found.cost[1] + 1
    assert found.best.status == SolveStatus.SOLVED
    np.testing.assert_allclose(found.best.cost, found.cost[1], rtol=1e-6)
    np.testing.assert_array_equal(found.best.cost, found.cost[found.index])
    assert (found.cost[solved] >= found.best.cost).all()
    assert found.best.x[N // 2, 1] < 0
    assert np.unique(np.round(np.asarray(found.cost)[solved], 4)).size == 2  # one path or the other


@pytest.mark.exhaustive
def test_obstacle_avoidance_agrees_with_ilqr(found):
    direct, other = found.best, ilqr(past(), intervals=N).checked()
    np.testing.assert_allclose(other.cost, direct.cost, rtol=1e-5)
    np.testing.assert_allclose(other.x, direct.x, atol=1e-3)
    distance = np.linalg.norm(direct.x[:, :2] - CENTRE, axis=1)
    assert distance.min() > RADIUS - 1e-7
    assert (distance < RADIUS + 1e-4).sum() >= 1  # the disc is touched
    assert direct.cost > 12 / (1 - 1 / N**2) * 1.001  # the straight motion costs less
    # between nodes the point follows parabolas, which may penetrate the disc by (v h)^2 / 8 r
    s = np.linspace(0, 1 / N, 21)[:, None, None]
    x, u = np.asarray(direct.x)[:-1], np.asarray(direct.u)[:-1]
    between = np.linalg.norm(x[:, :2] + s * x[:, 2:] + s**2 / 2 * u - CENTRE, axis=2)
    fastest = np.linalg.norm(x[:, 2:], axis=1).max()
    assert RADIUS - (fastest / N) ** 2 / (8 * RADIUS) < between.min() < RADIUS + 1e-7
