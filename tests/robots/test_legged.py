"""Legged robots against a public description, published kinetic energies, and an impact."""

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from jaxdyn import robots

from ._pin import PoseOracle


@pytest.fixture(scope="module")
def description():
    folder = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots" / "solo_description"
    return pin.buildModelFromUrdf(str(folder / "robots" / "solo12.urdf"), pin.JointModelFreeFlyer())


def test_quadruped_agrees_with_its_description(description):
    place, data = PoseOracle(robots.quadruped()), description.createData()
    order = [description.joints[description.getJointId(name)].idx_q for name in description.names[2:]]
    assert [name for name in place.model.joint_names if not name.endswith(("ankle", "base_joint"))] == list(
        description.names[2:]
    )
    assert order == list(range(7, 19))
    for angles in np.random.default_rng(0).uniform(-1, 1, (3, 12)):
        q = np.r_[1.0, np.zeros(6), angles]
        there = pin.neutral(description)
        there[7:] = angles
        upper = np.triu(pin.crba(description, data, there))
        expected = upper + np.triu(upper, 1).T
        swap = np.r_[3:6, 0:3, 6:18]  # the base's angular half first
        np.testing.assert_allclose(place.oracle.mass_matrix(q), expected[np.ix_(swap, swap)], rtol=1e-9, atol=1e-12)
        pin.framesForwardKinematics(description, data, there)
        for leg in ("FL", "FR", "HL", "HR"):
            foot = data.oMf[description.getFrameId(f"{leg}_FOOT")].homogeneous
            np.testing.assert_allclose(place(q, f"{leg}_foot"), foot, atol=1e-13)


def test_biped_has_the_kinetic_energy_of_the_authors_program():
    """Of each link `1/2 m |v|^2 + m v . (w x c) + 1/2 I w^2`, with v and I at its joint."""
    lengths, masses, centers, inertias = (0.63, 0.4, 0.4), (12.0, 6.8, 3.2), (0.24, 0.11, 0.24), (1.33, 0.47, 0.20)
    place = PoseOracle(robots.five_link_biped())
    rng = np.random.default_rng(1)
    down = lambda angle: np.array([-np.sin(angle), -np.cos(angle)])  # in x and z, turned about y
    rate = lambda angle: np.array([-np.cos(angle), np.sin(angle)])
    for _ in range(3):
        q, v = rng.standard_normal((2, 7))
        hip, energy = v[:2], 0.0

        def link(k, speed, angle, w, up=1.0):
            return (
                0.5 * masses[k] * speed @ speed
                + up * masses[k] * centers[k] * w * speed @ rate(angle)
                + 0.5 * inertias[k] * w**2
            )

        energy += link(0, hip, q[2], v[2], up=-1.0)
        for leg in (3, 5):
            femur, tibia = q[2] + q[leg], q[2] + q[leg] + q[leg + 1]
            w1, w2 = v[2] + v[leg], v[2] + v[leg] + v[leg + 1]
            knee = hip + lengths[1] * w1 * rate(femur)
            energy += link(1, hip, femur, w1) + link(2, knee, tibia, w2)
        motors = 0.5 * 0.83 * v[3:] @ v[3:]
        np.testing.assert_allclose(0.5 * v @ place.oracle.mass_matrix(q) @ v, energy + motors, rtol=1e-12)
        foot = q[:2] + 0.4 * down(q[2] + q[3]) + 0.4 * down(q[2] + q[3] + q[4])
        np.testing.assert_allclose(place(q, "left_foot")[[0, 2], 3], foot, atol=1e-13)


@pytest.mark.parametrize("inertia", [0.02, 0.3])
def test_energy_of_the_rimless_wheel_after_a_touchdown_agrees_with_mcgeer(inertia):
    """A plastic impact on the next spoke, by projection with the mass matrix."""
    spokes, length, mass = 8, 1.3, 2.0
    place = PoseOracle(robots.rimless_wheel(spokes, length, mass, inertia))
    between = 2 * np.pi / spokes
    q = np.array([0.0, 0.0, between / 2])  # both spokes touch
    tips = [place(q, f"tip{k}")[[0, 2], 3] for k in (0, 1)]
    np.testing.assert_allclose(tips[0][1], tips[1][1], atol=1e-14)
    assert tips[1][0] > tips[0][0]
    contact = lambda tip: np.array([[1.0, 0.0, tip[1]], [0.0, 1.0, -tip[0]]])  # velocity of a tip of the turning hub
    before = np.array([-tips[0][1], tips[0][0], 1.0])  # turning on the last spoke
    np.testing.assert_allclose(contact(tips[0]) @ before, 0, atol=1e-14)
    m, j = place.oracle.mass_matrix(q), contact(tips[1])
    push = np.linalg.solve(m, j.T)
    after = before - push @ np.linalg.solve(j @ push, j @ before)
    share = (after @ m @ after) / (before @ m @ before)
    ratio = inertia / (mass * length**2)
    np.testing.assert_allclose(share, ((np.cos(between) + ratio) / (1 + ratio)) ** 2, rtol=1e-12)


def test_too_few_spokes_are_refused():
    with pytest.raises(ValueError, match="expected at least 3"):
        robots.rimless_wheel(2)
