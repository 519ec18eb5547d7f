"""Axioms of rotations, sampled at the identity and at half turns as well, and the skew matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxdyn.spatial import (
    axis_angle_to_matrix,
    matrix_to_quaternion,
    matrix_to_rotation_vector,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_multiply,
    quaternion_normalize,
    quaternion_to_matrix,
    rotation_vector_to_matrix,
    rpy_to_matrix,
    skew,
)

RNG = np.random.default_rng(0)


def rotation_vectors():
    """Angles that are zero, tiny, at the switch to the series, ordinary, and half turns, about many axes."""
    axes = np.concatenate([np.eye(3), -np.eye(3), RNG.normal(size=(6, 3))])
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    angles = [0, 1e-12, 1e-6, 9.99e-3, 0.0101, 0.19999, 0.20001, 1, 2.5, np.pi - 1e-7, np.pi]
    return jnp.asarray(np.concatenate([angle * axes for angle in angles]).T)


VECTORS = rotation_vectors()
QUATERNIONS = jnp.asarray(RNG.normal(size=(4, 40)))


def matrices(m):
    return np.moveaxis(np.asarray(m), -1, 0)


def test_matrices_are_rotations_and_agree_with_scipy():
    m = matrices(rotation_vector_to_matrix(VECTORS))
    np.testing.assert_allclose(m @ np.swapaxes(m, 1, 2), np.broadcast_to(np.eye(3), m.shape), atol=1e-14)
    np.testing.assert_allclose(np.linalg.det(m), 1, rtol=1e-14)
    np.testing.assert_allclose(m, Rotation.from_rotvec(np.array(VECTORS.T)).as_matrix(), atol=1e-14)


def test_a_quaternion_of_any_norm_is_a_rotation():
    m = matrices(quaternion_to_matrix(7 * QUATERNIONS))
    expected = Rotation.from_quat(np.array(QUATERNIONS.T), scalar_first=True).as_matrix()
    np.testing.assert_allclose(m, expected, atol=1e-14)


def test_exponential_and_logarithm_are_inverse():
    back = quaternion_log(quaternion_exp(VECTORS))
    half_turn = np.isclose(np.linalg.norm(VECTORS, axis=0), np.pi, atol=1e-9)
    np.testing.assert_allclose(back[:, ~half_turn], VECTORS[:, ~half_turn], atol=1e-14)
    either = np.minimum(np.abs(back - VECTORS)[:, half_turn].max(0), np.abs(back + VECTORS)[:, half_turn].max(0))
    np.testing.assert_allclose(either, 0, atol=1e-14)
    again = rotation_vector_to_matrix(matrix_to_rotation_vector(rotation_vector_to_matrix(VECTORS)))
    np.testing.assert_allclose(again, rotation_vector_to_matrix(VECTORS), atol=1e-14)


@pytest.mark.slow
def test_matrix_to_quaternion_inverts_up_to_sign():
    q = quaternion_normalize(jnp.concatenate([QUATERNIONS, quaternion_exp(VECTORS)], axis=1))
    back = matrix_to_quaternion(quaternion_to_matrix(q))
    sign = jnp.sign((back * q).sum(0))
    np.testing.assert_allclose(sign * back, q, atol=1e-14)


@pytest.mark.slow
def test_quaternion_multiplication_is_a_homomorphism():
    a, b = QUATERNIONS[:, :20], QUATERNIONS[:, 20:]
    product = matrices(quaternion_to_matrix(quaternion_multiply(a, b)))
    expected = matrices(quaternion_to_matrix(a)) @ matrices(quaternion_to_matrix(b))
    np.testing.assert_allclose(product, expected, atol=1e-14)
    unit = quaternion_normalize(a)
    one = np.broadcast_to(np.array([[1.0], [0], [0], [0]]), unit.shape)
    np.testing.assert_allclose(quaternion_multiply(unit, quaternion_conjugate(unit)), one, atol=1e-15)


def test_axis_angle_agrees_with_scipy():
    axis = np.array([2.0, -1.0, 2.0]) / 3
    m = axis_angle_to_matrix(jnp.asarray(axis), jnp.array(0.7))
    np.testing.assert_allclose(m, Rotation.from_rotvec(0.7 * axis).as_matrix(), atol=1e-15)
    np.testing.assert_allclose(m @ axis, axis, atol=1e-15)


def test_roll_pitch_yaw_follow_the_convention_of_urdf():
    rpy = jnp.asarray(RNG.uniform(-3, 3, (3, 20)))
    expected = Rotation.from_euler("xyz", np.array(rpy.T)).as_matrix()
    np.testing.assert_allclose(matrices(rpy_to_matrix(rpy)), expected, atol=1e-14)


def central(f, x, h=1e-5):
    """Central differences of order four, one column an entry of x."""

    def column(step):
        g = lambda n: f(x + n * h * step)
        return (8 * (g(1) - g(-1)) - (g(2) - g(-2))) / (12 * h)

    return jax.vmap(column, out_axes=-1)(jnp.eye(x.shape[0]))


SINGULAR = np.array(
    [
        [0, 0, 0],
        [1e-9, 0, 0],
        [0, 0.2, 0],
        [np.pi, 0, 0],
        [0, -np.pi, 0],
        [0, 0, np.pi],
        [np.pi / 3, 2 * np.pi / 3, 2 * np.pi / 3],
    ]
)
# by numpy: a module that compiles at import delays every run
ANGLES = np.linalg.norm(SINGULAR, axis=1, keepdims=True)
QUATERNIONS_OF_SINGULAR = np.hstack([np.cos(ANGLES / 2), SINGULAR / 2 * np.sinc(ANGLES / (2 * np.pi))])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "points"),
    [
        (rotation_vector_to_matrix, SINGULAR),
        (quaternion_to_matrix, QUATERNIONS_OF_SINGULAR),
        (lambda q: quaternion_log(quaternion_normalize(q)), QUATERNIONS_OF_SINGULAR[:3]),
        (lambda r: quaternion_log(quaternion_exp(r)), SINGULAR[:3]),
    ],
    ids=["exp", "quaternion", "log", "log of exp"],
)
def test_derivatives_at_the_identity_and_at_half_turns(function, points):
    both = jax.jit(jax.vmap(lambda x: (jax.jacrev(function)(x), central(function, x))))
    exact, differences = both(points)
    np.testing.assert_allclose(exact, differences, atol=1e-9)  # accuracy of the differences


@pytest.mark.slow
def test_second_derivatives_of_the_exponential_are_finite():
    second = jax.jit(jax.vmap(jax.hessian(rotation_vector_to_matrix)))
    assert np.isfinite(second(SINGULAR)).all()


@pytest.mark.slow
def test_derivative_of_matrix_to_quaternion():
    def slope(r):
        m = rotation_vector_to_matrix(r)
        f = lambda w: matrix_to_quaternion(m @ rotation_vector_to_matrix(w))
        return f(jnp.zeros(3)), jax.jacrev(f)(jnp.zeros(3))

    value, exact = jax.jit(jax.vmap(slope))(SINGULAR)
    axes = jnp.concatenate([jnp.zeros((1, 3)), jnp.eye(3)])
    expected = quaternion_multiply(value.T[..., None], axes[:, None]) / 2  # qdot = q * (0, w) / 2
    np.testing.assert_allclose(exact, jnp.moveaxis(expected, 1, 0), atol=1e-14)


@pytest.mark.slow
def test_gradients_of_the_logarithm_are_finite():
    log = lambda r: matrix_to_rotation_vector(rotation_vector_to_matrix(r))
    gradient = jax.jit(jax.vmap(jax.jacrev(log)))(SINGULAR)
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(gradient[:3], np.broadcast_to(np.eye(3), (3, 3, 3)), atol=1e-12)


@pytest.mark.slow
def test_single_precision_is_preserved():
    r = VECTORS.astype(jnp.float32)
    m = rotation_vector_to_matrix(r)
    assert m.dtype == matrix_to_rotation_vector(m).dtype == jnp.float32
    np.testing.assert_allclose(m, rotation_vector_to_matrix(VECTORS), atol=1e-6)


def test_skew_is_the_matrix_of_the_vector_product():
    a, b = RNG.normal(size=(2, 4, 5, 3))
    product = np.einsum("...ij,...j->...i", skew(jnp.asarray(a)), b)
    np.testing.assert_allclose(product, np.cross(a, b), atol=1e-15)
    np.testing.assert_array_equal(skew(jnp.asarray(a)), -np.swapaxes(skew(jnp.asarray(a)), -1, -2))
