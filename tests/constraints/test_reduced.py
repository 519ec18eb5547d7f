"""Reduced and task-space dynamics, against the solution with multipliers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
import jaxdyn.constraints as jc

solve = jax.jit(jc.constrained_dynamics)


@pytest.mark.slow
def test_slider_crank_in_the_angle_of_its_crank():
    """q = 0 at the crank angle 1; the rod is at the angle `asin(-r sin t / l)`."""
    r, l = 0.2, 0.5
    model = jd.robots.slider_crank((r, l), crank=1.0)
    loop = jc.described_constraints(model)

    def chart(y):
        t = 1.0 + y[0]
        rod = lambda t: -jnp.arcsin(r * jnp.sin(t) / l)
        reach = lambda t: r * jnp.cos(t) + jnp.sqrt(l**2 - (r * jnp.sin(t)) ** 2)
        return jnp.stack([y[0], rod(t) - t - rod(1.0) + 1.0, reach(t) - reach(1.0)])

    y, ydot, tau = jnp.array([0.8]), jnp.array([3.0]), jnp.array([1.0, 0.4, -2.0])
    got = jax.jit(lambda y, ydot, tau: jc.reduced_dynamics(model, chart, y, ydot, tau))(y, ydot, tau)
    full = solve(model, loop, got.q, got.v, tau)
    assert int(full.rank) == 2
    assert_allclose(got.a, full.a, rtol=1e-10)
    assert_allclose(got.acceleration, full.a[:1], rtol=1e-10)
    power = 0.5 * got.inertia[0, 0] * ydot[0] ** 2
    assert_allclose(power, jd.kinetic_energy(model, got.q, got.v), rtol=1e-12)


@pytest.mark.exhaustive
def test_chart_on_rotations():
    """A gripped free body with the coordinates of the arm as chart, which includes quaternions."""
    base = jd.robots.double_pendulum()
    body = jd.spatial.Inertia(1.5, jnp.array([0.1, 0.0, 0.2]), jnp.diag(jnp.array([0.1, 0.2, 0.25])))
    model, constraints = jc.gripping_load(base, base.link_names[-1], body)

    def chart(y):
        return jc.carried_state(model, constraints, y, jnp.zeros(2))[0]

    y, ydot = jnp.array([0.6, -0.9]), jnp.array([1.0, 2.0])
    tau = jnp.asarray(np.random.default_rng(0).normal(size=8))
    got = jax.jit(lambda y, ydot, tau: jc.reduced_dynamics(model, chart, y, ydot, tau))(y, ydot, tau)
    q, v = jc.carried_state(model, constraints, y, ydot)
    assert_allclose(got.q, q, atol=1e-14)
    assert_allclose(got.v, v, atol=1e-12)
    assert_allclose(got.a, solve(model, constraints, q, v, tau).a, atol=1e-9)


def test_invalid_chart_raises():
    model = jd.robots.double_pendulum()
    with pytest.raises(jd.ShapeError, match="chart"):
        jc.reduced_dynamics(model, lambda y: y[:1], jnp.zeros(2), jnp.zeros(2), jnp.zeros(2))


task = jax.jit(jc.constrained_task_space_dynamics, static_argnames="name")


@pytest.mark.slow
def test_task_space_without_constraints_equals_the_unconstrained_one():
    model = jd.robots.panda()
    rng = np.random.default_rng(1)
    q, v = jnp.asarray(rng.normal(size=7)), jnp.asarray(rng.normal(size=7))
    name = model.link_names[-1]
    want, got = jd.task_space_dynamics(model, q, v, name), task(model, (), q, v, name=name)
    assert_allclose(got.inertia, want.inertia, rtol=1e-8, atol=1e-9)
    assert_allclose(got.bias, want.bias, rtol=1e-8, atol=1e-8)
    assert got.full_rank == want.full_rank == 1


@pytest.mark.exhaustive
def test_task_space_dynamics_of_a_five_bar():
    """The force `F = Lambda Vdot + eta` at the tool produces the motion of the constrained robot."""
    model = jd.robots.five_bar()
    loop = jc.described_constraints(model)
    q = jd.neutral(model)
    v, _ = jax.jit(jc.impulse)(model, loop, q, jnp.array([1.0, -0.5, 0.3, 0.2]))

    @jax.jit
    def tool_dynamics(q, v):
        def inertia_sum(q):
            d = jc.constrained_task_space_dynamics(model, loop, q, v, "tool")
            return d.inertia.sum(), d

        gradient, d = jax.grad(inertia_sum, has_aux=True)(q)
        return d, jd.jacobian_derivative(model, q, v, "tool") @ v, gradient

    got, drift, gradient = tool_dynamics(q, v)
    assert got.full_rank == 0
    assert np.linalg.matrix_rank(got.inertia, tol=1e-9) == 2
    push = jnp.array([0.0, 0, 0.7, 2.0, -3.0, 0.0])  # at the tool, in its axes
    a = solve(model, loop, q, v, got.jacobian.T @ push).a
    # the part of the force that accelerates the tool
    effective = got.inertia @ (got.jacobian @ a + drift) + got.bias
    again = solve(model, loop, q, v, got.jacobian.T @ effective).a
    assert_allclose(again, a, atol=1e-9)
    assert np.isfinite(gradient).all()
