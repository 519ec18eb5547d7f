"""Cross-validation, and the folds of logs."""

import functools as ft
from dataclasses import replace

import equinox as eqx
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.identification import (
    Candidate,
    GeometricPrior,
    Log,
    Physical,
    cross_validate,
    fold_blocks,
    fold_runs,
    predicted_effort,
)

from .synthetic_logs import arm, synthetic_log

TRUTH = arm(1)
START = eqx.tree_at(lambda m: m.links.mass, TRUTH, 2 * TRUTH.links.mass)


@ft.cache
def noisy_log() -> Log:
    """A log of the robot; computed when a test needs it."""
    return synthetic_log(TRUTH, 0.01, samples=240)


def empty(t, name="run") -> Log:
    """A log of zeros at the given times."""
    zero = np.zeros((len(t), 1))
    return Log(t, zero, zero, zero, zero, name)


@pytest.mark.slow
def test_cross_validation_selects_the_prior_with_the_best_prediction():
    folds = fold_blocks([noisy_log()], 2, guard=0.0)
    candidate = Candidate(START, ("links[*].inertial", "joints[*].damping"), Physical(reweight=0))
    lines = []
    found = cross_validate(candidate.with_priors((1e-3, 1e5)), folds, tell=lines.append)
    assert found.name == "strength 0.001" and found.best.prior == GeometricPrior(1e-3)
    assert len(lines) == 4 and str(found).startswith("* strength 0.001")
    expected = []
    for fold in folds:
        result = found.best.fit(fold.fit)
        residuals = [log.effort - predicted_effort(result.system, log) for log in fold.held_out]
        expected.append(
            [sum(float((x**2).sum()) for x in y) for y in (residuals, [log.effort for log in fold.held_out])]
        )
    e, m = np.array(expected).T
    np.testing.assert_allclose(found.folds[0], np.sqrt(e / m), rtol=1e-9)
    assert found.scores[0] == pytest.approx(np.sqrt(e.sum() / m.sum()), rel=1e-9)
    assert found.scores[1] > 4 * found.scores[0]


@pytest.mark.slow
def test_cross_validation_accepts_a_user_defined_error_and_rejects_failed_fits():
    candidate = Candidate(START, "joints[*].damping", Physical(reweight=0))
    hasty = replace(candidate, method=Physical(reweight=0, max_steps=0))
    last = lambda result, logs: (abs(result.value("joints[" + TRUTH.joint_names[0] + "].damping") - 0.2), 1.0)
    folds = fold_blocks([noisy_log()], 2)
    found = cross_validate({"hasty": hasty, "patient": candidate}, folds, error=last)
    assert found.name == "patient" and found.scores[0] == np.inf
    with pytest.raises(jd.ModelError, match="no candidate could be fitted"):
        cross_validate({"hasty": hasty}, folds, error=last)


def test_held_out_blocks_cover_all_rows_once_with_a_guard_interval():
    logs = [empty(np.arange(0, 6.0, 0.1), "a"), empty(np.arange(2, 5.0, 0.1), "b")]
    folds = fold_blocks(logs, 4, guard=0.25)
    held_out = [(log.name[0], round(float(t), 6)) for fold in folds for log in fold.held_out for t in np.asarray(log.t)]
    assert len(held_out) == len(set(held_out)) == 90
    for fold in folds:
        for log in fold.fit:
            same = [x for x in fold.held_out if x.name[0] == log.name[0]]
            assert all(np.abs(np.subtract.outer(np.asarray(log.t), np.asarray(x.t))).min() > 0.25 - 1e-9 for x in same)


def test_blocks_of_a_periodic_motion_hold_out_a_phase_interval():
    log = empty(np.arange(0, 9.0, 0.1))
    for fold in fold_blocks([log], 3, guard=0.0, period=3.0):
        phases = [
            {round(float(t) * 10) % 30 for x in part for t in np.asarray(x.t)} for part in (fold.fit, fold.held_out)
        ]
        assert len(fold.held_out) == 3 and not phases[0] & phases[1] and len(phases[0] | phases[1]) == 30
    assert [fold.held_out[0].name for fold in fold_runs([log, empty(np.arange(5.0), "b")])] == ["run", "b"]
    with pytest.raises(jd.identification.LogError, match="fold_blocks"):
        fold_runs([log])
    with pytest.raises(jd.ModelError, match="count is 1; expected two or more folds"):
        fold_blocks([log], 1)
