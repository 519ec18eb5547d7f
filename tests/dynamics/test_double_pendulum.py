"""Quantities of a double pendulum in one program, against closed forms and against each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import dynamics as jdyn
from jaxdyn import kinematics as jk
from jaxdyn.spatial import Pose

ARM = jd.robots.double_pendulum()
Q, V, A, TAU = np.array([0.4, -0.9]), np.array([1.2, -0.5]), np.array([0.3, 2.0]), np.array([1.5, -0.4])
G = 9.81


@jax.jit
def _evaluate(m, q, v, a, tau):
    base = jd.WORLD_ALIGNED
    along = lambda t: jk.frame_pose(m, jk.integrate(m, q, t * v), "tip")
    turned = lambda t: Pose(along(t).rotation, along(t).translation)
    momentum, rate = jax.jvp(lambda q: jd.centroidal_momentum_matrix(m, q), (q,), (v,))
    task = jdyn.task_space_dynamics(m, q, v, "tip", reference=base)
    return {
        "com": (jk.center_of_mass_velocity(m, q, v), jk.center_of_mass_jacobian(m, q)),
        "classical": jk.frame_classical_acceleration(m, q, v, a, "tip", reference=base),
        "jacobian": jk.jacobian(m, q, "tip", reference=base),
        "drift": jk.jacobian_derivative(m, q, v, "tip", reference=base) @ v,
        "desired": jk.desired_frame_motion(turned, jnp.zeros(())),
        "error": jk.pose_error(along(0.0), along(1e-2)),
        "christoffel": jdyn.christoffel_symbols(m, q),
        "accelerations": [jd.forward_dynamics(m, q, v, tau, method=f) for f in (jdyn.aba, jdyn.crba_solve)],
        "momentum": (momentum, rate, jdyn.centroidal_momentum_matrix_derivative(m, q, v)),
        "task": task,
        "terms": (jd.mass_matrix(m, q), jd.bias_forces(m, q, v)),
    }


@pytest.fixture(scope="module")
def found():
    return jax.tree.map(np.asarray, _evaluate(ARM, *map(jnp.asarray, (Q, V, A, TAU))))


def _closed_form():
    """Mass matrix and bias forces of two unit masses on rods of 1 m."""
    s, c = np.sin(Q[1]), np.cos(Q[1])
    mass = np.array([[3 + 2 * c, 1 + c], [1 + c, 1]])
    weight = G * np.array([2 * np.sin(Q[0]) + np.sin(Q.sum()), np.sin(Q.sum())])
    return mass, np.array([-s * V[1] * (2 * V[0] + V[1]), s * V[0] ** 2]) + weight, weight


def _tip():
    """Jacobian of the tip's (x, z), and its acceleration."""
    angles, rates = np.cumsum(Q), np.cumsum(V)
    sines, cosines = np.sin(angles), np.cos(angles)
    links = np.array([-cosines, sines])  # of x = -sum sin, z = -sum cos
    jacobian = np.array([[links[0].sum(), links[0, 1]], [links[1].sum(), links[1, 1]]])
    return jacobian, jacobian @ A + np.array([sines @ rates**2, cosines @ rates**2])


def test_equation_of_motion(found):
    mass, bias, weight = _closed_form()
    for got, wanted in zip(found["terms"], (mass, bias), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    for a in found["accelerations"]:
        np.testing.assert_allclose(a, np.linalg.solve(mass, TAU - bias), rtol=1e-11)
    np.testing.assert_allclose(V @ found["christoffel"] @ V + weight, bias, rtol=1e-12)


def test_motion_of_the_tip(found):
    jacobian, acceleration = _tip()
    rows = found["jacobian"][[3, 5]]
    np.testing.assert_allclose(rows, jacobian, atol=1e-14)
    np.testing.assert_allclose(found["classical"][[3, 5]], acceleration, rtol=1e-12)
    np.testing.assert_allclose(found["classical"], found["jacobian"] @ A + found["drift"], atol=1e-13)
    desired = found["desired"]
    np.testing.assert_allclose(desired.velocity, found["jacobian"] @ V, atol=1e-13)
    np.testing.assert_allclose(desired.acceleration, found["drift"], atol=1e-13)
    np.testing.assert_allclose(found["error"][:3], [0, 1e-2 * V.sum(), 0], atol=1e-14)
    np.testing.assert_allclose(found["error"][3:], 1e-2 * (found["jacobian"] @ V)[3:], atol=2e-4)


def test_centre_of_mass_and_momentum(found):
    (velocity, jacobian), (matrix, difference, rate) = found["com"], found["momentum"]
    np.testing.assert_allclose(jacobian @ V, velocity, atol=1e-14)
    np.testing.assert_allclose(2.0 * velocity, (matrix @ V)[3:], atol=1e-13)  # two masses of 1 kg
    np.testing.assert_allclose(rate, difference, atol=1e-12)


def test_task_space(found):
    task, mass, bias = found["task"], *found["terms"]
    delassus = found["jacobian"] @ np.linalg.solve(mass, found["jacobian"].T)
    np.testing.assert_allclose(task.inertia, np.linalg.pinv(delassus, rcond=1e-10), atol=1e-9)
    wanted = task.inertia @ (found["jacobian"] @ np.linalg.solve(mass, bias) - found["drift"])
    np.testing.assert_allclose(task.bias, wanted, atol=1e-9)
    assert task.full_rank == 0


def test_work_of_a_linear_power():
    times = jnp.array([0.0, 0.5, 2.0])
    np.testing.assert_allclose(jdyn.work(times, 3 * times), 1.5 * times**2, rtol=1e-15)
