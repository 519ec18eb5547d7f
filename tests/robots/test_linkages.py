"""Closed-loop mechanisms: assembly at zero, closed forms of their motion, and errors."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp

from jaxdyn import robots
from jaxdyn._errors import ModelError
from tests.oracles import to_pinocchio

from ._pin import PoseOracle
from ._shelf import CLOSED, DIMENSIONS, ROBOTS


@pytest.mark.parametrize("name", CLOSED)
def test_closures_are_satisfied_at_zero(name):
    model = ROBOTS[name]()
    assert model.closures
    np.testing.assert_allclose(PoseOracle(model).residuals(np.zeros(model.nq)), 0, atol=1e-14)
    if name in DIMENSIONS:
        robot, at = DIMENSIONS[name]
        for scale in (0.9, 1.1):
            place = PoseOracle(robot(at[0] * scale, *at[1:]))
            np.testing.assert_allclose(place.residuals(np.zeros(model.nq)), 0, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "free"),
    [("four_bar", 1), ("slider_crank", 1), ("five_bar", 2), ("n_four_bar", 1), ("bricard", 1), ("delta", 3)],
)
def test_degrees_of_freedom_with_closures(name, free):
    model = ROBOTS[name]()
    assert model.nv - PoseOracle(model).rank(np.zeros(model.nq)) == free


def _close_loops(place, driven):
    """The closed configuration with given first coordinates that is continuously reached from zero."""
    x = np.zeros(place.model.nq - len(driven))
    for share in np.linspace(0.1, 1.0, 10):
        gaps = lambda x: place.residuals(np.r_[share * np.asarray(driven), x])  # noqa: B023
        for _ in range(6):  # Gauss-Newton, since the gaps have more rows than are independent
            jacobian = np.array([(gaps(x + h) - gaps(x - h)) / 2e-6 for h in 1e-6 * np.eye(len(x))]).T
            x = x - np.linalg.lstsq(jacobian, gaps(x), rcond=1e-6)[0]
    np.testing.assert_allclose(gaps(x), 0, atol=1e-12)
    return np.r_[driven, x]


def test_four_bar_satisfies_freudensteins_equation():
    """`k1 cos(rocker) - k2 cos(crank) + k3 = cos(crank - rocker)`, with the angles to the ground."""
    g, a, b, c = lengths = (1.10, 0.5, 1.20, 0.75)
    place = PoseOracle(robots.four_bar(lengths, crank=1.0))
    for turn in (0.0, 0.6, -0.8):
        q = _close_loops(place, [turn])
        rocker = place(q, "rocker")
        psi, phi = np.arctan2(rocker[1, 0], rocker[0, 0]), 1.0 + turn
        k1, k2, k3 = g / a, g / c, (g * g + a * a - b * b + c * c) / (2 * a * c)
        np.testing.assert_allclose(k1 * np.cos(psi) - k2 * np.cos(phi) + k3, np.cos(phi - psi), atol=1e-10)


@pytest.mark.slow
def test_slider_position_of_the_slider_crank():
    r, l, start = 0.2, 0.5, 1.0
    place = PoseOracle(robots.slider_crank((r, l), crank=start))
    for turn in (0.0, 0.9, 2.0):
        q = _close_loops(place, [turn])
        t = start + turn
        np.testing.assert_allclose(
            place(q, "slider")[:3, 3], [r * np.cos(t) + np.sqrt(l**2 - (r * np.sin(t)) ** 2), 0, 0], atol=1e-10
        )


def test_rods_of_the_five_bar_meet_above():
    place = PoseOracle(robots.five_bar())
    tool = place(np.zeros(4), "tool")[:3, 3]
    np.testing.assert_allclose(tool[0], 0.15, atol=1e-14)
    across = 0.3 + 2 * 0.25 * np.cos(np.pi / 3)
    np.testing.assert_allclose(tool[1], 0.25 * np.sin(np.pi / 3) + np.sqrt(0.4**2 - (across / 2) ** 2), rtol=1e-13)


def test_n_four_bar_starts_as_the_benchmark():
    """Upright at the start, with a lower rank where all bars are collinear."""
    model = robots.n_four_bar(2)
    assert model.num_links == 5
    np.testing.assert_allclose(model.links.mass, 1.0)
    place = PoseOracle(model)
    for k in range(3):
        np.testing.assert_allclose(place(np.zeros(5), f"B{k}")[:3, 3], [k, 1, 0], atol=1e-14)
    upright = {"bar0", "bar1", "bar2"}
    turn = lambda angle: np.array([-angle if name in upright else angle for name in model.link_names])
    for angle in (0.3, 1.0):
        np.testing.assert_allclose(place.residuals(turn(angle)), 0, atol=1e-14)
        np.testing.assert_allclose(place(turn(angle), "B0")[:3, 3], [np.sin(angle), np.cos(angle), 0], atol=1e-14)
        assert place.rank(turn(angle)) == 4
    assert place.rank(turn(np.pi / 2)) == 2  # n + 1 degrees of freedom of 2 n + 1 joints


def test_n_four_bar_motion_agrees_with_the_benchmark():
    """The bars stay parallel, so that `3 th'' = 3.5 g sin th`; position at 10 s as in the benchmark library."""
    model = robots.n_four_bar(2)
    oracle = to_pinocchio(model)
    v = np.array([-1.0 if name.startswith("bar") else 1.0 for name in model.link_names])
    for angle in (0.0, 0.4, 2.0):
        q = angle * v
        np.testing.assert_allclose(v @ oracle.mass_matrix(q) @ v, 3, rtol=1e-12)
        weight = oracle.v_back(pin.computeGeneralizedGravity(oracle.model, oracle.data, oracle.q(q)))
        np.testing.assert_allclose(weight @ v, -3.5 * 9.81 * np.sin(angle), atol=1e-12)
    rate = lambda t, y: [y[1], 3.5 * 9.81 / 3 * np.sin(y[0])]
    angle, speed = solve_ivp(rate, (0, 10), [0, 1], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    np.testing.assert_allclose([np.sin(angle), np.cos(angle)], [0.3284581112, 0.9445185382], atol=1e-8)
    velocity = [speed * np.cos(angle), -speed * np.sin(angle)]
    np.testing.assert_allclose(velocity, [1.4230514702, -0.4948688455], atol=1e-7)


@pytest.mark.slow
def test_bricard_agrees_with_the_benchmark():
    model = robots.bricard()
    place = PoseOracle(model)
    corners = [(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1)]
    for k, corner in enumerate(corners, 1):
        pose = place(np.zeros(5), f"bar{k}")
        np.testing.assert_allclose(pose[:3, 3], corner, atol=1e-14)
        np.testing.assert_allclose(pose[:3, :3], np.eye(3), atol=1e-14)
        joint = model.joint(f"joint{k}").joint
        np.testing.assert_array_equal(joint.axis, np.eye(3)["xyz".index("yzxyz"[k - 1])])
    np.testing.assert_array_equal(place(np.zeros(5), "P3")[:3, 3], corners[2])
    moments = np.linalg.eigvalsh(model.link("bar2").inertia)
    np.testing.assert_allclose(moments, [0.02 / 12, 1.01 / 12, 1.01 / 12], rtol=1e-12)
    q = _close_loops(place, [0.2])
    assert place.rank(np.zeros(5)) == place.rank(q) == 4


@pytest.mark.slow
def test_delta_platform_is_one_rod_length_from_all_elbows():
    """For all arm angles."""
    model = robots.delta()
    place = PoseOracle(model)
    q = _close_loops(place, [0.2, -0.1, 0.3])
    middle = place(q, "platform")[:3, 3]
    for k in range(3):
        turn = 2 * np.pi * k / 3
        radial = np.array([np.cos(turn), np.sin(turn), 0])
        angle = 0.5 + q[k]
        elbow = (0.2 + 0.3 * np.cos(angle)) * radial - [0, 0, 0.3 * np.sin(angle)]
        np.testing.assert_allclose(np.linalg.norm(middle + 0.05 * radial - elbow), 0.8, rtol=1e-10)
    assert middle[2] < -0.8


def _arm_angles(platform, radii, lengths):
    """The inverse kinematics of a delta robot in closed form: `E cos th + F sin th + G = 0` for each arm.

    Half-angle substitution, of the two solutions the one with the knee outwards (Williams, "The delta parallel robot:
    kinematics solutions", 2016; there the arms are numbered and measured otherwise).
    """
    (base, corner), (upper, rod), angles = radii, lengths, []
    for k in range(3):
        c, s = np.cos(2 * np.pi * k / 3), np.sin(2 * np.pi * k / 3)
        x, y, z = c * platform[0] + s * platform[1] + corner - base, c * platform[1] - s * platform[0], platform[2]
        e, f, g = -2 * upper * x, 2 * upper * z, x * x + y * y + z * z + upper**2 - rod**2
        both = [2 * np.arctan((-f + sign * np.sqrt(e * e + f * f - g * g)) / (g - e)) for sign in (1, -1)]
        angles.append(max(both, key=np.cos))
    return np.array(angles)


def test_delta_inverse_kinematics_agree_with_the_closed_form():
    """With the angles of the closed form the closures are satisfied for all platform positions within reach."""
    place = PoseOracle(robots.delta())
    home = place(np.zeros(6), "platform")[:3, 3]
    np.testing.assert_allclose(_arm_angles(home, (0.2, 0.05), (0.3, 0.8)), 0.5, rtol=1e-12)
    for move in ([0.1, 0.0, 0.05], [-0.15, 0.2, -0.1], [0.02, -0.3, 0.1]):
        arms = _arm_angles(home + move, (0.2, 0.05), (0.3, 0.8)) - 0.5
        assert np.abs(arms).max() > 0.1
        np.testing.assert_allclose(place.residuals(np.r_[arms, move]), 0, atol=1e-12)


def test_delta_has_the_shared_masses_of_codourey():
    """Half of each parallelogram's mass at the end of its arm, the other half on the platform."""
    place = PoseOracle(robots.delta())
    m = place.oracle.mass_matrix(np.array([0.2, -0.1, 0.3, 0.1, 0.0, -0.1]))
    np.testing.assert_allclose(m[:3, :3], (1.0 / 3 + 0.3 / 2) * 0.3**2 * np.eye(3), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(m[3:, 3:], (0.5 + 3 * 0.3 / 2) * np.eye(3), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(m[:3, 3:], 0, atol=1e-14)


def test_dimensions_that_cannot_be_assembled_are_refused():
    with pytest.raises(ModelError, match="four-bar linkage cannot be assembled"):
        robots.four_bar((3.0, 0.5, 1.2, 0.75))
    with pytest.raises(ModelError, match="slider-crank cannot be assembled"):
        robots.slider_crank((0.5, 0.2), crank=1.5)
    with pytest.raises(ModelError, match="five-bar linkage cannot be assembled"):
        robots.five_bar((2.0, 0.25, 0.4))
    with pytest.raises(ModelError, match="delta robot cannot be assembled"):
        robots.delta((1.0, 0.05))
    with pytest.raises(ValueError, match="expected at least 1 loop"):
        robots.n_four_bar(0)
