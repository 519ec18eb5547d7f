"""Joint-space laws: error dynamics, references, and simulated closed loops."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxdyn as jd
from jaxdyn import control as ct
from jaxdyn._errors import ShapeError

ARM = jd.robots.double_pendulum(damping=(0.3, 0.2))
KP, KD = jnp.array([30.0, 20.0]), jnp.array([8.0, 5.0])
TIMES = jnp.linspace(0.0, 2.0, 41)


def swing(t):
    return jnp.stack([jnp.sin(2 * t), 0.5 * jnp.cos(3 * t)])


def swing_rates(t):
    return (
        np.array([np.sin(2 * t), 0.5 * np.cos(3 * t)]),
        np.array([2 * np.cos(2 * t), -1.5 * np.sin(3 * t)]),
        np.array([-4 * np.sin(2 * t), -4.5 * np.cos(3 * t)]),
    )


@eqx.filter_jit
def acceleration(law, t, q, v):
    tau = law(t, q, v) + jd.passive_forces(ARM, q, v)
    return jd.forward_dynamics(ARM, q, v, tau), jd.mass_matrix(ARM, q)


STATES = [(0.3, np.array([0.2, -0.4]), np.array([1.0, -0.5])), (1.1, np.array([-2.0, 3.0]), np.array([-3.0, 2.0]))]


@pytest.mark.slow
@pytest.mark.parametrize(("t", "q", "v"), STATES)
def test_laws_have_their_error_dynamics(t, q, v):
    qd, vd, ad = swing_rates(t)
    e, rate = qd - q, vd - v
    t = jnp.asarray(t)  # an array, so that both states share one compilation
    reference = ct.PathReference(swing)
    a, _ = acceleration(ct.ComputedTorque(ARM, reference, KP, KD), t, q, v)
    np.testing.assert_allclose(a, ad + KD * rate + KP * e, atol=1e-10)
    a, mass = acceleration(ct.StateFeedforward(ARM, reference, KP, KD), t, q, v)
    np.testing.assert_allclose(mass @ (a - ad), KD * rate + KP * e, atol=1e-10)
    a, _ = acceleration(ct.ReferenceFeedforward(ARM, reference, KP, KD), t, qd, vd)
    np.testing.assert_allclose(a, ad, atol=1e-10)
    a, _ = acceleration(ct.GravityPD(ARM, jnp.asarray(qd), KP, KD), t, qd, 0 * vd)
    np.testing.assert_allclose(a, 0, atol=1e-10)


@pytest.mark.slow
def test_gains_are_scalars_vectors_or_matrices():
    t, q, v = STATES[0][0], *map(jnp.asarray, STATES[0][1:])
    rows = ct.ComputedTorque(ARM, ct.PathReference(swing), 3.0 * jnp.ones(2), jnp.ones(2))(t, q, v)
    number = ct.ComputedTorque(ARM, ct.PathReference(swing), 3.0, 1.0)(t, q, v)
    matrix = ct.ComputedTorque(ARM, ct.PathReference(swing), 3.0 * jnp.eye(2), jnp.eye(2))(t, q, v)
    np.testing.assert_allclose([number, matrix], [rows, rows], atol=1e-12)


def test_types_of_references():
    t = 0.7
    want = swing_rates(t)
    given = [
        ct.PathReference(swing),
        lambda t: (swing(t), jnp.stack([2 * jnp.cos(2 * t), -1.5 * jnp.sin(3 * t)]), -swing(t) * jnp.array([4.0, 9.0])),
    ]
    for reference in given:
        for ours, exact in zip(ct.desired_motion(ARM, reference, t), want, strict=True):
            np.testing.assert_allclose(ours, exact, atol=1e-12)
    rest = ct.desired_motion(ARM, jnp.ones(2), t)
    np.testing.assert_array_equal(np.stack(rest), [[1, 1], [0, 0], [0, 0]])
    line = diffrax.LinearInterpolation(jnp.array([0.0, 1.0]), jnp.array([[0.0, 0.0], [1.0, -2.0]]))
    law = ct.ComputedTorque(ARM, line, 1.0, 1.0)
    np.testing.assert_allclose(ct.desired_motion(ARM, law.reference, t).v, [1, -2], atol=1e-12)
    with pytest.raises(ShapeError, match=r"q of the reference has shape \(3,\)"):
        ct.desired_motion(ARM, jnp.ones(3), t)


@pytest.mark.slow
def test_references_on_the_rotation_manifold():
    free = (
        jd.ModelBuilder().add_link("body", "world", jd.joints.Free(), jd.spatial.box((1.0, 2.0, 3.0), mass=1.0)).build()
    )
    w = jnp.array([0.3, -0.2, 0.5, 1.0, 0.0, 2.0])
    path = lambda t: jd.integrate(free, jd.neutral(free), t * w)
    q, v, a = ct.desired_motion(free, ct.PathReference(path), 0.8)
    np.testing.assert_allclose(v, w, atol=1e-12)
    np.testing.assert_allclose(a, 0, atol=1e-12)
    times = jnp.linspace(0.0, 1.0, 5)
    plan = ct.nominal_plan(free, ct.PathReference(path), times)
    np.testing.assert_allclose(plan.motion(free, 0.8).q, q, atol=1e-12)
    np.testing.assert_allclose(plan.motion(free, 0.8).v, w, atol=1e-12)


@pytest.mark.slow
def test_plans_are_hermite_polynomials():
    plan = ct.nominal_plan(ARM, ct.PathReference(swing), TIMES)
    for t in (0.0, 0.333, 1.25, 2.0):
        q, v, a = plan.motion(ARM, t)
        want = swing_rates(t)
        assert np.abs(q - want[0]).max() < 4e-7  # h^4 / 384 times the fourth derivative, 40
        assert np.abs(v - want[1]).max() < 4e-5
        assert np.abs(a - want[2]).max() < 1e-2
        exact = jd.rnea(ARM, *map(jnp.asarray, want)) - jd.passive_forces(ARM, *map(jnp.asarray, want[:2]))
        assert np.abs(plan.effort_at(t) - exact).max() < 0.03  # h^2 / 8 times the second derivative
    after = plan.motion(ARM, 5.0)
    np.testing.assert_allclose(after.q, swing(2.0), atol=1e-12)
    assert not after.v.any()
    with pytest.raises(ShapeError, match="same number in each table"):
        ct.Plan(TIMES, jnp.zeros((3, 2)), jnp.zeros((3, 2)), jnp.zeros((3, 2)))


def simulate_law(law):
    return jd.simulate(ARM, jnp.array([0.3, 0.1]), jnp.array([1.0, 0.0]), TIMES, effort=law)


@pytest.mark.slow
def test_computed_torque_gives_linear_error_dynamics():
    path = simulate_law(ct.ComputedTorque(ARM, ct.PathReference(swing), 25.0, 10.0))
    target = np.array([swing_rates(t)[:2] for t in np.asarray(TIMES)])
    e0, v0 = target[0, 0] - [0.3, 0.1], target[0, 1] - [1.0, 0.0]
    decay = np.exp(-5 * np.asarray(TIMES))[:, None]
    exact = (e0 + (v0 + 5 * e0) * np.asarray(TIMES)[:, None]) * decay  # a double pole at -5
    np.testing.assert_allclose(target[:, 0] - path.q, exact, atol=1e-7)  # tolerance of the integrator 1e-8


@pytest.mark.exhaustive
def test_gain_tuning_by_gradient_descent():
    model, target = jd.robots.pendulum(damping=0.1), jnp.array([1.0])
    times = jnp.linspace(0.0, 2.0, 21)

    def cost(gains):
        law = ct.GravityPD(model, target, *jnp.exp(gains))
        options = {"effort": law, "dt": 0.05, "max_steps": 64, "adjoint": diffrax.ForwardMode()}
        path = jd.simulate(model, jnp.zeros(1), jnp.zeros(1), times, **options)
        effort = jax.vmap(law)(times, path.q, path.v)
        value = jnp.mean((path.q - target) ** 2) + 1e-4 * jnp.mean(effort**2)
        return value, value

    both = jax.jit(jax.jacfwd(cost, has_aux=True))
    gains = jnp.log(jnp.array([5.0, 0.5]))
    slope, first = both(gains)
    h = 1e-5
    difference = [(both(gains + step)[1] - both(gains - step)[1]) / (2 * h) for step in h * jnp.eye(2)]
    np.testing.assert_allclose(slope, difference, rtol=1e-6)
    optimiser = optax.adam(0.2)
    state = optimiser.init(gains)
    for _ in range(40):
        slope, last = both(gains)
        step, state = optimiser.update(slope, state)
        gains = optax.apply_updates(gains, step)
    assert last < 0.6 * first
