"""Resolved rates and motion along a path for the tip of a double pendulum, in one program."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn import paths

ARM = jd.robots.double_pendulum()
ROWS = jnp.eye(6)[np.array([3, 5])]  # x and z
Q, TIMES = jnp.array([0.4, 0.9]), jnp.linspace(0.0, 0.5, 11)


@jax.jit
def _evaluate(m, q, velocity, acceleration):
    start = jd.frame_pose(m, q, "tip")
    move = jnp.zeros(3).at[jnp.array([0, 2])].set(velocity)
    path = lambda t: jd.spatial.Pose(start.rotation, start.translation + t * move)
    rates = [
        paths.resolved_rates(m, q, "tip", velocity, acceleration, rows=ROWS, inverse=inverse)
        for inverse in (paths.square_inverse, paths.right_inverse, paths.left_inverse)
    ]
    followed = paths.follow_frame(m, "tip", path, q, TIMES, rows=ROWS, inverse=paths.square_inverse)
    jacobian = ROWS @ jd.jacobian(m, q, "tip", reference=jd.WORLD_ALIGNED)
    drift = ROWS @ jd.jacobian_derivative(m, q, rates[0].v, "tip", reference=jd.WORLD_ALIGNED) @ rates[0].v
    return rates, jacobian, drift, followed, jd.frame_pose(m, followed.q[-1], "tip").translation - start.translation


def test_frame_motion():
    velocity, acceleration = np.array([0.3, -0.2]), np.array([1.0, 2.0])
    rates, jacobian, drift, followed, moved = _evaluate(ARM, Q, velocity, acceleration)
    for found in rates:
        assert found.status == paths.RateStatus.REGULAR
        np.testing.assert_allclose(jacobian @ found.v, velocity, atol=1e-12)
        np.testing.assert_allclose(jacobian @ found.a + drift, acceleration, atol=1e-11)
        np.testing.assert_allclose(found.manipulability, abs(np.linalg.det(jacobian)), rtol=1e-10)
    np.testing.assert_allclose(moved[np.array([0, 2])], 0.5 * velocity, atol=2e-6)  # of the integrator
    assert (followed.status == paths.RateStatus.REGULAR).all()


def test_inverses_of_wide_and_tall_matrices():
    j = np.random.default_rng(0).normal(size=(2, 3))
    np.testing.assert_allclose(paths.right_inverse(j), np.linalg.pinv(j), atol=1e-13)
    np.testing.assert_allclose(paths.left_inverse(j.T), np.linalg.pinv(j.T), atol=1e-13)


def test_duration_of_a_quintic_at_its_limits():
    """The largest velocity is `15/8 d / T`, the largest acceleration `10 / sqrt(3) d / T^2`."""
    start, end = jnp.zeros(2), jnp.array([0.5, -2.0])
    assert abs(paths.quintic_duration(start, end, 3.0, 1e9) - 15 / 8 * 2 / 3) < 1e-14
    assert abs(paths.quintic_duration(start, end, 1e9, 3.0) ** 2 - 10 / np.sqrt(3) * 2 / 3) < 1e-13
