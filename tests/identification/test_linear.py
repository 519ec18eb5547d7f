"""Linear least squares: exact data, deviations, groupings, robustness and refusals."""

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

from ._made import SELECTION, arm, disturbed, efforts, log_of, motion

ARM = arm()
START = disturbed(ARM)


@pytest.mark.slow
def test_exact_efforts_give_the_true_base_parameters():
    t, q, v, a = motion(ARM.nv, seed=1)
    log, unseen = log_of(ARM), Log(t, q, v, a, efforts(ARM, q, v, a), "unseen")
    found = fit(START, log, SELECTION, Linear(), held_out=[unseen])
    truth = fit(ARM, log, SELECTION, Linear(reweight=0))
    for mine, true in zip(found.base, truth.base, strict=True):
        assert mine.name == true.name
        assert abs(mine.value - true.prior) < 1e-7 * max(1, abs(true.prior))
    assert found.relative_error < 1e-8 and found.relative_error_held_out < 1e-8
    assert found.status == FitStatus.CONVERGED
    np.testing.assert_allclose(predicted_effort(found.system, unseen), unseen.effort, atol=1e-7)


@pytest.mark.slow
def test_groupings_of_a_planar_arm_are_those_of_the_textbook():
    arm = jd.ModelBuilder()
    for k, parent in enumerate(("world", "link1")):
        body = jd.spatial.rod(0.5, mass=1.0).moved([0, 0, -0.25])
        arm.add_link(f"link{k + 1}", parent, jd.joints.Revolute([0, 1, 0]), body, translation=[0, 0, -0.5 * k])
    model = arm.build()
    found = fit(model, log_of(model), "links[*].inertial", Linear(reweight=0))
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
def test_what_cannot_be_seen_stays():
    found = fit(START, log_of(ARM, 0.05), SELECTION, Linear())
    hidden = set(found.unobservable) & {row.name for row in found.parameters}
    assert {"m(link1)", "mz(link1)", "Ixx(link1)"} <= hidden
    for row in found.parameters:
        if row.name in hidden:
            assert row.value == pytest.approx(row.prior, abs=1e-12) and not row.observable and np.isnan(row.deviation)


TWO = arm(2)


@pytest.mark.slow
@pytest.mark.parametrize("method", [Linear(reweight=1), Physical(reweight=1)], ids=["linear", "physical"])
def test_deviations_cover_the_truth_at_their_rate(method):
    """Of 30 noisy logs some 95 % of base parameters are within 1.96 deviations, and none are stated too wide."""
    truth, z = fit(TWO, log_of(TWO, samples=200), SELECTION, Linear(reweight=0)).base, []
    for seed in range(30):
        found = fit(disturbed(TWO), log_of(TWO, 0.1, 200, seed), SELECTION, method)
        assert [row.name for row in found.base] == [row.name for row in truth]
        z += [(row.value - true.prior) / row.deviation for row, true in zip(found.base, truth, strict=True)]
    # some 400 numbers that depend on each other in each log: three deviations of the rate, and of the root mean square
    assert 0.91 < np.mean(np.abs(z) < 1.96) < 0.985
    assert 0.87 < np.sqrt(np.mean(np.square(z))) < 1.13


@pytest.mark.slow
def test_weights_are_estimated_and_losses_ignore_gross_errors():
    log = log_of(ARM, 0.02)
    bad = np.array(log.effort)
    bad[::17, 1] += 40.0
    spoilt = eqx.tree_at(lambda x: x.effort, log, jnp.asarray(bad))
    plain = fit(START, spoilt, SELECTION, Linear())
    robust = fit(START, spoilt, SELECTION, Linear(reweight=12, loss=Cauchy()))
    truth = np.array([row.prior for row in fit(ARM, log, SELECTION, Linear(reweight=0)).base])
    off = lambda r: np.linalg.norm(np.array([row.value for row in r.base]) - truth)
    assert off(robust) < 0.1 * off(plain)


def test_a_grouping_finds_planted_dependence():
    rng = np.random.default_rng(0)
    j = rng.normal(size=(50, 5))
    j[:, 3] = 2 * j[:, 0] - 0.5 * j[:, 2]
    j[:, 4] = 0
    found = grouping(tuple("abcde"), j.T @ j)
    assert found.base_names() == ("a + 2 d", "b", "c - 0.5 d")
    assert found.directions() == ("d - 2 a + 0.5 c", "e")
    assert found.observable().tolist() == [False, True, False, False, False]


@pytest.mark.slow
def test_what_no_log_shows_and_what_is_not_linear_is_refused():
    log = log_of(ARM)
    with pytest.raises(jd.ModelError, match="joint2.*stiffness.*no influence"):
        still = eqx.tree_at(lambda x: x.q, log, log.q.at[:, 1].set(0.0))
        fit(ARM, still, (*SELECTION, "joints[joint2].stiffness"))
    with pytest.raises(jd.ModelError, match="not linear"):
        fit(ARM, log, "joints[*].friction_velocity")


def test_what_is_wrong_is_refused_by_name():
    log = log_of(ARM)
    with pytest.raises(jd.ShapeError, match="no accelerations"):
        fit(ARM, eqx.tree_at(lambda x: x.a, log, None), SELECTION)
    with pytest.raises(jd.ShapeError, match="weights"):
        fit(ARM, log, SELECTION, weights=jnp.ones(2))
    with pytest.raises(jd.ShapeError, match="not finite, in effort"):
        fit(ARM, eqx.tree_at(lambda x: x.effort, log, log.effort.at[3, 1].set(jnp.nan)), SELECTION)


@pytest.mark.slow
def test_physical_least_squares_keeps_bodies_where_plain_ones_break():
    log = log_of(ARM, 1.0, samples=60)
    plain = fit(START, log, SELECTION, Linear())
    bodies = fit(START, log, SELECTION, Physical(), prior=GeometricPrior(1e-3))
    assert not plain.is_physical and bodies.is_physical
    assert all(row.value >= 0 for row in bodies.parameters if row.name.startswith("joints"))
    assert bodies.relative_error < 1.1 * plain.relative_error


@pytest.mark.slow
@pytest.mark.wide
def test_a_strong_prior_holds_and_a_weak_one_lets_go():
    log = log_of(ARM, 0.05)
    held = fit(START, log, SELECTION, Physical(reweight=0), prior=GeometricPrior(1e12, 1e12), weights=jnp.ones(3))
    for row in held.parameters:
        assert row.value == pytest.approx(row.prior, rel=1e-4, abs=1e-5)
    free = fit(START, log, SELECTION, Physical())
    linear = fit(START, log, SELECTION, Linear())
    assert free.cost == pytest.approx(linear.cost, rel=1e-4)
