"""Robots from screws against products of exponentials and the Newton-Euler recursion of Lynch and Park."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from jaxdyn._errors import ModelError
from jaxdyn.joints import Helical, Planar, Prismatic, Revolute
from jaxdyn.model import from_screws, from_space_screws

from ._serial_truth import GRAVITY, body, check_gradient, combine_leaves, evaluate, homogeneous


def _cross_matrix(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def _bracket(screw):
    out = np.zeros((4, 4))
    out[:3, :3], out[:3, 3] = _cross_matrix(screw[:3]), screw[3:]
    return out


def _adjoint(t):
    r, p = t[:3, :3], t[:3, 3]
    return np.block([[r, np.zeros((3, 3))], [_cross_matrix(p) @ r, r]])


def _lie(v):
    return np.block([[_cross_matrix(v[:3]), np.zeros((3, 3))], [_cross_matrix(v[3:]), _cross_matrix(v[:3])]])


def _random_pose(rng):
    twist = rng.standard_normal(6)
    return expm(_bracket(twist))


def _robot(seed=0):
    """A revolute, a helical, a prismatic and a revolute joint with screws in their own frames."""
    rng = np.random.default_rng(seed)
    screws = []
    for pitch in (0.0, 0.2, None, 0.0):
        axis, point = rng.standard_normal((2, 3))
        axis /= np.linalg.norm(axis)
        w, v = (0 * axis, axis) if pitch is None else (axis, np.cross(point, axis) + pitch * axis)
        screws.append(np.concatenate([w, v]))
    homes = [_random_pose(rng) for _ in screws]
    bodies = [body(rng, centered=True) for _ in screws]
    spatial = [np.block([[b.inertia, np.zeros((3, 3))], [np.zeros((3, 3)), b.mass * np.eye(3)]]) for b in bodies]
    return rng, screws, homes, spatial


KINDS = (Revolute, Helical, Prismatic, Revolute)


def _newton_euler(screws, homes, spatial, q, v, a):
    """Twists and accelerations outwards, wrenches inwards, all in the frames at the centres of mass."""
    steps = [m @ expm(_bracket(s) * x) for m, s, x in zip(homes, screws, q, strict=True)]
    inwards = [np.linalg.inv(t) for t in steps]
    twist, accel = np.zeros(6), np.concatenate([np.zeros(3), -GRAVITY])
    twists, accels = [], []
    for t, s, dv, da in zip(inwards, screws, v, a, strict=True):
        twist = _adjoint(t) @ twist + s * dv
        accel = _adjoint(t) @ accel + _lie(twist) @ s * dv + s * da
        twists.append(twist)
        accels.append(accel)
    wrench, tau = np.zeros(6), np.zeros(len(screws))
    for k in reversed(range(len(screws))):
        onward = _adjoint(inwards[k + 1]).T @ wrench if k + 1 < len(screws) else 0
        wrench = onward + spatial[k] @ accels[k] - _lie(twists[k]).T @ spatial[k] @ twists[k]
        tau[k] = wrench @ screws[k]
    frames = [np.eye(4)]
    for t in steps:
        frames.append(frames[-1] @ t)
    return frames[1:], tau


@pytest.mark.slow
def test_body_screws_agree_with_exponentials_and_newton_euler():
    rng, screws, homes, spatial = _robot()
    tool = _random_pose(rng)
    model = from_screws(screws, homes, spatial, tool=tool, gravity=GRAVITY)
    assert tuple(type(model.joint(name).joint) for name in model.joint_names) == KINDS
    for _ in range(5):
        q, v, a = rng.standard_normal((3, 4))
        frames, expected = _newton_euler(screws, homes, spatial, q, v, a)
        poses, tau = evaluate(model, q, v, a)
        for k, frame in enumerate(frames, 1):
            np.testing.assert_allclose(poses[f"link{k}_com"], frame, atol=1e-12)
        np.testing.assert_allclose(poses["tool"], frames[-1] @ tool, atol=1e-12)
        np.testing.assert_allclose(tau, expected, atol=1e-10)


@pytest.mark.slow
def test_space_screws_agree_with_the_product_of_exponentials():
    rng, screws, homes, spatial = _robot(1)
    at_zero, before = [], np.eye(4)
    for home in homes:
        before = before @ home
        at_zero.append(before)
    space = [_adjoint(m) @ s for m, s in zip(at_zero, screws, strict=True)]
    tool = _random_pose(rng)
    # The same structure as in the other test, so the same compiled function.
    model = from_space_screws(space, at_zero, spatial, joints=KINDS, tool=tool, gravity=GRAVITY)
    q, v, a = rng.standard_normal((3, 4))
    poses, tau = evaluate(model, q, v, a)
    product = np.eye(4)
    for k, (s, m, x) in enumerate(zip(space, at_zero, q, strict=True), 1):
        product = product @ expm(_bracket(s) * x)
        np.testing.assert_allclose(poses[f"link{k}_com"], product @ m, atol=1e-11)
    np.testing.assert_allclose(poses["tool"], product @ tool, atol=1e-11)
    np.testing.assert_allclose(tau, _newton_euler(screws, homes, spatial, q, v, a)[1], atol=1e-9)


def test_matrix_exponentials_of_negrean():
    """`exp(k x q Delta)` and the column b of equation 4, where `k k^T` has to be `(k x)^2`, for both kinds of axis."""
    rng = np.random.default_rng(2)
    axes = rng.standard_normal((4, 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    points, deltas = rng.standard_normal((4, 3)), (1, 1, 0, 1)
    screws, columns = [], []
    for k, p, delta in zip(axes, points, deltas, strict=True):
        v = np.cross(p, k) if delta else k
        screws.append(np.concatenate([delta * k, v]))
        columns.append(v)
    home = _random_pose(rng)
    bodies = [body(rng, centered=True) for _ in screws]
    model = from_space_screws(screws, [home] * 4, bodies, joints=KINDS, tool=home)
    q, zero = rng.standard_normal(4), np.zeros(4)
    poses, _ = evaluate(model, q, zero, zero)
    product = np.eye(4)
    for link, (k, v, x, delta) in enumerate(zip(axes, columns, q, deltas, strict=True), 1):
        angle = x * delta
        b = (
            np.eye(3) * x
            + _cross_matrix(k) * (1 - np.cos(angle))
            + _cross_matrix(k) @ _cross_matrix(k) * (x - np.sin(angle))
        ) @ v
        product = product @ homogeneous(expm(_cross_matrix(k) * angle), b)
        np.testing.assert_allclose(poses[f"link{link}_com"], product @ home, atol=1e-12)


@pytest.mark.slow
def test_derivatives_with_respect_to_screws_homes_and_inertias():
    _, screws, homes, spatial = _robot(3)

    def number(numbers):
        traced = [screws[0], numbers[:6], numbers[6:12], screws[3]]
        placed = [*homes[:3], jnp.asarray(homes[3]).at[:3, 3].add(numbers[12:15])]
        weights = [*spatial[:3], spatial[3] * numbers[15]]
        return combine_leaves(from_screws(traced, placed, weights, joints=KINDS))

    check_gradient(number, np.concatenate([screws[1], screws[2], np.zeros(3), np.ones(1)]))


def test_invalid_screws_are_refused():
    _, screws, homes, spatial = _robot()
    skewed = np.array(spatial[0])
    skewed[0, 4] = skewed[4, 0] = 1.0
    with pytest.raises(ModelError, match=r"joint 1 is not diag\(I, m 1\)"):
        from_screws(screws, homes, [skewed, *spatial[1:]])
    with pytest.raises(ModelError, match="joint 2 cannot be Planar"):
        from_screws(screws, homes, spatial, joints=(Revolute, Planar, Prismatic, Revolute))
    with pytest.raises(ModelError, match="3 home poses for 4 joints"):
        from_screws(screws, homes[:3], spatial)
    with pytest.raises(ModelError, match=r"joint 1 has shape \(3,\)"):
        from_screws([s[:3] for s in screws], homes, spatial)
    with pytest.raises(ModelError, match="joint 1 is traced.*joints="):
        check_gradient(lambda s: from_screws([s, *screws[1:]], homes, spatial).links.mass[0], screws[0])
    with pytest.raises(ModelError, match="axis is .*, expected finite numbers, not all of them zero"):
        from_screws([np.zeros(6), *screws[1:]], homes, spatial)
