"""Fits of low-pass filtered efforts."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import butter, filtfilt

import jaxdyn as jd
from jaxdyn.identification import Linear, Log, LowPassed, fit
from jaxdyn.identification.residuals import autocorrelation_time

from .synthetic_logs import efforts

PATHS = ("links[*].inertial", "joints[*].damping", "joints[*].friction")
TRUTH = eqx.tree_at(
    lambda m: (m.properties.damping, m.properties.friction, m.properties.friction_velocity),
    jd.robots.pendulum(),
    (jnp.array([0.3]), jnp.array([0.8]), jnp.array([0.02])),
)
START = eqx.tree_at(lambda m: m.properties.friction, TRUTH, jnp.array([0.1]))


def log_of_friction() -> Log:
    t = np.arange(0, 8, 1 / 200)
    w = np.array([1.3, 4.1, 7.7])
    q, v, a = ((0.5 * w**k * np.sin(np.outer(t, w) + [0, 1, 2] + k * np.pi / 2)).sum(1)[:, None] for k in range(3))
    return Log(t, q, v, a, np.asarray(efforts(TRUTH, q, v, a)), "friction")


def friction(result) -> float:
    return result.value(f"joints[{TRUTH.joint_names[0]}].friction")


@pytest.mark.slow
def test_friction_from_low_passed_efforts_is_unbiased():
    found = fit(START, [log_of_friction()], PATHS, LowPassed(2.0, Linear(reweight=0)))
    assert friction(found) == pytest.approx(0.8, abs=1e-8)


@pytest.mark.slow
def test_friction_from_a_filtered_log_is_biased():
    log = log_of_friction()
    smooth = lambda x: filtfilt(*butter(4, 2 * 2.0 / 200), x, axis=0)
    filtered = Log(log.t, smooth(log.q), smooth(log.v), smooth(log.a), smooth(log.effort), "filtered")
    assert abs(friction(fit(START, [filtered], PATHS, Linear(reweight=0))) - 0.8) > 0.05


@pytest.mark.slow
def test_frequency_response_of_the_low_pass():
    log, cutoff = log_of_friction(), 2.0
    wave = lambda f: np.cos(2 * np.pi * f * np.asarray(log.t))[:, None]
    problem = LowPassed(cutoff, Linear())
    for f in (0.0, 1.0, 2.0, 6.0):
        perturb_model = eqx.tree_at(lambda x: x.effort, log, log.effort + wave(f))
        left = fit(TRUTH, [perturb_model], "joints[*].damping", problem, weights=[1e-9])
        x = np.pi * f / cutoff
        gain = 1.0 if f == 0 else 0.5 if f == cutoff else np.sin(x) / x / (1 - (f / cutoff) ** 2)
        middle = left.errors[0].fit / (1.0 if f == 0 else np.sqrt(0.5))
        # the ends, where the window is truncated, are a sixteenth of the log
        assert middle == pytest.approx(abs(gain), abs=0.06)


def test_invalid_logs_and_cutoffs_are_rejected():
    log = log_of_friction()
    with pytest.raises(jd.ModelError, match="above a quarter of the rate"):
        fit(START, [log], PATHS, LowPassed(80.0, Linear()))
    with pytest.raises(jd.ShapeError, match="different time steps"):
        fit(START, [log, log.rows(slice(None, None, 2))], PATHS, LowPassed(2.0, Linear()))
    with pytest.raises(jd.ShapeError, match="uneven"):
        fit(START, [eqx.tree_at(lambda x: x.t, log, log.t**1.1)], PATHS, LowPassed(2.0, Linear()))
    with pytest.raises(jd.ShapeError, match="no log"):
        fit(START, [], PATHS, LowPassed(2.0, Linear()))
    with pytest.raises(jd.ModelError, match="positive"):
        LowPassed(-1.0)


def test_autocorrelation_time_of_an_autoregressive_process():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 100_000))
    for rho, row in zip((0.0, 0.5, 0.9), x, strict=True):
        for k in range(1, row.size):
            row[k] += rho * row[k - 1]
    np.testing.assert_allclose(autocorrelation_time(x), [1, 3, 19], rtol=0.1)


@pytest.mark.slow
def test_coverage_of_standard_deviations_with_correlated_noise():
    """With noise below 5 Hz in rows at 200 Hz, 95 % of the base parameters are within 1.96 standard deviations."""
    low = butter(4, 2 * 5.0 / 200)
    z, z_white = [], []
    log = log_of_friction()
    truth = [row.prior for row in fit(TRUTH, [log], PATHS, Linear(reweight=0)).base]
    for seed in range(60):
        noise = 0.3 * filtfilt(*low, np.random.default_rng(seed).normal(size=(1600, 1)), axis=0)
        found = fit(START, [eqx.tree_at(lambda x: x.effort, log, log.effort + noise)], PATHS, Linear(reweight=0))
        off = np.array([(row.value - x) / row.deviation for row, x in zip(found.base, truth, strict=True)])
        z += list(off)
        z_white += list(off * np.sqrt(found.dependence[0]))
    assert 0.90 < np.mean(np.abs(z) < 1.96) < 0.99
    assert 0.8 < np.sqrt(np.mean(np.square(z))) < 1.2
    assert np.mean(np.abs(z_white) < 1.96) < 0.7  # the coverage if all rows were independent
