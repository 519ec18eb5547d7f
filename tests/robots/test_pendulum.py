"""Pendulums and chains against the equations of the textbooks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.dynamics import forward_dynamics, mass_matrix, rnea
from jaxdyn.kinematics import frame_pose, total_mass
from jaxdyn.robots import chain, double_pendulum, pendulum

G = 9.81


def test_pendulum_has_the_torque_of_its_closed_form():
    length, mass, q, v, a = 0.7, 1.3, 0.4, -2.0, 3.0
    tau = rnea(pendulum(length, mass), jnp.array([q]), jnp.array([v]), jnp.array([a]))
    np.testing.assert_allclose(tau, [mass * length**2 * a + mass * G * length * np.sin(q)], rtol=1e-13)


def test_pendulum_is_differentiable_in_length_and_mass():
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


@pytest.mark.parametrize("seed", range(3))
def test_double_pendulum_follows_its_closed_form(seed):
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


@pytest.mark.parametrize("n", [1, 2, 17])
def test_chain_hangs_straight_down_at_zero(n):
    model = chain(n, length=0.2, mass=0.3)
    assert (model.nq, model.nv, model.num_links) == (n, n, n)
    q, zero = jnp.zeros(n), jnp.zeros(n)
    np.testing.assert_allclose(frame_pose(model, q, "tip").translation, [0, 0, -0.2 * n], atol=1e-12)
    np.testing.assert_allclose(total_mass(model), 0.3 * n, rtol=1e-12)
    np.testing.assert_allclose(rnea(model, q, zero, zero), zero, atol=1e-12)


def test_one_link_of_a_chain_is_a_compound_pendulum():
    length, mass, radius = 0.4, 2.0, 0.05
    expected = mass * (3 * radius**2 + length**2) / 12 + mass * length**2 / 4
    got = mass_matrix(chain(1, length, mass, radius), jnp.array([0.3]))
    np.testing.assert_allclose(got, [[expected]], rtol=1e-12)


def test_a_chain_without_links_is_refused():
    with pytest.raises(ValueError, match="at least one link"):
        chain(0)
