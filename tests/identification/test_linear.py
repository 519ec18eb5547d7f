"""Linear least squares: exact data, standard deviations, base parameters, outliers and rejected input."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.identification import (
    Cauchy,
    FitStatus,
    GeometricPrior,
    Linear,
    Log,
    Physical,
    fit,
    grouping,
    predicted_effort,
)

from .synthetic_logs import SELECTION, arm, efforts, motion, perturb_model, synthetic_log

ARM = arm()
START = perturb_model(ARM)


@pytest.mark.slow
def test_base_parameters_from_exact_efforts():
    t, q, v, a = motion(ARM.nv, seed=1)
    log, held_out = synthetic_log(ARM), Log(t, q, v, a, efforts(ARM, q, v, a), "held out")
    found = fit(START, log, SELECTION, Linear(), held_out=[held_out])
    truth = fit(ARM, log, SELECTION, Linear(reweight=0))
    for mine, true in zip(found.base, truth.base, strict=True):
        assert mine.name == true.name
        assert abs(mine.value - true.prior) < 1e-7 * max(1, abs(true.prior))
    assert found.relative_error < 1e-8 and found.relative_error_held_out < 1e-8
    assert found.status == FitStatus.CONVERGED
    np.testing.assert_allclose(predicted_effort(found.system, held_out), held_out.effort, atol=1e-7)


@pytest.mark.slow
def test_base_parameters_of_a_planar_arm_agree_with_the_textbook():
    arm = jd.ModelBuilder()
    for k, parent in enumerate(("world", "link1")):
        body = jd.spatial.rod(0.5, mass=1.0).moved([0, 0, -0.25])
        arm.add_link(f"link{k + 1}", parent, jd.joints.Revolute([0, 1, 0]), body, translation=[0, 0, -0.5 * k])
    model = arm.build()
    found = fit(model, synthetic_log(model), "links[*].inertial", Linear(reweight=0))
    names = [row.name for row in found.base]  # Khalil and Dombre 2002, section 9.4.2.4: six of a planar arm
    assert names == [
        "mx(link1)",
        "mz(link1) - 0.5 m(link2)",
        "Iyy(link1) + 0.25 m(link2)",
        "mx(link2)",
        "mz(link2)",
        "Iyy(link2)",
    ]
    assert "m(link1)" in found.unobservable
    assert any(d.startswith("m(link2) + 0.5 mz(link1) - 0.25 Iyy(link1)") for d in found.unobservable)


@pytest.mark.slow
def test_unobservable_parameters_stay_at_the_prior():
    found = fit(START, synthetic_log(ARM, 0.05), SELECTION, Linear())
    unobservable = set(found.unobservable) & {row.name for row in found.parameters}
    assert {"m(link1)", "mz(link1)", "Ixx(link1)"} <= unobservable
    for row in found.parameters:
        if row.name in unobservable:
            assert row.value == pytest.approx(row.prior, abs=1e-12) and not row.observable and np.isnan(row.deviation)


TWO = arm(2)


@pytest.mark.slow
@pytest.mark.parametrize("method", [Linear(reweight=1), Physical(reweight=1)], ids=["linear", "physical"])
def test_coverage_of_standard_deviations(method):
    """In 30 noisy logs 95 % of the base parameters are within 1.96 standard deviations."""
    truth, z = fit(TWO, synthetic_log(TWO, samples=200), SELECTION, Linear(reweight=0)).base, []
    for seed in range(30):
        found = fit(perturb_model(TWO), synthetic_log(TWO, 0.1, 200, seed), SELECTION, method)
        assert [row.name for row in found.base] == [row.name for row in truth]
        z += [(row.value - true.prior) / row.deviation for row, true in zip(found.base, truth, strict=True)]
    # about 400 correlated numbers: three standard deviations of the rate, and of the root mean square
    assert 0.91 < np.mean(np.abs(z) < 1.96) < 0.985
    assert 0.87 < np.sqrt(np.mean(np.square(z))) < 1.13


@pytest.mark.slow
def test_robust_loss_ignores_outliers():
    log = synthetic_log(ARM, 0.02)
    effort = np.array(log.effort)
    effort[::17, 1] += 40.0
    contaminated = eqx.tree_at(lambda x: x.effort, log, jnp.asarray(effort))
    plain = fit(START, contaminated, SELECTION, Linear())
    robust = fit(START, contaminated, SELECTION, Linear(reweight=12, loss=Cauchy()))
    truth = np.array([row.prior for row in fit(ARM, log, SELECTION, Linear(reweight=0)).base])
    error = lambda r: np.linalg.norm(np.array([row.value for row in r.base]) - truth)
    assert error(robust) < 0.1 * error(plain)


def test_grouping_finds_dependent_columns():
    rng = np.random.default_rng(0)
    j = rng.normal(size=(50, 5))
    j[:, 3] = 2 * j[:, 0] - 0.5 * j[:, 2]
    j[:, 4] = 0
    found = grouping(tuple("abcde"), j.T @ j)
    assert found.base_names() == ("a + 2 d", "b", "c - 0.5 d")
    assert found.directions() == ("d - 2 a + 0.5 c", "e")
    assert found.observable().tolist() == [False, True, False, False, False]


@pytest.mark.slow
def test_parameters_without_influence_and_nonlinear_ones_are_rejected():
    log = synthetic_log(ARM)
    with pytest.raises(jd.ModelError, match="joint2.*stiffness.*no influence"):
        still = eqx.tree_at(lambda x: x.q, log, log.q.at[:, 1].set(0.0))
        fit(ARM, still, (*SELECTION, "joints[joint2].stiffness"))
    with pytest.raises(jd.ModelError, match="not linear"):
        fit(ARM, log, "joints[*].friction_velocity")


@pytest.mark.slow
def test_invalid_logs_and_weights_are_rejected():
    log = synthetic_log(ARM)
    with pytest.raises(jd.ShapeError, match="no accelerations"):
        fit(ARM, eqx.tree_at(lambda x: x.a, log, None), SELECTION)
    with pytest.raises(jd.ShapeError, match="weights"):
        fit(ARM, log, SELECTION, weights=jnp.ones(2))
    with pytest.raises(jd.ShapeError, match="not finite, in effort"):
        fit(ARM, eqx.tree_at(lambda x: x.effort, log, log.effort.at[3, 1].set(jnp.nan)), SELECTION)


@pytest.mark.slow
def test_physical_fit_is_consistent_where_the_linear_one_is_not():
    log = synthetic_log(ARM, 1.0, samples=60)
    plain = fit(START, log, SELECTION, Linear())
    bodies = fit(START, log, SELECTION, Physical(), prior=GeometricPrior(1e-3))
    assert not plain.is_physical and bodies.is_physical
    assert all(row.value >= 0 for row in bodies.parameters if row.name.startswith("joints"))
    assert bodies.relative_error < 1.1 * plain.relative_error


@pytest.mark.slow
def test_limits_of_a_strong_and_of_a_weak_prior():
    log = synthetic_log(ARM, 0.05)
    strong = fit(START, log, SELECTION, Physical(reweight=0), prior=GeometricPrior(1e12, 1e12), weights=jnp.ones(3))
    for row in strong.parameters:
        assert row.value == pytest.approx(row.prior, rel=1e-4, abs=1e-5)
    free = fit(START, log, SELECTION, Physical())
    linear = fit(START, log, SELECTION, Linear())
    assert free.cost == pytest.approx(linear.cost, rel=1e-4)
