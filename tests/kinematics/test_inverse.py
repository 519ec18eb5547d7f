"""Inverse kinematics: reachable targets, status of failures, and the implicit derivative."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn._errors import ConvergenceError
from jaxdyn.joints import Planar, Revolute
from jaxdyn.kinematics import (
    IKStatus,
    difference,
    frame_pose,
    inverse_kinematics,
    neutral,
    random_configuration,
)
from jaxdyn.model import ModelBuilder
from jaxdyn.spatial import Pose, rotation_vector_to_matrix
from tests.kinematics.test_frames import assert_close, robot_with_mimicking_joint
from tests.oracles import random_model, random_rotation

ARM = random_model(0, 7, kinds=("revolute", "prismatic"), branching=0.0, frames=0)
TIP = ARM.link_names[-1]


@eqx.filter_jit
def solve(model, target, q0, position=1.0, orientation=1.0, name=TIP):
    return inverse_kinematics(model, name, target, q0, position_weight=position, orientation_weight=orientation)


def two_link_arm(lower=-np.inf, upper=np.inf):
    """Two links of 1 m and 0.5 m in the x-y plane."""
    b = ModelBuilder()
    b.add_link("a", "world", Revolute([0, 0, 1]))
    b.add_link("b", "a", Revolute([0, 0, 1]), translation=(1, 0, 0), lower=lower, upper=upper)
    b.add_frame("tip", "b", translation=(0.5, 0, 0))
    return b.build()


@jax.jit
def solve_position(model, x, q0):
    """Inverse kinematics of the tip position; orientation is free."""
    target = Pose(jnp.eye(3), jnp.concatenate([x, jnp.zeros(1)]))
    return inverse_kinematics(model, "tip", target, q0, orientation_weight=0.0)


BENT = jnp.array([0.1, 0.5])


def nearby_targets(count, size):
    rng = np.random.default_rng(0)
    q0 = jnp.stack([random_configuration(ARM, jax.random.PRNGKey(k)) for k in range(count)])
    q = q0 + size * rng.normal(size=q0.shape)
    return q0, jax.vmap(lambda x: frame_pose(ARM, x, TIP))(q)


@pytest.mark.slow
def test_batch_of_reachable_targets():
    q0, targets = nearby_targets(64, 0.4)
    result = jax.vmap(solve, (None, 0, 0))(ARM, targets, q0)
    assert jnp.isfinite(result.q).all()
    assert result.converged.mean() > 0.9
    reached = jax.vmap(lambda x: frame_pose(ARM, x, TIP))(result.q)
    good = np.asarray(result.converged)
    assert_close(reached.translation[good], targets.translation[good])
    assert_close(reached.rotation[good], targets.rotation[good])
    assert (np.asarray(result.status)[good] == IKStatus.CONVERGED).all()
    assert (result.error[good] < 1e-10).all()
    assert result.iterations[good].mean() < 20


def test_closed_form_of_an_elbow():
    x = jnp.array([0.9, 0.6])
    result = solve_position(two_link_arm(), x, BENT).checked()
    inner = np.arccos((0.81 + 0.36 - 1.25) / (2 * 0.5))
    want = [np.arctan2(0.6, 0.9) - np.arctan2(0.5 * np.sin(inner), 1 + 0.5 * np.cos(inner)), inner]
    assert_close(result.q, want)


def test_unreachable_target_has_a_status_and_the_least_error():
    result = solve_position(two_link_arm(), jnp.array([3.0, 4.0]), BENT)
    assert not result.converged
    assert result.status == IKStatus.STATIONARY
    assert_close(result.error, 3.5, 1e-8)  # 5 m away, 1.5 m long: a stretched arm is a singular minimum
    with pytest.raises(ConvergenceError, match="STATIONARY"):
        result.checked()


@pytest.mark.slow
def test_derivative_of_the_least_error():
    slope = jax.jit(jax.grad(lambda x: solve_position(two_link_arm(), x, BENT).error))(jnp.array([3.0, 4.0]))
    assert_close(slope, [0.6, 0.8], 1e-6)  # 5 m away, 1.5 m long


def test_non_finite_input_has_a_status():
    for x, q0 in ((jnp.array([jnp.nan, 0]), BENT), (jnp.ones(2), BENT * jnp.nan)):
        result = solve_position(two_link_arm(), x, q0)
        assert result.status == IKStatus.NOT_FINITE and not result.converged
        assert jnp.isfinite(result.q).all() and not jnp.isnan(result.error)


def test_position_limits_hold():
    x = jnp.array([0.9, 0.6])
    free = solve_position(two_link_arm(), x, BENT).q
    inside = two_link_arm(lower=0.0, upper=float(free[1]) + 0.1)
    assert_close(solve_position(inside, x, BENT).checked().q, free)
    tight = two_link_arm(lower=0.0, upper=float(free[1]) - 0.3)
    result = solve_position(tight, x, BENT)
    assert result.status == IKStatus.STATIONARY
    assert result.q[1] == tight.limits.upper[1]
    at = frame_pose(tight, result.q, "tip").translation[:2]
    assert abs(at[0] * x[1] - at[1] * x[0]) < 1e-7  # the other joint still points at the target


@pytest.mark.slow
def test_coordinate_at_a_limit_follows_the_limit():
    model = two_link_arm(lower=0.0, upper=1.0)
    x = jnp.array([0.9, 0.6])
    bound = lambda u: eqx.tree_at(lambda m: m.limits.upper, model, model.limits.upper.at[1].set(u))
    turned = jax.jit(jax.jacfwd(lambda u: solve_position(bound(u), x, BENT).q))(1.0)
    assert turned[1] == 1 and jnp.isfinite(turned).all()


@pytest.mark.slow
def test_orientation_alone_and_position_alone():
    q0 = random_configuration(ARM, jax.random.PRNGKey(3))
    start = frame_pose(ARM, q0, TIP)
    turn = rotation_vector_to_matrix(jnp.array([0.3, -0.4, 0.2]))
    target = Pose(turn @ start.rotation, start.translation + jnp.array([0.1, -0.2, 0.1]))
    q = solve(ARM, target, q0, 0.0, 1.0).checked().q
    assert_close(frame_pose(ARM, q, TIP).rotation, target.rotation)
    q = solve(ARM, target, q0, 1.0, 0.0).checked().q
    assert_close(frame_pose(ARM, q, TIP).translation, target.translation)


@pytest.mark.slow
def test_free_and_spherical_joints_and_half_turns():
    model = random_model(3, 4, kinds=("spherical", "revolute"), floating=True, branching=0.0, frames=1)
    rng = np.random.default_rng(0)
    away = frame_pose(model, neutral(model), "f0")
    half = Pose(away.rotation @ jnp.diag(jnp.array([1.0, -1, -1])), away.translation)
    for target in (half, Pose(jnp.asarray(random_rotation(rng)), jnp.asarray(rng.normal(size=3)))):
        result = solve(model, target, neutral(model), name="f0").checked()
        assert_close(frame_pose(model, result.q, "f0").rotation, target.rotation)


@pytest.mark.exhaustive
def test_implicit_derivative_equals_finite_differences():
    """Forward mode, reverse mode and central differences agree for the target and every leaf."""
    q0, targets = nearby_targets(1, 0.3)
    q0, target = q0[0], jax.tree.map(lambda x: x[0], targets)
    assert solve(ARM, target, q0).converged
    start = solve(ARM, target, q0).q

    @jax.jit
    def reached(model, shift, start):
        moved = Pose(target.rotation @ rotation_vector_to_matrix(shift[:3]), target.translation + shift[3:])
        result = solve(model, moved, start)
        return difference(model, start, result.q)

    rng = np.random.default_rng(1)
    finite = lambda x: jnp.asarray(np.where(np.isfinite(x), rng.normal(size=x.shape), 0))
    model_step, shift_step = jax.tree.map(finite, ARM), jnp.asarray(rng.normal(size=6))
    weights = jnp.asarray(rng.normal(size=ARM.nv))
    forward = lambda m, s: jax.jvp(lambda m, s: reached(m, s, start), (m, s), (model_step, shift_step))
    _, rate = jax.jit(forward)(ARM, jnp.zeros(6))
    h = 1e-6
    go = lambda s: reached(jax.tree.map(lambda x, d: x + s * d, ARM, model_step), s * shift_step, start)
    assert_close(rate, (go(h) - go(-h)) / (2 * h), 1e-6)  # central differences of a solve to 4e-11
    grads = jax.jit(jax.grad(lambda m, s: weights @ reached(m, s, start), (0, 1)))(ARM, jnp.zeros(6))
    pairs = zip(jax.tree.leaves(grads), jax.tree.leaves((model_step, shift_step)), strict=True)
    assert_close(sum((g * d).sum() for g, d in pairs), weights @ rate)


@pytest.mark.slow
def test_first_derivative_of_the_elbow():
    x = jnp.array([0.9, 0.6])
    bend = lambda x: solve_position(two_link_arm(), x, BENT).q[1]
    inner = lambda x: jnp.arccos((x @ x - 1.25) / (2 * 0.5))
    assert_close(jax.jit(jax.grad(bend))(x), jax.grad(inner)(x), 1e-9)  # as accurate as the solve


@pytest.mark.slow
def test_second_derivative_of_the_elbow():
    x = jnp.array([0.9, 0.6])
    bend = lambda x: solve_position(two_link_arm(), x, BENT).q[1]
    inner = lambda x: jnp.arccos((x @ x - 1.25) / (2 * 0.5))
    assert_close(jax.jit(jax.hessian(bend))(x), jax.hessian(inner)(x), 1e-8)  # as accurate as the solve


@pytest.mark.slow
def test_mimicking_joints_and_single_precision():
    model = robot_with_mimicking_joint()
    target = frame_pose(model, jnp.array([0.5, 0.7]), "tip")
    result = solve(model, target, jnp.array([0.2, 0.3]), name="tip").checked()
    assert_close(result.q, [0.5, 0.7])
    low = jax.tree.map(lambda x: x.astype(jnp.float32), (model, target))
    result = solve(*low, jnp.array([0.2, 0.3], jnp.float32), name="tip").checked()
    assert result.q.dtype == jnp.float32
    assert_close(result.q, [0.5, 0.7], 1e-4)  # float32


def test_inverse_kinematics_of_a_fixed_model():
    b = ModelBuilder()
    b.add_link("a", translation=(1, 0, 0))
    model = b.build()
    here = inverse_kinematics(model, "a", frame_pose(model, jnp.zeros(0), "a"), jnp.zeros(0))
    assert here.converged and here.q.shape == (0,)
    there = inverse_kinematics(model, "a", Pose.identity(), jnp.zeros(0))
    assert there.status == IKStatus.STATIONARY
    assert_close(there.error, 1.0)


@pytest.mark.slow
def test_frame_fixed_to_the_world():
    fixed = solve(robot_with_mimicking_joint(), Pose(jnp.eye(3), jnp.ones(3)), jnp.zeros(2), name="base")
    assert fixed.status == IKStatus.STATIONARY


@pytest.mark.slow
def test_limits_of_a_planar_joint_bound_its_coordinates():
    """Its velocity is in axes rotated by 1 rad here; x is at its limit, y and the angle reach the target."""
    b = ModelBuilder().add_link("cart", "world", Planar(), upper=[0.5, np.inf, np.inf])
    model = b.build()
    at = lambda q: frame_pose(model, jnp.asarray(q), "cart")
    result = solve(model, at([2.0, 1.0, 1.3]), jnp.array([0.1, 0.0, 1.0]), name="cart")
    assert result.status == IKStatus.STATIONARY
    assert_close(result.q, [0.5, 1.0, 1.3], 1e-7)
    bound = lambda u: eqx.tree_at(lambda m: m.limits.upper, model, model.limits.upper.at[0].set(u))
    follow = lambda u: solve(bound(u), at([2.0, 1.0, 1.3]), jnp.array([0.1, 0.0, 1.0]), name="cart").q
    assert_close(jax.jit(jax.jacfwd(follow))(0.5), [1.0, 0.0, 0.0], 1e-7)
    inside = solve(model, at([0.4, -1.0, 2.0]), jnp.array([0.1, 0.0, 1.0]), name="cart").checked()
    assert_close(inside.q, [0.4, -1.0, 2.0])
