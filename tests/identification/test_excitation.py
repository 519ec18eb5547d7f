"""Excitation trajectories: motion curves, limits, information of the base regressor, and optimal design."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.identification import (
    ExcitationStatus,
    FourierMotion,
    MotionLimits,
    SplineMotion,
    design_excitation,
    information_of,
    link_above,
    link_in_box,
    links_apart,
    log_condition,
    log_volume,
    motion_limits,
    random_fourier,
    random_spline,
)


def _arm():
    b = jd.ModelBuilder()
    for name, parent in (("upper", "world"), ("lower", "upper")):
        body = jd.spatial.cylinder(0.05, 0.5, density=500.0).moved([0.02, 0, -0.25])
        place = {} if parent == "world" else {"translation": [0, 0, -0.5]}
        b.add_link(name, parent, jd.joints.Revolute([0, 1, 0]), body, joint_name=name, **place)
    return b.build()


ROBOT = _arm()
LIMITS = MotionLimits(
    jnp.array([-2.0, -2.0]), jnp.array([2.0, 1.5]), jnp.full(2, 3.0), jnp.full(2, jnp.inf), jnp.array([25.0, 10.0])
)


@pytest.mark.slow
@pytest.mark.parametrize("make", [random_fourier, random_spline])
def test_motion_curves_are_smooth_and_start_and_end_at_rest(make):
    motion = make(jax.random.key(0), jnp.array([0.1, -0.2]), jnp.array([1.0, 2.0]), 6.0)
    t = jnp.linspace(0.0, 6.0, 3001)
    q, v, a = jax.vmap(motion.at)(t)
    h = t[1] - t[0]
    derivative = lambda x: (x[2:] - x[:-2]) / (2 * h)
    np.testing.assert_allclose(derivative(q), v[1:-1], atol=2e-4)  # truncation error of order h^2
    np.testing.assert_allclose(derivative(v), a[1:-1], atol=2e-3)
    for k in (0, -1):
        np.testing.assert_allclose(np.stack([v[k], a[k]]), 0, atol=1e-12)
    half = jax.vmap(motion.scaled(0.5).at)(t)
    np.testing.assert_allclose(np.ptp(half[0], axis=0), 0.5 * np.ptp(q, axis=0), rtol=1e-12)
    with pytest.raises(jd.ModelError, match="expected a positive duration"):
        make(jax.random.key(0), jnp.zeros(2), jnp.ones(2), -1.0)


def test_spline_motion_lies_in_the_hull_of_its_control_points():
    motion = random_spline(jax.random.key(1), jnp.zeros(2), jnp.ones(2), 6.0)
    q = np.asarray(jax.jit(jax.vmap(motion.at))(jnp.linspace(0, 6, 400))[0])
    assert (q <= motion.points.max(axis=0)).all() and (q >= motion.points.min(axis=0)).all()
    np.testing.assert_allclose(q[[0, -1]], motion.points[np.array([0, -1])], atol=1e-12)


@pytest.mark.slow
def test_information_matrix_is_that_of_the_base_regressor():
    information = information_of(
        ROBOT, jnp.ones(2), jax.random.key(0), -2 * jnp.ones(2), 2 * jnp.ones(2), 3 * jnp.ones(2)
    )
    # base parameters of a planar double pendulum: two first moments of each link, two inertias (rotor 1 is grouped with
    # the inertia about joint 1) and rotor 2; viscous friction, Coulomb friction and effort offset of each joint
    assert information.basis.shape[1] == 6 + 1 + 6
    key = jax.random.split(jax.random.key(1), 3)
    q, v, a = (jax.random.normal(k, (50, 2)) for k in key)
    one = lambda *x: (information.rows(*x), jd.rnea(ROBOT, *x))
    gram, (rows, expected) = jax.jit(lambda *x: (information.gram(*x), jax.vmap(one)(*x)))(q, v, a)
    rows = np.concatenate(rows)
    singular = np.linalg.svd(rows @ information.basis, compute_uv=False)
    assert float(log_condition(gram)) == pytest.approx(np.log(singular[0] / singular[-1]), rel=1e-6)
    assert float(log_volume(gram)) == pytest.approx(-np.mean(np.log(singular**2 / 50)), rel=1e-6)
    theta = np.concatenate([jd.inertial_parameters(ROBOT), np.zeros(8)])
    effort = rows @ (theta / np.where(information.scale > 0, information.scale, 1.0))
    np.testing.assert_allclose(
        effort, np.concatenate(expected), atol=1e-9
    )  # columns without any excitation do not contribute


def test_workspace_limits_measure_distances_of_link_origins():
    q = jnp.array([jnp.pi / 2, 0.0])  # the upper link points along -x
    place = jd.forward_kinematics(ROBOT, q).translation[1]
    np.testing.assert_allclose(place, [-0.5, 0, 0], atol=1e-12)
    assert float(link_above("lower", -0.2)(ROBOT, q)) == pytest.approx(0.2)
    assert float(link_above("lower", 0.1, (-2.0, 0.0, 0.0))(ROBOT, q)) == pytest.approx(0.4)
    assert float(links_apart("upper", "lower", 0.2)(ROBOT, q)) == pytest.approx(0.3)
    box = link_in_box("lower", (-1.0, -1.0, -1.0), (0.0, 1.0, 1.0))(ROBOT, q)
    np.testing.assert_allclose(box, [0.5, 1, 1, 0.5, 1, 1], atol=1e-12)


def test_motion_limits_are_a_share_of_the_model_limits():
    m = eqx.tree_at(
        lambda m: (m.limits.lower, m.limits.upper), ROBOT, (jnp.array([-1.0, -jnp.inf]), jnp.array([3.0, jnp.inf]))
    )
    b = motion_limits(m, 0.5)
    np.testing.assert_allclose(b.lower, [0, -np.inf])
    np.testing.assert_allclose(b.upper, [2, np.inf])
    with pytest.raises(jd.ModelError, match="'lower' have no limit of position, velocity"):
        design_excitation(m)
    with pytest.raises(jd.ModelError, match="the limits of joints 'upper' leave no motion"):
        design_excitation(ROBOT, bounds=eqx.tree_at(lambda b: b.velocity, LIMITS, jnp.array([0.0, 1.0])))


@pytest.mark.exhaustive
def test_designed_fourier_motion_is_more_informative_and_satisfies_all_limits(tmp_path):
    wall = link_above("lower", -0.4, (-1.0, 0.0, 0.0))  # x of the elbow at most 0.4 m
    options = {"bounds": LIMITS, "workspace": (wall,), "samples": 30, "starts": 2, "rounds": 6, "steps": 50}
    rounds = []
    found = design_excitation(ROBOT, duration=5.0, progress=lambda k, n: rounds.append((k, n)), **options).checked()
    assert rounds == [(k, 6) for k in range(1, 7)] and len(found.history) == 6
    assert found.status == ExcitationStatus.FOUND and found.num_base == 13
    assert found.criterion < found.criterion_before and found.condition < found.condition_before
    x = found.sample(400.0)
    assert (x["q"] >= LIMITS.lower - 2e-3).all() and (x["q"] <= LIMITS.upper + 2e-3).all()  # verified on 150 times
    assert (np.abs(x["v"]) <= 3.01).all() and (np.abs(x["effort"]) <= np.array([25.05, 10.02])).all()
    place = jax.vmap(lambda q: jd.forward_kinematics(ROBOT, q).translation[1, 0])(jnp.asarray(x["q"]))
    assert float(place.max()) <= 0.401
    expected = jax.vmap(lambda q, v, a: jd.rnea(ROBOT, q, v, a))(*(jnp.asarray(x[k]) for k in "qva"))
    np.testing.assert_allclose(x["effort"], expected, atol=1e-9)
    found.to_csv(tmp_path / "motion.csv", 50.0, periods=2)
    table = np.genfromtxt(tmp_path / "motion.csv", delimiter=",", names=True)
    assert table.dtype.names[:3] == ("t", "qupper", "qlower") and len(table) == 501
    np.testing.assert_allclose(table["qupper"][250], table["qupper"][0], atol=1e-12)
    assert found.criterion == min(value for value, feasible in found.starts if feasible)
    warm = design_excitation(ROBOT, start=found.motion, **options).checked()
    assert isinstance(warm.motion, FourierMotion) and warm.criterion_before == pytest.approx(found.criterion, rel=1e-6)
    assert warm.criterion < found.criterion + 0.1
    narrow = eqx.tree_at(lambda b: b.effort, LIMITS, jnp.array([1e-3, 1e-3]))
    infeasible = design_excitation(ROBOT, duration=5.0, **{**options, "bounds": narrow, "rounds": 1})
    assert infeasible.status == ExcitationStatus.INFEASIBLE and infeasible.margins["effort"] < 0
    with pytest.raises(jd.ConvergenceError, match="INFEASIBLE, violated limits: .*effort by"):
        infeasible.checked()


@pytest.mark.exhaustive
def test_designed_spline_motion_is_more_informative_and_satisfies_all_limits():
    """The condition number is recomputed from the singular values of the base regressor on another grid."""
    options = {"bounds": LIMITS, "samples": 30, "starts": 1, "rounds": 3, "steps": 40}
    found = design_excitation(ROBOT, start=random_spline, duration=5.0, **options).checked()
    assert isinstance(found.motion, SplineMotion) and found.motion.points.shape == (12, 2)
    assert found.condition < 0.7 * found.condition_before and found.criterion < found.criterion_before - 0.5
    x = found.sample(400.0)
    assert (x["q"] >= LIMITS.lower - 2e-3).all() and (x["q"] <= LIMITS.upper + 2e-3).all()  # verified on 150 times
    assert (np.abs(x["v"]) <= 3.01).all() and (np.abs(x["effort"]) <= np.array([25.05, 10.02])).all()
    for k in (0, -1):
        np.testing.assert_allclose([x["v"][k], x["a"][k]], 0, atol=1e-9)
    information = information_of(
        ROBOT, 0.01 * LIMITS.effort, jax.random.key(3), LIMITS.lower, LIMITS.upper, LIMITS.velocity
    )
    rows = (
        jax.vmap(information.rows)(*(jnp.asarray(x[k]) for k in "qva")).reshape(-1, information.basis.shape[0])
        @ information.basis
    )
    singular = np.linalg.svd(np.asarray(rows), compute_uv=False)
    assert singular[0] / singular[-1] == pytest.approx(
        found.condition, rel=0.3
    )  # the scaling of the columns differs slightly
