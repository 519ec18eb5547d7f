"""Matrix exponentials against `scipy.linalg.expm`, and their kinematics against `jaxdyn.kinematics`."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import jaxdyn as jd
from jaxdyn.formulations import (
    exponential_factors,
    exponential_jacobian,
    exponential_jacobian_rate,
    exponential_motion,
    exponential_pose,
    moving_jacobian,
    moving_jacobian_rate,
    screw_exponential,
    space_screws,
)
from jaxdyn.spatial import Pose
from tests.formulations._cases import TOLERANCE, model, state
from tests.oracles import random_model, random_state, relative_error

jit = ft.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@ft.cache
def _robot():
    """A tree of revolute, prismatic and helical joints with a fixed link; some of the joints carry the frame `f0`."""
    robots = (random_model(k, 5, kinds=("revolute", "prismatic", "helical"), fixed_fraction=0.2) for k in range(3, 20))
    m = next(m for m in robots if 1 < len(_path(m, "f0")) < m.nv)
    return m, random_state(m, 0)


def _path(m, name):
    link = m.topology.frame_links[m.frame_index(name)]
    return np.flatnonzero(m.topology.body_ancestors[:, m.topology.body_of_link[link]])


def _matrix(w, v):
    x, y, z = w
    return np.array([[0, -z, y, v[0]], [z, 0, -x, v[1]], [-y, x, 0, v[2]], [0, 0, 0, 0]])


def _homogeneous(pose):
    return np.vstack([np.column_stack([pose.rotation, pose.translation]), [0, 0, 0, 1]])


@pytest.mark.parametrize("turns", [1.0, 0.0])
def test_screw_exponential_equals_the_matrix_exponential(turns):
    """Equation 4 with `(k x)(k x)`; with `k k^T`, as printed, a translation would be doubled."""
    rng = np.random.default_rng(0)
    k, v = rng.normal(size=(2, 3))
    k = turns * k / np.linalg.norm(k)
    for q in (0.0, 0.7, -3.0):
        got = screw_exponential(jnp.asarray([*k, *v]), q)
        np.testing.assert_allclose(_homogeneous(got), scipy.linalg.expm(_matrix(k, v) * q), atol=1e-14)


@jit
def _ours(m, q, v, a):
    name = "f0"
    motion = exponential_motion(m, q, v, a, name)
    pose = exponential_pose(m, q, name)
    return (
        pose.rotation,
        pose.translation,
        exponential_jacobian(m, q, name),
        moving_jacobian(m, q, name),
        exponential_jacobian_rate(m, q, v, name),
        motion.base_acceleration,
        motion.base_velocity,
        motion.moving_velocity,
        motion.moving_acceleration,
        moving_jacobian_rate(m, q, v, name),
    )


@jit
def _theirs(m, q, v, a):
    name, base = "f0", jd.WORLD_ALIGNED
    pose = jd.frame_pose(m, q, name)
    return (
        pose.rotation,
        pose.translation,
        jd.jacobian(m, q, name, reference=base),
        jd.jacobian(m, q, name),
        jd.jacobian_derivative(m, q, v, name, reference=base),
        jd.frame_classical_acceleration(m, q, v, a, name, reference=base),
        jd.jacobian_derivative(m, q, v, name),
    )


@pytest.mark.slow
def test_kinematics_equal_those_of_the_package():
    """Pose, Jacobians in both frames, rate, velocities and accelerations in both frames (1 to 13)."""
    m, (q, v, a, _) = _robot()
    *wanted, own_rate = _theirs(m, q, v, a)
    rotation, _, base, moving, _, acceleration = wanted
    along = np.kron(np.eye(2), np.asarray(rotation).T)
    spin = np.kron(np.eye(2), np.cross(np.eye(3), np.asarray((moving @ v)[:3])))
    projected = own_rate + spin @ moving  # the components along turning axes lack `w x`
    assert relative_error(moving @ a + projected @ v, along @ acceleration) < TOLERANCE
    wanted = (*wanted, base @ v, moving @ v, along @ acceleration, projected)
    for x, y in zip(_ours(m, q, v, a), wanted, strict=True):
        assert relative_error(x, y) < TOLERANCE


@jit
def _factors(m, q):
    found = exponential_factors(m, q, "f0")
    return found, found.columns(), exponential_jacobian(m, q, "f0")


@pytest.mark.slow
def test_factors_of_the_jacobian():
    """Shapes of the matrices (5) to (10), whose product is the column of each joint."""
    m, (q, *_) = _robot()
    found, columns, jacobian = _factors(m, q)
    path = _path(m, "f0")
    n = len(path)
    assert list(found.joints) == list(path)
    assert (found.J1.shape, found.J2.shape, found.J3.shape) == ((n, 6, 6), (n, 6, 9), (n, 9, 3 * n + 9))
    assert relative_error(columns, np.roll(np.asarray(jacobian)[:, path], 3, axis=0)) < TOLERANCE
    for i in range(n):  # what is before joint i has no part in its matrices, the first of the others is 1
        block = np.asarray(found.V3[i, 3:, 3:]).reshape(3, n + 1, 3).swapaxes(0, 1)
        assert not np.any(block[:i]) and np.abs(block[i] - np.eye(3)).max() < 1e-14


@jit
def _at_zero(m):
    return space_screws(m), jd.frame_pose(m, jnp.zeros(m.nq), "f0")


@pytest.mark.slow
def test_pose_is_a_product_of_matrix_exponentials():
    """`exp([S_1] q_1) ... exp([S_n] q_n)` by scipy, times the pose at zero."""
    m, (q, *_) = _robot()
    screws, start = jax.tree.map(np.asarray, _at_zero(m))
    product = np.eye(4)
    for j in _path(m, "f0"):
        product = product @ scipy.linalg.expm(_matrix(screws[j, :3], screws[j, 3:]) * float(q[j]))
    rotation, translation, *_ = _ours(m, *random_state(m, 0)[:3])
    np.testing.assert_allclose(product @ _homogeneous(start), _homogeneous(Pose(rotation, translation)), atol=1e-13)


@pytest.mark.exhaustive
def test_derivatives_equal_those_of_the_package():
    """Gradients of a scalar of pose, Jacobian and acceleration with respect to all leaves and the state, in a batch."""
    m, _ = _robot()
    q, v, a, _ = map(jnp.stack, zip(random_state(m, 0), random_state(m, 1), strict=True))

    def scalar(f, m, q, v, a):
        rotation, _, base, _, _, acceleration, *_ = f(m, q, v, a)
        given = jnp.concatenate([x.ravel() for x in (rotation, base, acceleration)])
        return jnp.cos(jnp.arange(given.size)) @ given

    def slopes(f):
        one = jax.grad(ft.partial(scalar, f), (0, 1, 2, 3), allow_int=True)
        return jit(jax.vmap(one, in_axes=(None, 0, 0, 0)))(m, q, v, a)

    got, wanted = slopes(_ours.__wrapped__), slopes(_theirs.__wrapped__)
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)
    for x in (wanted[0].placements.translation, wanted[0].joints, wanted[1], wanted[2], wanted[3]):
        assert any(np.abs(leaf).max() > 1e-3 for leaf in jax.tree.leaves(x))


@pytest.mark.slow
def test_link_fixed_to_the_world_has_zero_motion():
    builder = jd.ModelBuilder()
    builder.add_link("post", "world", jd.joints.Fixed(), translation=(1.0, 2.0, 3.0))
    builder.add_link("arm", "post", jd.joints.Revolute((0, 0, 1)), jd.spatial.sphere(0.1, mass=1.0))
    m, one = builder.build(), jnp.ones(1)
    np.testing.assert_array_equal(exponential_pose(m, one, "post").translation, [1, 2, 3])
    np.testing.assert_array_equal(exponential_jacobian(m, one, "post"), np.zeros((6, 1)))
    np.testing.assert_array_equal(exponential_motion(m, one, one, one, "post").base_acceleration, np.zeros(6))


def test_uncovered_joints_raise_an_error():
    with pytest.raises(jd.ModelError, match="'l0_joint' is a Free"):
        space_screws(model("floating"))
    q, *_ = state("geared")
    with pytest.raises(jd.ModelError, match="mimics"):
        exponential_jacobian(model("geared"), q, "b")
