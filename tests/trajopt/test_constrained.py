"""Motion and contact force planned together: the same optimum as in coordinates without constraint, and limits held."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn._errors import ModelError
from jaxdyn.trajopt import (
    AbstractConstrainedDynamics,
    Bounds,
    Constrained,
    ConstrainedRobot,
    Guess,
    HermiteSimpson,
    MultipleShooting,
    Problem,
    Robot,
    Trapezoidal,
    VectorField,
    partial,
    solve,
)

G = 9.81
END = 1.2


class Bob(AbstractConstrainedDynamics):
    """A pendulum of unit mass and length in Cartesian coordinates, pushed along its circle; the last control is the
    multiplier of `(p.p - 1)/2 = 0`, less the tension."""

    gravity: Any
    state_names: tuple[str, ...] = eqx.field(static=True, default=("x", "y", "vx", "vy"))
    control_names: tuple[str, ...] = eqx.field(static=True, default=("push", "rod"))
    num_forces: int = eqx.field(static=True, default=1)
    num_invariants: int = eqx.field(static=True, default=2)

    def rate(self, t, x, u):
        p, along = x[:2], jnp.stack([-x[1], x[0]])
        return jnp.concatenate([x[2:], u[0] * along + u[1] * p - jnp.stack([0 * x[0], self.gravity])])

    def constrained(self, t, x, u):
        rate, p, v = self.rate(t, x, u), x[:2], x[2:]
        zero = jnp.zeros(2)
        correction = jnp.stack([jnp.concatenate([p, zero]), jnp.concatenate([zero, p])], axis=1)
        return Constrained(rate, (p @ rate[2:] + v @ v)[None], jnp.stack([(p @ p - 1) / 2, p @ v]), correction)


def _push(t, x, u):
    return u[0] ** 2


def _angle(t, x, u, g):
    return jnp.stack([x[1], u[0] - g * jnp.sin(x[0])])


def _cartesian(bounds=None):
    angles = jnp.linspace(0, END, 9)
    x = jnp.stack([jnp.sin(angles), -jnp.cos(angles), 0 * angles, 0 * angles], axis=1)
    guess = Guess(angles / END, x, jnp.tile(jnp.array([0.0, -G]), (9, 1)))
    start = jnp.array([0.0, -1.0, 0.0, 0.0])
    end = partial([np.sin(END), 0.0], [0, 2])
    return Problem(Bob(jnp.asarray(G)), 1.0, start=start, end=end, running=_push, bounds=bounds, guess=guess)


@pytest.mark.wide
@pytest.mark.slow
def test_a_pendulum_on_its_circle_is_that_in_its_angle():
    polar = VectorField(_angle, ("angle", "rate"), ("push",), jnp.asarray(G))
    angle = solve(Problem(polar, 1.0, start=jnp.zeros(2), end=jnp.array([END, 0.0]), running=_push), intervals=16)
    for transcription, error in ((HermiteSimpson(), 2e-5), (Trapezoidal(), 2e-2)):
        found = solve(_cartesian(), transcription=transcription, intervals=16).checked()
        np.testing.assert_allclose(found.cost, angle.cost, rtol=error)
        assert np.abs(np.sum(found.x[:, :2] ** 2, axis=1) - 1).max() < 1e-9
        assert np.abs(np.sum(found.x[:, :2] * found.x[:, 2:], axis=1)).max() < 1e-9
        tension = np.sum(found.x[:, 2:] ** 2, axis=1) - G * np.asarray(found.x[:, 1])
        np.testing.assert_allclose(found.u[:, 1], -tension, atol=1e-8)


@pytest.mark.slow
def test_a_force_limit_holds_along_the_plan():
    free = solve(_cartesian(), intervals=16)
    least = float(free.u[:, 1].min()) + 0.5  # the rod bears half a newton less than it would
    bounds = Bounds(lower_control=jnp.array([-jnp.inf, least]), upper_control=jnp.inf)
    found = solve(_cartesian(bounds), intervals=16).checked()
    assert found.u[:, 1].min() >= least - 1e-7
    assert found.cost > free.cost


def _wall(p):
    return p[0] - 0.6


def _on_wall():
    model = jd.robots.double_pendulum()
    return model, jc.OnSurface("wall", jc.End("lower", (0.0, 0.0, -1.0)), _wall)


@pytest.mark.slow
def test_a_constrained_robot_moves_as_constrained_dynamics_say():
    model, wall = _on_wall()
    robot = ConstrainedRobot(model, wall)
    assert robot.control_names == ("upper_joint", "lower_joint", "wall.0")
    q = jc.assemble(model, wall, jnp.array([-0.2, 1.2])).checked().q
    v = jnp.array([0.4, -0.3])
    tau = jnp.array([3.0, -2.0])
    d = jc.constrained_dynamics(model, wall, q, v, tau)
    x, u = jnp.concatenate([q, v]), jnp.concatenate([tau, d.multipliers])
    seen = jax.jit(lambda x, u: robot.constrained(0.0, x, u))(x, u)
    np.testing.assert_allclose(seen.rate, jnp.concatenate([v, d.a]), atol=1e-10)
    np.testing.assert_allclose(seen.forces, 0, atol=1e-10)
    np.testing.assert_allclose(seen.invariants[0], 0, atol=1e-10)


@pytest.mark.slow
def test_a_robot_with_closures_says_the_same_with_unknowns():
    """The residual is zero at the accelerations along the closures, and regular in them."""
    m = jd.robots.four_bar()
    robot = Robot(m)
    assert not robot.affine

    @jax.jit
    def said(x, u):
        y = robot.unknowns(0.0, x, u)
        rate, residual = robot.implicit(0.0, x, u, y)
        slope = jax.jacfwd(lambda y: robot.implicit(0.0, x, u, y)[1])(y)
        return rate - robot.rate(0.0, x, u), residual, slope

    x = jnp.concatenate([jd.neutral(m), jnp.zeros(m.nv)])
    difference, residual, slope = said(x, jnp.ones(robot.nu))
    np.testing.assert_allclose(difference, 0, atol=1e-12)
    np.testing.assert_allclose(residual, 0, atol=1e-9)
    assert abs(jnp.linalg.det(slope)) > 1e-6


@pytest.mark.slow
def test_dependent_rows_are_left_out():
    model = jd.robots.four_bar()
    robot = ConstrainedRobot(model, jc.described_constraints(model))
    assert robot.num_forces == 2  # of the five rows of a hinge
    assert robot.num_invariants == 4


def test_shooting_refuses_unknown_forces():
    with pytest.raises(ModelError, match="Bob"):
        solve(_cartesian(), transcription=MultipleShooting(), intervals=4)
