"""Robots from link vectors against the recursions of Vukobratovic and Potkonjak, written out here."""

import numpy as np
import pytest

from jaxdyn._errors import ModelError
from jaxdyn.model import JointVectors, from_link_vectors

from ._serial_truth import GRAVITY, body, check_gradient, combine_leaves, evaluate, homogeneous


def _robot(seed=0):
    """A plain joint, both specificities, a linear joint with a fixed angle, and one with auxiliary vectors."""
    rng = np.random.default_rng(seed)
    unit = lambda: (lambda x: x / np.linalg.norm(x))(rng.standard_normal(3))
    arm = lambda: 0.3 * rng.standard_normal(3)
    e = [(unit(), unit()) for _ in range(5)]
    joints = [
        JointVectors(*e[0], arm(), arm()),
        JointVectors(*e[1], 0.4 * e[1][0], arm(), star_before=unit()),
        JointVectors(*e[2], arm(), -0.2 * e[2][1], star_after=unit()),
        JointVectors(*e[3], arm(), arm(), linear=True, alpha=0.7),
        JointVectors(*e[4], 0.1 * e[4][0], 0.3 * e[4][1], linear=True, star_before=unit(), star_after=3 * unit()),
    ]
    return rng, joints, [body(rng, centered=True) for _ in joints]


def _rodrigues(e, angle, vector):
    return (
        vector * np.cos(angle) + (1 - np.cos(angle)) * (e @ vector) * e + np.cross(e, vector) * np.sin(angle)
    )  # 20.108, with the scalar product


def _relative(joint, q):
    """`A_(j-1,j)`, 20.101 to 20.109."""
    upper = joint.r_before if joint.star_before is None else joint.star_before
    lower = joint.r_after if joint.star_after is None else joint.star_after
    e_, e = joint.e_before, joint.e_after
    a_ = -np.cross(e_, np.cross(upper, e_))
    a = np.cross(e, np.cross(lower, e))
    a_, a = a_ / np.linalg.norm(a_), a / np.linalg.norm(a)
    zero = np.column_stack([e_, a_, np.cross(e_, a_)]) @ np.linalg.inv(np.column_stack([e, a, np.cross(e, a)]))
    angle = joint.alpha if joint.linear else q
    return np.column_stack([_rodrigues(e_, angle, column) for column in zero.T])


def _recursion(joints, bodies, q, v, acc):
    """Frames at the centres of mass and the drives: 20.23 to 20.27, 20.49 to 20.51."""
    turn, center = np.eye(3), np.zeros(3)
    w, eps, accel = np.zeros((3, 3))
    links = []
    for joint, x, dx, ddx in zip(joints, q, v, acc, strict=True):
        s = float(joint.linear)
        before = turn @ joint.r_before
        center, turn_before, w0, eps0 = center - before, turn, w, eps
        turn = turn @ _relative(joint, x)
        e = turn @ joint.e_after
        np.testing.assert_allclose(e, turn_before @ joint.e_before, atol=1e-14)
        start = center  # S_j, or the zero point S'_j of a linear joint
        after = turn @ joint.r_after + s * x * e
        center = center + after
        w = w0 + (1 - s) * dx * e
        eps = eps0 + (1 - s) * (ddx * e + dx * np.cross(w0, e))
        accel = (
            accel
            - np.cross(eps0, before)
            - np.cross(w0, np.cross(w0, before))
            + np.cross(eps, after)
            + np.cross(w, np.cross(w, after))
            + s * (ddx * e + 2 * dx * np.cross(w, e))
        )
        links.append((turn, center, start, e, s, w, eps, accel))
    tau = np.zeros(len(joints))
    for j, (_, _, start, e, s, *_) in enumerate(links):
        force, moment = np.zeros(3), np.zeros(3)
        for (r, c, _, _, _, wk, ek, ak), given in zip(links[j:], bodies[j:], strict=True):
            f = float(given.mass) * (ak - GRAVITY)
            inertia = r @ np.asarray(given.inertia) @ r.T
            force += f
            moment += inertia @ ek + np.cross(wk, inertia @ wk) + np.cross(c - start, f)
        tau[j] = force @ e if s else moment @ e
    return [homogeneous(r, c) for r, c, *_ in links], tau


@pytest.mark.slow
def test_frames_and_efforts_agree_with_the_recursion():
    rng, joints, bodies = _robot()
    model = from_link_vectors(joints, bodies, gravity=GRAVITY)
    for _ in range(5):
        q, v, a = rng.standard_normal((3, 5))
        frames, expected = _recursion(joints, bodies, q, v, a)
        poses, tau = evaluate(model, q, v, a)
        for k, frame in enumerate(frames, 1):
            np.testing.assert_allclose(poses[f"link{k}_com"], frame, atol=1e-12)
        np.testing.assert_allclose(tau, expected, atol=1e-10)


@pytest.mark.slow
def test_zero_configuration_is_the_extended_position():
    """Seen along the axis of the first joint, both centres of mass and the joint are in line, outwards."""
    _, joints, bodies = _robot(1)
    model = from_link_vectors(joints, bodies, gravity=GRAVITY)
    zero = np.zeros(5)
    poses, _ = evaluate(model, zero, zero, zero)
    joint = np.asarray(model.placements.translation[0])
    e = joints[0].e_before
    across = lambda x: x - (x @ e) * e
    inwards, outwards = across(-joint), across(poses["link1_com"][:3, 3] - joint)
    cosine = inwards @ outwards / np.linalg.norm(inwards) / np.linalg.norm(outwards)
    np.testing.assert_allclose(cosine, -1, atol=1e-13)


@pytest.mark.slow
def test_derivatives_with_respect_to_vectors_axes_and_the_fixed_angle():
    _, joints, bodies = _robot(2)

    def number(numbers):
        first = joints[0]._replace(e_after=numbers[:3], r_before=numbers[3:6], r_after=numbers[6:9])
        second = joints[1]._replace(star_before=numbers[9:12])
        fourth = joints[3]._replace(alpha=numbers[12])
        return combine_leaves(from_link_vectors([first, second, joints[2], fourth, joints[4]], bodies))

    at = [joints[0].e_after, joints[0].r_before, joints[0].r_after, joints[1].star_before, [joints[3].alpha]]
    check_gradient(number, np.concatenate(at))


def test_a_vector_parallel_to_the_axis_needs_an_auxiliary_vector():
    _, joints, bodies = _robot()
    for k, missing in ((1, "star_before"), (2, "star_after")):
        plain = list(joints)
        plain[k] = joints[k]._replace(**{missing: None})
        with pytest.raises(ModelError, match=f"joint {k + 1} is .*give a {missing}"):
            from_link_vectors(plain, bodies)
    with pytest.raises(ModelError, match="e_before of joint 1 is zero"):
        from_link_vectors([joints[0]._replace(e_before=np.zeros(3)), *joints[1:]], bodies)
    with pytest.raises(ModelError, match="give at least one"):
        from_link_vectors((), ())
