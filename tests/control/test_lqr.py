"""Linearisation and linear-quadratic regulators against differences, scipy and integrated Riccati equations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

import jaxdyn as jd
from jaxdyn import control as ct

CART = jd.robots.cart_pole()
PUSH = jnp.array([[1.0], [0.0]])
UPRIGHT = jnp.array([0.0, jnp.pi])
COST = jnp.diag(jnp.array([10.0, 10.0, 1.0, 1.0]))


def cart_matrices(m1=1.0, m2=0.3, l=0.5, g=9.81):
    """A and B of a cart and a point mass on a rod, upright, in closed form; angle from hanging."""
    a, b = np.zeros((4, 4)), np.zeros((4, 1))
    a[:2, 2:] = np.eye(2)
    a[2, 1], a[3, 1] = m2 * g / m1, (m1 + m2) * g / (m1 * l)
    b[2, 0], b[3, 0] = 1 / m1, 1 / (m1 * l)
    return a, b


@eqx.filter_jit
def regulator(model):
    return ct.lqr(model, UPRIGHT, jnp.zeros(2), COST, jnp.eye(1), inputs=PUSH)


@pytest.mark.slow
def test_linearisation_of_a_cart_pole_equals_the_closed_form():
    model = jd.robots.cart_pole(masses=(1.0, 0.3), length=0.5)
    a, b = jax.jit(ct.linearise)(model, UPRIGHT, jnp.zeros(2), jnp.zeros(2), inputs=PUSH)
    want = cart_matrices()
    np.testing.assert_allclose(a, want[0], atol=1e-12)
    np.testing.assert_allclose(b, want[1], atol=1e-12)


@pytest.mark.slow
def test_lqr_of_a_cart_pole_equals_scipy():
    want = cart_matrices()
    result = regulator(jd.robots.cart_pole(masses=(1.0, 0.3), length=0.5))
    cost = scipy.linalg.solve_continuous_are(*want, np.asarray(COST), np.eye(1))
    np.testing.assert_allclose(result.riccati.cost, cost, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(result.law.gain, want[1].T @ cost, rtol=1e-9)
    assert result.riccati.status == ct.RiccatiStatus.SOLVED
    tau = result.law(0.0, UPRIGHT + jnp.array([0.1, -0.2]), jnp.array([0.3, 0.4]))
    np.testing.assert_allclose(tau, [-result.law.gain[0] @ jnp.array([0.1, -0.2, 0.3, 0.4]), 0], atol=1e-12)


@pytest.mark.exhaustive
def test_derivatives_of_the_gain_with_respect_to_the_model():
    gain = lambda m, l: regulator(jd.robots.cart_pole(masses=(1.0, m), length=l)).law.gain[0]
    ours = jax.jit(jax.jacrev(gain, (0, 1)))(0.3, 0.5)

    def exact(m, l):
        a, b = cart_matrices(m2=m, l=l)
        return (b.T @ scipy.linalg.solve_continuous_are(a, b, np.asarray(COST), np.eye(1)))[0]

    h = 1e-5
    np.testing.assert_allclose(ours[0], (exact(0.3 + h, 0.5) - exact(0.3 - h, 0.5)) / (2 * h), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ours[1], (exact(0.3, 0.5 + h) - exact(0.3, 0.5 - h)) / (2 * h), rtol=1e-6, atol=1e-7)


def moving_body():
    """A free body with a damped wheel: coordinates on a Lie group, and passive forces."""
    builder = jd.ModelBuilder().add_link("body", "world", jd.joints.Free(), jd.spatial.box((1.0, 2.0, 3.0), mass=2.0))
    wheel = jd.spatial.box((0.5, 0.5, 0.1), mass=0.4)
    axis, place = jd.joints.Revolute((0, 0, 1)), (0.3, 0.1, 0.5)
    return builder.add_link("wheel", "body", axis, wheel, translation=place, damping=0.7).build()


@pytest.mark.exhaustive
def test_linearisation_of_rotations_in_the_tangent_space():
    model = moving_body()
    rng = np.random.default_rng(1)
    v, tau = jnp.asarray(rng.normal(size=7)), jnp.asarray(rng.normal(size=7))
    q = jd.integrate(model, jd.neutral(model), jnp.asarray(rng.normal(size=7)))
    a, b = jax.jit(ct.linearise)(model, q, v, tau)

    @jax.jit
    def flow(x, u, s):
        """The perturbed state after a time s, in the chart at the unperturbed state."""

        def after(x, u):
            at = jd.integrate(model, q, x[:7])
            acceleration = jd.forward_dynamics(model, at, v + x[7:], tau + u + jd.passive_forces(model, at, v + x[7:]))
            return jd.integrate(model, at, s * (v + x[7:])), v + x[7:] + s * acceleration

        (q0, v0), (q1, v1) = after(jnp.zeros(14), jnp.zeros(7)), after(x, u)
        return jnp.concatenate([jd.difference(model, q0, q1), v1 - v0])

    h, s = 1e-4, 1e-4
    rate = lambda x, u: (flow(x, u, s) - flow(x, u, -s)) / (2 * s)
    for k in range(14):
        e = h * jnp.eye(14)[k]
        difference = (rate(e, jnp.zeros(7)) - rate(-e, jnp.zeros(7))) / (2 * h)
        np.testing.assert_allclose(a[:, k], difference, atol=1e-5)  # rounding over s h, 1e-16 / 1e-8, and h^2
    np.testing.assert_allclose(b[7:], jnp.linalg.inv(jd.mass_matrix(model, q)), atol=1e-10)
    assert not b[:7].any()


def swinging(t):
    return jnp.stack([0.3 * jnp.sin(2 * t), 0.5 * jnp.sin(3 * t)])


@pytest.mark.exhaustive
def test_tracking_gains_solve_the_riccati_differential_equation():
    model = jd.robots.double_pendulum(damping=(0.3, 0.2))
    times = jnp.linspace(0.0, 1.0, 401)
    plan = ct.nominal_plan(model, ct.PathReference(swinging), times)
    r, final = jnp.diag(jnp.array([0.5, 2.0])), 3 * COST
    law = jax.jit(lambda: ct.tracking_lqr(model, plan, COST, r, final))()
    linear = jax.jit(lambda t: _linearise_at(model, plan.motion(model, t)))

    def rate(s, p):
        p = p.reshape(4, 4)
        a, b = map(np.asarray, linear(1.0 - s))
        return (a.T @ p + p @ a - p @ b @ np.linalg.solve(r, b.T) @ p + np.asarray(COST)).ravel()

    exact = scipy.integrate.solve_ivp(rate, (0, 1.0), np.asarray(final).ravel(), rtol=1e-9, atol=1e-10).y[:, -1]
    want = np.linalg.solve(r, np.asarray(linear(0.0)[1]).T @ exact.reshape(4, 4))
    np.testing.assert_allclose(law.gain[0], want, atol=2e-4 * np.abs(want).max())  # second order in 2.5 ms
    q, v, _ = plan.motion(model, 0.5)
    np.testing.assert_allclose(law(0.5, q, v), plan.effort_at(0.5), atol=1e-12)
    dx = jnp.array([0.01, -0.02, 0.1, 0.05])
    tau = plan.effort_at(0.5) - law.gain[200] @ dx
    np.testing.assert_allclose(law(0.5, q + dx[:2], v + dx[2:]), tau, atol=1e-9)


def _linearise_at(model, want):
    efforts = jd.rnea(model, *want) - jd.passive_forces(model, want.q, want.v)
    return ct.linearise(model, want.q, want.v, efforts)
