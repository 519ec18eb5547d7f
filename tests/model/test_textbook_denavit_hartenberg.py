"""Robots from Denavit-Hartenberg tables against the matrices of both conventions."""

import numpy as np
import pytest

from jaxdyn._errors import ModelError
from jaxdyn.model import DHRow, from_denavit_hartenberg, from_modified_denavit_hartenberg
from jaxdyn.spatial import Pose

from ._serial_truth import GRAVITY, body, check_gradient, combine_leaves, evaluate, homogeneous

ROWS = (
    DHRow(0.10, 0.3, 0.2, 0.4),
    DHRow(0.20, -1.3, 0.1, 0.2, True),
    DHRow(-0.30, np.pi / 2, 0.1, -0.1),
    DHRow(0.0, np.pi, 0.3, 0.0),
)
SLIDES = np.array([row.slides for row in ROWS])


def _rot(k, angle):
    c, s = np.cos(angle), np.sin(angle)
    i, j = (k + 1) % 3, (k + 2) % 3
    matrix = np.eye(4, dtype=np.result_type(angle, float))
    matrix[i, i] = matrix[j, j] = c
    matrix[i, j], matrix[j, i] = -s, s
    return matrix


def _trans(k, length):
    matrix = np.eye(4, dtype=np.result_type(length, float))
    matrix[k, 3] = length
    return matrix


def _classic(row, q):
    d, theta = (row.d + q, row.theta) if row.slides else (row.d, row.theta + q)
    return _rot(2, theta) @ _trans(2, d) @ _trans(0, row.a) @ _rot(0, row.alpha)


def _modified(row, q):
    d, theta = (row.d + q, row.theta) if row.slides else (row.d, row.theta + q)
    return _rot(0, row.alpha) @ _trans(0, row.a) @ _rot(2, theta) @ _trans(2, d)


def _frames(step, base, q):
    frames = [base]
    for row, x in zip(ROWS, q, strict=True):
        frames.append(frames[-1] @ step(row, x))
    return frames


def _jacobians(frames, axes, bodies):
    """For each link the Jacobians of its centre of mass and of its angular velocity, in world axes."""
    out = []
    for link, given in enumerate(bodies, 1):
        center = frames[link][:3, 3] + frames[link][:3, :3] @ np.asarray(given.com)
        jv, jw = np.zeros((2, 3, len(bodies)), center.dtype)
        for k, axis in enumerate(axes[:link]):
            z, o = axis[:3, 2], axis[:3, 3]
            jv[:, k], jw[:, k] = (z, 0 * z) if SLIDES[k] else (np.cross(z, center - o), z)
        out.append((jv, jw))
    return out


def _efforts(step, base, first, bodies, q, v, a):
    """`sum Jv^T m (Jv a + Jv' v - g) + Jw^T (I (Jw a + Jw' v) + w x I w)`, rates by a complex step.

    `first` is the frame along whose z axis the first joint moves.
    """
    tau = np.zeros(len(bodies))
    frames, h = _frames(step, base, q), 1e-30
    jacobians = lambda frames: _jacobians(frames, frames[first : first + 4], bodies)
    ahead = jacobians(_frames(step, base, q + 1j * h * v))
    for frame, given, (jv, jw), (jv_ahead, jw_ahead) in zip(frames[1:], bodies, jacobians(frames), ahead, strict=True):
        inertia = frame[:3, :3] @ np.asarray(given.inertia) @ frame[:3, :3].T
        w = jw @ v
        tau += float(given.mass) * jv.T @ (jv @ a + jv_ahead.imag @ v / h - GRAVITY)
        tau += jw.T @ (inertia @ (jw @ a + jw_ahead.imag @ v / h) + np.cross(w, inertia @ w))
    return tau


@pytest.mark.parametrize(
    ("describe", "step", "first"),
    [(from_denavit_hartenberg, _classic, 0), (from_modified_denavit_hartenberg, _modified, 1)],
)
def test_frames_and_efforts_agree_with_the_table(describe, step, first):
    rng = np.random.default_rng(0)
    bodies = [body(rng, centered=False) for _ in ROWS]
    base, tool = _rot(1, 0.4) @ _trans(0, 0.3), _rot(0, -0.7) @ _trans(2, 0.2)
    model = describe(ROWS, bodies, base=base, tool=Pose(tool[:3, :3], tool[:3, 3]), gravity=GRAVITY)
    for _ in range(5):
        q, v, a = rng.standard_normal((3, 4))
        frames = _frames(step, base, q)
        poses, tau = evaluate(model, q, v, a)
        for k, frame in enumerate(frames[1:], 1):
            np.testing.assert_allclose(poses[f"link{k}_dh"], frame, atol=1e-13)
        np.testing.assert_allclose(poses["tool"], frames[-1] @ tool, atol=1e-13)
        np.testing.assert_allclose(tau, _efforts(step, base, first, bodies, q, v, a), atol=1e-11)


@pytest.mark.slow
def test_derivatives_with_respect_to_every_parameter_of_a_row():
    bodies = [body(np.random.default_rng(1), centered=False) for _ in ROWS]
    table = [tuple(row) for row in ROWS]

    def number(parameters):
        rows = [*table[:2], (*parameters, False), table[3]]
        return combine_leaves(from_denavit_hartenberg(rows, bodies)) + combine_leaves(
            from_modified_denavit_hartenberg(rows, bodies)
        )

    check_gradient(number, np.array(table[2][:4]))


def test_properties_are_numbers_or_one_per_joint():
    bodies = [body(np.random.default_rng(2), centered=False)] * 4
    model = from_denavit_hartenberg(ROWS, bodies, damping=0.3, armature=(1.0, 2.0, 3.0, 4.0), name="arm")
    np.testing.assert_array_equal(model.properties.damping, [0.3] * 4)
    np.testing.assert_array_equal(model.properties.armature, [1, 2, 3, 4])
    assert model.name == "arm"
    assert model.frame_names == ("link1_dh", "link2_dh", "link3_dh", "link4_dh")


def test_wrong_counts_and_shapes_are_refused():
    bodies = [body(np.random.default_rng(2), centered=False)] * 4
    with pytest.raises(ModelError, match="3 inertias for 4 joints"):
        from_denavit_hartenberg(ROWS, bodies[:3])
    with pytest.raises(ModelError, match="2 values of damping for 4 joints"):
        from_denavit_hartenberg(ROWS, bodies, damping=(1.0, 2.0))
    with pytest.raises(ModelError, match=r"tool has shape \(3, 3\)"):
        from_modified_denavit_hartenberg(ROWS, bodies, tool=np.eye(3))
    with pytest.raises(ModelError, match="at least one row"):
        from_denavit_hartenberg((), ())


def test_a_table_of_zeros_is_exactly_the_identity():
    """Placements are quaternions; a table of zeros is the identity without rounding."""
    model = from_denavit_hartenberg([(0, 0, 0, 0)], [body(np.random.default_rng(3), centered=False)])
    np.testing.assert_array_equal(model.placements.rotation, [[1, 0, 0, 0]])
    np.testing.assert_array_equal(homogeneous(np.eye(3), model.placements.translation[0]), np.eye(4))
