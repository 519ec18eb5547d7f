"""Splines with virtual points against scipy's, and rates through the inverses of the Jacobian."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.interpolate

import jaxdyn as jd
from jaxdyn import trajopt as to
from jaxdyn._errors import ShapeError
from jaxdyn.trajopt import waypoint_spline

RNG = np.random.default_rng(0)
TIMES = jnp.array([0.0, 0.4, 1.0, 1.3, 2.1, 2.5])
POINTS = jnp.asarray(RNG.normal(size=(6, 2)))
V0, V1, A0, A1 = RNG.normal(size=(4, 2))
make = jax.jit(waypoint_spline)


def test_agrees_with_the_cubic_spline_of_scipy():
    ours = make(TIMES, POINTS, v0=V0, v1=V1, a0=A0, a1=A1)
    exact = scipy.interpolate.CubicSpline(ours.times, ours.q, bc_type=((1, V0), (1, V1)))
    t = np.linspace(0, 2.5, 101)
    for k, x in enumerate(jax.jit(jax.vmap(ours))(t)):
        np.testing.assert_allclose(x, exact(t, k), atol=1e-10)
    # which leaves the virtual points to bring the accelerations that scipy knows nothing of
    np.testing.assert_allclose(exact([0, 2.5], 2), [A0, A1], atol=1e-10)
    np.testing.assert_allclose(exact(TIMES), POINTS, atol=1e-12)
    np.testing.assert_allclose(ours.v, exact(ours.times, 1), atol=1e-10)


def test_cubics_are_reproduced_exactly():
    cubic = lambda t: np.stack([t**3 - t, 2 * t**2 + 0.3 * t**3], 1)
    v = lambda t: np.array([3 * t**2 - 1, 4 * t + 0.9 * t**2])
    a = lambda t: np.array([6 * t, 4 + 1.8 * t])
    ours = make(TIMES, jnp.asarray(cubic(np.asarray(TIMES))), v0=v(0), v1=v(2.5), a0=a(0), a1=a(2.5))
    np.testing.assert_allclose(ours.q, cubic(np.asarray(ours.times)), atol=1e-11)


@pytest.mark.slow
def test_three_points_and_other_virtual_times():
    ours = waypoint_spline(TIMES[:3], POINTS[:3], virtual=jnp.array([0.1, 0.9]))
    exact = scipy.interpolate.CubicSpline(ours.times, ours.q, bc_type="clamped")
    np.testing.assert_allclose(ours.times, [0, 0.1, 0.4, 0.9, 1])
    np.testing.assert_allclose(exact([0, 1], 2), 0, atol=1e-10)
    np.testing.assert_allclose(ours(0.4)[0], POINTS[1], atol=1e-12)


def test_wrong_shapes_raise():
    with pytest.raises(ShapeError, match="between two points use"):
        waypoint_spline(TIMES[:2], POINTS[:2])


# Rates through the Jacobian


ARM = jd.robots.panda()
SIX = jd.robots.ur5()
Q7 = jnp.array([0.1, -0.6, 0.3, -2.0, 0.2, 1.4, 0.5])
Q6 = jnp.array([0.3, -1.2, 1.5, -0.7, 0.9, 0.2])
TWIST, PUSH = jnp.array([0.1, -0.2, 0.3, 0.2, 0.1, -0.3]), jnp.array([0.5, 0.1, -0.3, 1.0, -2.0, 0.4])
TIP7, TIP6 = ARM.link_names[-1], SIX.link_names[-1]


def moves(model, q, tip, found):
    at = lambda f, *x: f(model, q, found.v, *x, tip, reference=jd.WORLD_ALIGNED)
    return at(jd.frame_velocity), at(jd.frame_classical_acceleration, found.a)


@pytest.mark.slow
def test_resolved_rates_reproduce_the_motion_of_the_frame():
    redundant = to.resolved_rates(ARM, Q7, TIP7, TWIST, PUSH)
    exact = to.resolved_rates(SIX, Q6, TIP6, TWIST, PUSH, inverse=to.square_inverse)
    for model, q, tip, found in ((ARM, Q7, TIP7, redundant), (SIX, Q6, TIP6, exact)):
        velocity, acceleration = moves(model, q, tip, found)
        np.testing.assert_allclose(velocity, TWIST, atol=1e-10)
        np.testing.assert_allclose(acceleration, PUSH, atol=1e-10)
        assert found.status == to.RateStatus.REGULAR
    j = np.asarray(jd.jacobian(ARM, Q7, TIP7, reference=jd.WORLD_ALIGNED))
    np.testing.assert_allclose(redundant.v, np.linalg.pinv(j) @ TWIST, atol=1e-10)
    np.testing.assert_allclose(redundant.manipulability, np.sqrt(np.linalg.det(j @ j.T)), atol=1e-12)
    np.testing.assert_allclose(to.left_inverse(j.T), np.linalg.pinv(j.T), atol=1e-10)


@pytest.mark.slow
def test_singular_poses_are_reported():
    straight = to.resolved_rates(SIX, jnp.zeros(6), TIP6, TWIST, PUSH, inverse=to.square_inverse)
    assert straight.status == to.RateStatus.SINGULAR
    assert straight.manipulability < 1e-12
    assert np.isfinite(straight.v).all()
    assert np.abs(straight.v).max() < 100
    with pytest.raises(ShapeError, match="use right_inverse for more joints"):
        to.resolved_rates(ARM, Q7, TIP7, TWIST, inverse=to.square_inverse)


@pytest.mark.slow
def test_measures_of_a_pose_have_derivatives():
    measures = lambda q: (lambda r: jnp.stack([r.manipulability, r.conditioning]))(
        to.resolved_rates(SIX, q, TIP6, TWIST, inverse=to.square_inverse)
    )
    slope, h = jax.jit(jax.jacfwd(measures))(Q6), 1e-6
    for k, e in enumerate(h * np.eye(6)):
        np.testing.assert_allclose(slope[:, k], (measures(Q6 + e) - measures(Q6 - e)) / (2 * h), atol=1e-6)
    assert np.abs(slope).max(1).min() > 1e-3


@pytest.mark.slow
def test_left_inverse_gives_least_squares_rates():
    arm, q = jd.robots.double_pendulum(), jnp.array([0.4, 0.7])
    found = to.resolved_rates(arm, q, arm.link_names[-1], TWIST, PUSH, inverse=to.left_inverse)
    j = np.asarray(jd.jacobian(arm, q, arm.link_names[-1], reference=jd.WORLD_ALIGNED))
    assert found.status == to.RateStatus.REGULAR
    np.testing.assert_allclose(found.v, np.linalg.lstsq(j, TWIST)[0], atol=1e-10)
    np.testing.assert_allclose(found.manipulability, np.sqrt(np.linalg.det(j.T @ j)), atol=1e-12)


@pytest.mark.slow
def test_accelerations_include_the_error_feedback():
    start = jd.frame_pose(SIX, Q6, TIP6)

    def path(t):
        off = jnp.stack([0.02 + 0 * t, 0.1 * jnp.sin(3 * t), -0.01 + 0.05 * t])
        return jd.spatial.Pose(start.rotation, start.translation + off)

    h = 1e-3
    follow = jax.jit(lambda: to.follow_frame(SIX, TIP6, path, Q6, h * jnp.arange(5), inverse=to.square_inverse))
    found = follow()
    assert np.abs(found.error[0]).max() > 0.01
    difference = (found.v[:-4] - 8 * found.v[1:-3] + 8 * found.v[3:-1] - found.v[4:]) / (12 * h)
    np.testing.assert_allclose(found.a[2:3], difference, atol=1e-5 * np.abs(found.a).max())


@pytest.mark.slow
def test_a_frame_follows_its_path():
    start = jd.frame_pose(ARM, Q7, TIP7)

    def path(t):
        return jd.spatial.Pose(start.rotation, start.translation + jnp.stack([0 * t, 0.1 * jnp.sin(t), 0.05 * t]))

    found = jax.jit(lambda: to.follow_frame(ARM, TIP7, path, Q7, jnp.linspace(0.0, 1.0, 41)))()
    assert np.abs(found.error).max() < 1e-6  # of the integrator, with steps of 25 ms
    assert (found.status == to.RateStatus.REGULAR).all()
    end = jd.frame_pose(ARM, found.q[-1], TIP7)
    np.testing.assert_allclose(end.translation, path(jnp.ones(())).translation, atol=1e-6)
