"""Shared by the tests of the textbook descriptions: bodies without symmetries, evaluation, gradient checks."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.dynamics import rnea
from jaxdyn.kinematics import forward_kinematics
from jaxdyn.model import Model
from jaxdyn.spatial import Inertia, quaternion_to_matrix

GRAVITY = np.array([0.3, -0.2, -9.7])


def body(rng, *, centered: bool) -> Inertia:
    """A random body in axes that are not principal."""
    points, masses = rng.standard_normal((6, 3)) * 0.2, rng.uniform(0.2, 1, 6)
    mass, com = masses.sum(), masses @ points / masses.sum()
    arms = points - com
    inertia = sum(m * (d @ d * np.eye(3) - np.outer(d, d)) for m, d in zip(masses, arms, strict=True))
    return Inertia(mass, np.zeros(3) if centered else com, inertia)


@jax.jit
def _evaluate(model: Model, q, v, a):
    poses = forward_kinematics(model, q)
    return poses.rotation, poses.translation, rnea(model, q, v, a)


def evaluate(model: Model, q, v, a):
    """Poses of all named frames as homogeneous matrices, and the efforts of inverse dynamics."""
    rotation, translation, tau = _evaluate(model, *map(jnp.asarray, (q, v, a)))
    out = {}
    for k, (name, link) in enumerate(zip(model.frame_names, model.topology.frame_links, strict=True)):
        own = homogeneous(quaternion_to_matrix(np.asarray(model.frames.rotation[k])), model.frames.translation[k])
        out[name] = homogeneous(rotation[link], translation[link]) @ own
    return out, np.asarray(tau)


def homogeneous(rotation, translation) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, translation
    return matrix


def combine_leaves(model: Model):
    """A linear combination of all leaves of a model, whose derivative involves the derivative of every leaf."""
    leaves = [leaf.ravel() for leaf in jax.tree.leaves((model.links, model.placements, model.joints, model.frames))]
    numbers = jnp.concatenate(leaves)
    return numbers @ np.random.default_rng(9).standard_normal(numbers.size)


def check_gradient(function, x, step=1e-6):
    """The derivative of a scalar function against central differences, which evaluate the numpy path."""
    gradient = np.asarray(jax.jit(jax.grad(function))(jnp.asarray(x)))
    x = np.asarray(x, float)
    expected = np.empty_like(x)
    for index in np.ndindex(x.shape):
        shift = np.zeros_like(x)
        shift[index] = step
        expected[index] = (function(x + shift) - function(x - shift)) / (2 * step)
    np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-7)
    assert np.abs(expected).max() > 1e-3
