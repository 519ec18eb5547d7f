"""Linear least squares: exact data, deviations, groupings, robustness and refusals."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.identification import Cauchy, FitStatus, GeometricPrior, Linear, Physical, fit, grouping, predicted_effort

from ._made import SELECTION, arm, disturbed, log_of

ARM = arm()
START = disturbed(ARM)


def test_exact_efforts_give_the_true_base_parameters():
    log, unseen = log_of(ARM), log_of(ARM, samples=100)
    found = fit(START, log, SELECTION, Linear(), held_out=[unseen])
    truth = fit(ARM, log, SELECTION, Linear(reweight=0))
    for mine, true in zip(found.base, truth.base, strict=True):
        assert mine.name == true.name
        assert abs(mine.value - true.prior) < 1e-7 * max(1, abs(true.prior))
    assert found.relative_error < 1e-8 and found.relative_error_held_out < 1e-8
    assert found.status == FitStatus.CONVERGED
    np.testing.assert_allclose(predicted_effort(found.system, unseen), unseen.effort, atol=1e-7)


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


def test_what_cannot_be_seen_stays():
    found = fit(START, log_of(ARM, 0.05), SELECTION, Linear())
    hidden = set(found.unobservable) & {row.name for row in found.parameters}
    assert {"m(link1)", "mz(link1)", "Ixx(link1)"} <= hidden
    for row in found.parameters:
        if row.name in hidden:
            assert row.value == pytest.approx(row.prior, abs=1e-12) and not row.observable and np.isnan(row.deviation)


@pytest.mark.slow
@pytest.mark.wide
def test_deviations_cover_the_truth_at_their_rate():
    """Of 60 noisy logs about 95 % of base parameters are within 1.96 deviations; 3 sigma of that count are allowed."""
    inside = total = 0
    truth = None
    for seed in range(60):
        found = fit(START, log_of(ARM, 0.1, seed=seed), SELECTION, Linear(reweight=1))
        truth = truth or [row.prior for row in fit(ARM, log_of(ARM), SELECTION, Linear(reweight=0)).base]
        inside += sum(abs(row.value - x) < 1.96 * row.deviation for row, x in zip(found.base, truth, strict=True))
        total += len(found.base)
    assert abs(inside / total - 0.95) < 0.03


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


def test_what_is_wrong_is_refused_by_name():
    log = log_of(ARM)
    with pytest.raises(jd.ModelError, match="'joints.joint2..stiffness' has no influence|no influence"):
        still = eqx.tree_at(lambda x: x.q, log, log.q.at[:, 1].set(0.0))
        fit(ARM, still, (*SELECTION, "joints[joint2].stiffness"))
    with pytest.raises(jd.ModelError, match="not linear"):
        fit(ARM, log, "joints[*].friction_velocity")
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
