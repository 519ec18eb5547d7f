"""Pendulums and chains against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.dynamics import forward_dynamics, mass_matrix, rnea
from jaxdyn.kinematics import frame_pose, total_mass
from jaxdyn.robots import acrobot, cart_pole, chain, double_pendulum, pendulum, planar_chain

G = 9.81


def test_torque_of_the_pendulum_agrees_with_the_closed_form():
    length, mass, q, v, a = 0.7, 1.3, 0.4, -2.0, 3.0
    tau = rnea(pendulum(length, mass), jnp.array([q]), jnp.array([v]), jnp.array([a]))
    np.testing.assert_allclose(tau, [mass * length**2 * a + mass * G * length * np.sin(q)], rtol=1e-13)


def test_derivatives_with_respect_to_length_and_mass_of_the_pendulum():
    q, v, a = (jnp.array([x]) for x in (0.4, -2.0, 3.0))
    torque = lambda length, mass: rnea(pendulum(length, mass), q, v, a)[0]
    by_length, by_mass = jax.grad(torque, (0, 1))(0.7, 1.3)
    np.testing.assert_allclose(by_length, 1.3 * (2 * 0.7 * 3.0 + G * np.sin(0.4)), rtol=1e-12)
    np.testing.assert_allclose(by_mass, 0.7**2 * 3.0 + G * 0.7 * np.sin(0.4), rtol=1e-12)


def _double_pendulum(lengths, masses, q, v):
    """Mass matrix and bias by the closed form of the docstring, gravity included."""
    (l1, l2), (m1, m2) = lengths, masses
    coupling = m2 * l1 * l2 * np.cos(q[1])
    m12 = m2 * l2**2 + coupling
    mass = np.array([[(m1 + m2) * l1**2 + m2 * l2**2 + 2 * coupling, m12], [m12, m2 * l2**2]])
    h = m2 * l1 * l2 * np.sin(q[1])
    outer = m2 * G * l2 * np.sin(q[0] + q[1])
    gravity = np.array([(m1 + m2) * G * l1 * np.sin(q[0]) + outer, outer])
    return mass, np.array([-h * v[1] * (2 * v[0] + v[1]), h * v[0] ** 2]) + gravity


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_double_pendulum_agrees_with_the_closed_form(seed):
    rng = np.random.default_rng(seed)
    lengths, masses = rng.uniform(0.3, 2, 2), rng.uniform(0.3, 2, 2)
    q, v, tau = rng.standard_normal((3, 2))
    model = double_pendulum(tuple(lengths), tuple(masses))
    mass, bias = _double_pendulum(lengths, masses, q, v)
    np.testing.assert_allclose(mass_matrix(model, jnp.asarray(q)), mass, rtol=1e-12, atol=1e-13)
    a = forward_dynamics(model, *map(jnp.asarray, (q, v, tau)))
    np.testing.assert_allclose(a, np.linalg.solve(mass, tau - bias), rtol=1e-10)


def test_frames_of_the_double_pendulum_are_at_its_masses():
    model, q = double_pendulum((0.5, 0.8)), jnp.array([np.pi / 2, -np.pi / 2])
    np.testing.assert_allclose(frame_pose(model, q, "elbow").translation, [-0.5, 0, 0], atol=1e-14)
    np.testing.assert_allclose(frame_pose(model, q, "tip").translation, [-0.5, 0, -0.8], atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_acrobot_agrees_with_the_closed_form(seed):
    rng = np.random.default_rng(seed)
    (l1, l2), (m1, m2) = lengths, masses = rng.uniform(0.3, 2, (2, 2))
    q, v, a = rng.standard_normal((3, 2))
    c1, c2, i1, i2 = l1 / 2, l2 / 2, m1 * l1**2 / 12, m2 * l2**2 / 12
    coupling, h = m2 * l1 * c2 * np.cos(q[1]), m2 * l1 * c2 * np.sin(q[1])
    m12 = m2 * c2**2 + i2 + coupling
    m11 = m1 * c1**2 + i1 + m2 * (l1**2 + c2**2) + 2 * coupling + i2
    outer = m2 * c2 * G * np.sin(q[0] + q[1])
    expected = [
        m11 * a[0] + m12 * a[1] - h * v[1] * (2 * v[0] + v[1]) + (m1 * c1 + m2 * l1) * G * np.sin(q[0]) + outer,
        m12 * a[0] + (m2 * c2**2 + i2) * a[1] + h * v[0] ** 2 + outer,
    ]
    tau = rnea(acrobot(tuple(lengths), tuple(masses)), *map(jnp.asarray, (q, v, a)))
    np.testing.assert_allclose(tau, expected, rtol=1e-10, atol=1e-12)


def test_acrobot_has_the_inertias_of_spong():
    model = acrobot()
    np.testing.assert_allclose([model.link(k).inertia[1, 1] for k in ("upper", "lower")], [0.083, 0.33], atol=4e-3)
    assert [drive.joint for drive in model.actuators] == ["elbow"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_cart_pole_agrees_with_the_closed_form(seed):
    rng = np.random.default_rng(seed)
    (m1, m2), l = rng.uniform(0.3, 2, 2), rng.uniform(0.3, 2)
    q, v, a = rng.standard_normal((3, 2))
    expected = [
        (m1 + m2) * a[0] + m2 * l * (a[1] * np.cos(q[1]) - v[1] ** 2 * np.sin(q[1])),
        m2 * l * np.cos(q[1]) * a[0] + m2 * l**2 * a[1] + m2 * G * l * np.sin(q[1]),
    ]
    model = cart_pole((m1, m2), l)
    np.testing.assert_allclose(rnea(model, *map(jnp.asarray, (q, v, a))), expected, rtol=1e-10, atol=1e-12)


def test_direction_and_limits_of_the_cart_pole():
    model = cart_pole(track=2.0)
    tip = frame_pose(model, jnp.array([0.7, 0.3]), "tip").translation
    np.testing.assert_allclose(tip, [0.7 + 0.5 * np.sin(0.3), 0, -0.5 * np.cos(0.3)], atol=1e-14)
    np.testing.assert_array_equal(model.limits.lower, [-2, -np.inf])
    np.testing.assert_array_equal(model.actuators[0].range, [-20, 20])


@pytest.mark.slow
def test_a_planar_chain_stays_in_its_plane():
    q = jnp.asarray(np.random.default_rng(0).standard_normal(17))
    angles = np.cumsum(np.asarray(q))
    tip = frame_pose(planar_chain(17, length=0.2), q, "tip").translation
    np.testing.assert_allclose(tip, [-0.2 * np.sin(angles).sum(), 0, -0.2 * np.cos(angles).sum()], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 17])
def test_chain_hangs_vertically_at_zero(n):
    model = chain(n, length=0.2, mass=0.3)
    assert (model.nq, model.nv, model.num_links) == (n, n, n)
    q, zero = jnp.zeros(n), jnp.zeros(n)
    np.testing.assert_allclose(frame_pose(model, q, "tip").translation, [0, 0, -0.2 * n], atol=1e-12)
    np.testing.assert_allclose(total_mass(model), 0.3 * n, rtol=1e-12)
    np.testing.assert_allclose(rnea(model, q, zero, zero), zero, atol=1e-12)


@pytest.mark.slow
def test_one_link_of_a_chain_is_a_compound_pendulum():
    length, mass, radius = 0.4, 2.0, 0.05
    expected = mass * (3 * radius**2 + length**2) / 12 + mass * length**2 / 4
    got = mass_matrix(chain(1, length, mass, radius), jnp.array([0.3]))
    np.testing.assert_allclose(got, [[expected]], rtol=1e-12)


def test_empty_chains_are_refused():
    with pytest.raises(ValueError, match="expected at least 1 link"):
        chain(0)
