"""Derivatives of implicit dynamics equal the derivatives of their rate; batched solves equal single solves."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.simulation import Feedback, System, Wrench
from jaxdyn.trajopt import ConstrainedRobot, Guess, PathConstraint, Problem, Robot, Trapezoidal, solve
from jaxdyn.trajopt.interior_point._program import Program

from .problems import cart_pole


def _running(t, x, u):
    return t * jnp.sum(u**2) * jnp.cos(x[0]) + jnp.sum(x**4)


def _path(t, x, u):
    return jnp.stack([jnp.sin(x[0]) * u[0], t**2 + x[-1] ** 3])


def _law(t, q, v):
    return jnp.sin(3 * t) * v**2 - jnp.cos(q)


def check_derivatives(dynamics, seed=0):
    """First and second derivatives against direct differentiation of the rate."""
    problem = Problem(dynamics, 1.0, running=_running, path=[PathConstraint("path", _path)])
    program = Program(problem, Trapezoidal(), jnp.linspace(0, 1, 3))
    size = jax.eval_shape(program.point, jnp.zeros(1 + problem.nx + problem.nu)).shape
    rng = np.random.default_rng(seed)

    @functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": "0"})  # run three times only
    def both(p, w):
        at = program._linearise_point(p)
        hessian, repeated = (
            program._weighted_hessian(at, w),
            jax.jacrev(lambda p: w @ program._linearise_point(p).jacobian)(p),
        )
        direct = program.point(p), jax.jacfwd(program.point)(p), jax.hessian(lambda p: w @ program.point(p))(p)
        return (at.value, at.jacobian, hessian, repeated), (*direct, direct[-1])

    for _ in range(3):
        p, w = rng.normal(size=1 + problem.nx + problem.nu), rng.normal(size=size)
        found, expected = both(p, w)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max())


@pytest.mark.exhaustive
def test_implicit_derivatives_of_a_robot_with_feedback_and_wrench():
    model = jd.robots.cart_pole()
    parts = (Feedback(_law), Wrench(model.link_names[-1], jnp.array([0.1, -0.2, 0.3, 1.0, 2.0, -3.0])))
    check_derivatives(Robot(System(model, parts), actuated=(model.joint_names[0],)))


def _wall(p):
    return p[0] ** 2 - 0.6


@pytest.mark.exhaustive
def test_implicit_derivatives_of_a_constrained_robot():
    model = jd.robots.double_pendulum()
    check_derivatives(ConstrainedRobot(model, jc.OnSurface("wall", jc.End("lower", (0.0, 0.0, -1.0)), _wall)))


@pytest.mark.exhaustive
def test_batched_solves_equal_single_solves():
    problem = cart_pole()
    ends = jnp.stack([problem.start.value, problem.end.value])

    def one(push):
        x = jnp.stack([ends[0], ends.mean(0) + push, ends[1]])
        found = solve(problem.with_guess(Guess(jnp.array([0.0, 0.5, 1.0]), x, jnp.zeros((3, 1)))), intervals=12)
        return found.cost, found.status, found.iterations, found.x

    pushes = jnp.asarray(np.random.default_rng(1).normal(size=(4, problem.nx)) * 0.4)
    batch, single = jax.jit(jax.vmap(one))(pushes), jax.jit(one)
    for k, push in enumerate(pushes):
        for a, b in zip(batch, single(push), strict=True):
            np.testing.assert_allclose(a[k], b, atol=1e-7)
