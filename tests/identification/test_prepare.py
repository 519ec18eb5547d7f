"""Preparation of logs against exact signals and against the filters of SciPy."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.signal

import jaxdyn as jd
from jaxdyn.identification import (
    Log,
    LogError,
    Preparation,
    Table,
    hold_out_runs,
    hold_out_share,
    hold_out_times,
    prepare,
)
from jaxdyn.identification.preparation import _signals as signals
from jaxdyn.identification.preparation._delays import _best_lag
from jaxdyn.identification.preparation._prepare import _describe_bounded_delays

NAMES = ("upper", "lower")


def _arm():
    b = jd.ModelBuilder()
    for name, parent in (("upper", "world"), ("lower", "upper")):
        body = jd.spatial.rod(0.5, mass=2.0).moved([0, 0, -0.25])
        place = {} if parent == "world" else {"translation": [0, 0, -0.5]}
        b.add_link(name, parent, jd.joints.Revolute([0, 1, 0]), body, joint_name=name, **place)
    return b.build()


def _motion(t, order=0):
    """Two harmonics per joint, or their derivatives."""
    w = 2 * np.pi * np.array([[0.3, 0.7], [0.5, 0.9]])
    size = np.array([[0.8, 0.3], [0.6, 0.4]])
    phase = w * np.asarray(t)[:, None, None] + [[0.1, 1.0], [2.0, 0.3]]
    return (size * w**order * np.sin(phase + order * np.pi / 2)).sum(axis=2)


def _efforts(t):
    return 3 * _motion(t) + 0.5 * _motion(t, 2)


def _table(t, name="run", q=None, v=None, effort=None, delay=0.0):
    x = {"t": np.asarray(t)}
    for letter, value in (("q", q), ("v", v), ("effort", effort)):
        x |= {} if value is None else {f"{letter}.{n}": value[:, k] for k, n in enumerate(NAMES)}
    return Table(name, x)


def _run_table(t, name="run", delay=0.0, lag=0.0):
    return _table(t, name, _motion(t), _motion(t - lag, 1), _efforts(t - delay))


# Signals


def test_filter_equals_forward_backward_butterworth_of_scipy():
    rng = np.random.default_rng(0)
    dt, cutoff = 0.002, 20.0
    x = np.cumsum(rng.normal(size=(2000, 2)), axis=0)
    sos = scipy.signal.butter(4, cutoff, fs=1 / dt, output="sos")
    expected = scipy.signal.sosfiltfilt(sos, x, axis=0, padtype="odd", padlen=1500)
    found = signals.filter_zero_phase(x, dt, cutoff, 4)
    inside = slice(600, -600)  # the two extend the signal differently at its ends
    np.testing.assert_allclose(found[inside], expected[inside], atol=1e-10 * np.abs(x).max())
    f, response = scipy.signal.freqz_sos(sos, 400, fs=1 / dt)
    np.testing.assert_allclose(signals.butterworth_response(f, cutoff, 1 / dt, 4), np.abs(response) ** 2, atol=1e-12)
    assert signals.butterworth_response(np.array([cutoff]), cutoff, 1 / dt, 4)[0] == pytest.approx(0.5, abs=1e-14)


def test_filtered_derivatives_are_exact_away_from_the_ends():
    t = np.arange(4000) * 0.005
    for order in (1, 2):
        found = signals.filter_zero_phase(_motion(t), 0.005, 15.0, 4, order)
        np.testing.assert_allclose(found[800:-800], _motion(t, order)[800:-800], atol=2e-6)  # the filter takes 1e-8
    line = 2.0 + 3.0 * t[:, None]  # a straight line passes unchanged up to the ends
    np.testing.assert_allclose(signals.filter_zero_phase(line, 0.005, 1.0, 4), line, atol=1e-10)
    np.testing.assert_allclose(signals.filter_zero_phase(line, 0.005, 1.0, 4, 1), 3.0, atol=1e-10)
    np.testing.assert_allclose(signals.filter_zero_phase(line, 0.005, 1.0, 4, 2), 0.0, atol=1e-9)


def test_cubic_interpolation_is_third_order_accurate():
    rng = np.random.default_rng(1)
    errors = []
    for n in (200, 400):
        t = np.sort(np.concatenate([[0, 10], 10 * (np.arange(1, n) + rng.uniform(-0.3, 0.3, n - 1)) / n]))
        at = np.linspace(0.5, 9.5, 1000)
        errors.append(np.abs(signals.interpolate_cubic(t, _motion(t), at) - _motion(at)).max())
    assert errors[1] < 1e-4 and errors[1] < errors[0] / 5  # third order: a factor of 8, less with random steps
    cubic = lambda t: (1 + t - 2 * t**2)[:, None]
    t = np.array([0.0, 0.1, 0.5, 0.6, 1.0])
    np.testing.assert_allclose(
        signals.interpolate_cubic(t, cubic(t), np.linspace(0, 1, 50)), cubic(np.linspace(0, 1, 50)), atol=1e-14
    )


@pytest.mark.parametrize("delay", [0.0, 0.0133, -0.0571, 0.1904])
def test_delays_are_estimated_between_samples(delay):
    t = np.arange(3000) * 0.01
    rng = np.random.default_rng(2)
    reference = _motion(t, 1)[:, 0]
    later = 0.7 * _motion(t - delay, 1)[:, 0] + 0.3 + 0.01 * rng.normal(size=t.size)
    assert signals.estimate_delay(reference, later, 0.01, 0.25) == pytest.approx(delay, abs=1e-3)  # noise and tapers


def test_repeated_rows_are_distinguished_from_rest():
    t = np.arange(20) * 0.1
    x = np.array([0, 1, 1, 2, 3, 3, 3, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 7, 8.0])
    same = signals.is_repeated(t, [x], 0.5)
    assert np.flatnonzero(same).tolist() == [2, 5, 6]  # nine equal rows are rest
    assert np.flatnonzero(signals.is_repeated(np.array([0, 1, 1, 2.0]), [np.arange(4.0)], 1.0)).tolist() == [2]


# Logs


def test_irregular_log_with_gap_repeats_and_delays_is_prepared():
    rng = np.random.default_rng(3)
    t = np.arange(8000) * 0.005 + rng.uniform(-0.001, 0.001, 8000)
    t = t[(t < 20.0) | (t > 20.4)]  # a gap
    table = _run_table(t, delay=0.02, lag=0.015)
    twice = np.sort(np.concatenate([np.arange(t.size), np.arange(100, 700, 7)]))
    columns = {name: x[twice] for name, x in table.columns.items()}
    columns["t"] = np.arange(twice.size) * 1e-12 + columns["t"]  # the clock of the logger continues
    options = Preparation(cutoff=15.0, effort_delay={"upper": 0.02, "lower": 0.02}, edge=2.0)
    logs, report = prepare([(Table("run", columns),)], _arm(), None, options)
    run = report.runs[0]
    assert run.repeated == len(range(100, 700, 7)) and run.rows == twice.size and run.cutoff == 15.0
    gap = [x for x in run.left_out if x.why.startswith("a gap")]
    assert (
        len(gap) == 1 and gap[0].start == pytest.approx(20.0, abs=0.01) and gap[0].stop == pytest.approx(20.4, abs=0.01)
    )
    assert [log.name for log in logs] == ["run#1", "run#2"] and sum(run.logs.values()) == sum(
        x.num_samples for x in logs
    )
    for log in logs:
        np.testing.assert_allclose(np.diff(log.t), 1 / run.rate, atol=1e-12)
        for value, order, atol in ((log.q, 0, 1e-5), (log.v, 1, 1e-4), (log.a, 2, 3e-3)):
            np.testing.assert_allclose(value, _motion(log.t, order), atol=atol)  # cubic interpolation of 5 ms
        np.testing.assert_allclose(log.effort, _efforts(log.t), atol=5e-5)
    for check in run.velocities:
        assert check.delay == pytest.approx(0.015, abs=1e-3) and check.slope == pytest.approx(1, abs=0.01)
    assert "low-pass at 15 Hz of order 4" in str(report) and "a gap of 0.4" in str(report)
    assert run.notes == ()


def test_report_notes_velocities_inconsistent_with_positions():
    t = np.arange(2000) * 0.01
    table = _table(t, "run", _motion(t), -_motion(t, 1), _efforts(t))
    _, report = prepare([table], _arm(), None, Preparation(effort_delay=0))
    assert len(report.runs[0].notes) == 2 and "is -1 times the derivative" in report.runs[0].notes[0]


def test_rest_saturation_ends_and_samples_outside_the_window_are_removed():
    t = np.arange(6000) * 0.01
    q, effort = _motion(t), _efforts(t)
    resting = (t > 30) & (t < 40)
    q[resting], effort[resting] = q[3000], effort[3000]
    q[t >= 40] = _motion(t - 10)[t >= 40] + q[3000] - _motion(t - 10)[4000]
    effort[1500:1540, 1] = effort.max() + 1  # saturated
    options = Preparation(edge=1.0, cutoff=10.0, window=(1.0, 55.0))
    logs, report = prepare([_table(t, "run", q, None, effort)], _arm(), None, options)
    why = {x.why: x for x in report.runs[0].left_out}
    assert why["rest"].start == pytest.approx(30, abs=0.3) and why["rest"].stop == pytest.approx(40, abs=0.3)
    saturated = why["effort of lower is saturated"]
    assert 14 < saturated.start <= 15 and 15.39 <= saturated.stop < 16
    covered = np.concatenate([np.asarray(log.t) for log in logs])
    assert covered.min() >= 2 - 1e-9 and covered.max() <= 54 + 1e-9
    assert not ((covered > 15) & (covered < 15.4)).any() and not ((covered > 30.5) & (covered < 39.5)).any()
    kept, _ = prepare(
        [_table(t, "run", q, None, effort)], _arm(), None, Preparation(rest_speed=0.0, saturation_time=9.0)
    )
    assert len(kept) == 1


def test_efforts_at_their_limits_are_removed():
    import equinox as eqx

    t = np.arange(3000) * 0.01
    limit = 2.0
    model = eqx.tree_at(lambda m: m.limits.effort, _arm(), jnp.array([limit, jnp.inf]))
    effort = np.clip(_efforts(t), -limit, limit)
    logs, report = prepare(
        [_table(t, "run", _motion(t), None, effort)], model, None, Preparation(shortest=0.1, edge=0.05)
    )
    times = np.concatenate([np.asarray(log.t) for log in logs])
    clipped = np.abs(_efforts(t)[:, 0]) > limit
    assert clipped.any() and not np.isin(np.round(times / 0.01).astype(int), np.flatnonzero(clipped)).any()
    assert any("effort of upper is saturated" in x.why for x in report.runs[0].left_out)


def test_parallel_files_are_merged_and_angles_unwrapped():
    t1, t2 = np.arange(3000) * 0.01, np.arange(2400) * 0.0125 - 0.003
    turning = _motion(t1) + 2.5 * t1[:, None]
    wrapped = (turning + np.pi) % (2 * np.pi) - np.pi
    tables = (_table(t1, "q.csv", wrapped), _table(t2, "effort.csv", None, None, _efforts(t2)))
    logs, report = prepare([tables], _arm(), None, Preparation(cutoff=10.0, edge=2.0, rest_speed=0))
    (log,) = logs
    np.testing.assert_allclose(log.q, turning[np.round(np.asarray(log.t) / 0.01).astype(int)], atol=1e-5)
    np.testing.assert_allclose(log.effort, _efforts(log.t), atol=2e-4)
    assert "had jumps by full turns" in report.runs[0].notes[0]
    with pytest.raises(LogError, match="do not overlap in time"):
        prepare([(_table(t1, "q.csv", wrapped), _table(t2 + 100, "effort.csv", None, None, _efforts(t2)))], _arm())


def test_invalid_options_and_models_are_refused():
    t = np.arange(1000) * 0.01
    with pytest.raises(jd.ModelError, match="cutoff 60 Hz is not between 0 and the Nyquist frequency, 50 Hz"):
        prepare([_run_table(t)], _arm(), None, Preparation(cutoff=60.0))
    with pytest.raises(LogError, match="no samples remain"):
        prepare([_run_table(t)], _arm(), None, Preparation(edge=8.0))
    with pytest.raises(jd.ModelError, match="effort_delay: this model has no joint 'elbow'"):
        prepare([_run_table(t)], _arm(), None, Preparation(effort_delay={"elbow": 0.1}))
    with pytest.raises(jd.ModelError, match="order is 0, expected a positive"):
        Preparation(order=0)
    with pytest.raises(jd.ModelError, match="are not the derivatives of their coordinates"):
        prepare([], jd.robots.quadruped())
    with pytest.raises(LogError, match="no run was given"):
        prepare([], _arm())


@pytest.mark.slow
def test_effort_delays_are_estimated_without_known_parameters():
    m = _arm()
    t = np.arange(6000) * 0.005
    real = jd.ModelBuilder()
    for name, parent, mass in (("upper", "world", 3.1), ("lower", "upper", 0.7)):
        body = jd.spatial.rod(0.6, mass=mass).moved([0, 0, -0.3])
        place = {} if parent == "world" else {"translation": [0, 0, -0.5]}
        real.add_link(
            name, parent, jd.joints.Revolute([0, 1, 0]), body, joint_name=name, damping=0.3, friction=0.2, **place
        )
    import jax

    real = real.build()
    exact = jax.jit(jax.vmap(lambda q, v, a: jd.rnea(real, q, v, a) - jd.passive_forces(real, q, v)))
    delays = np.array([0.0213, 0.0081])
    effort = np.stack(
        [exact(_motion(t - d), _motion(t - d, 1), _motion(t - d, 2))[:, k] for k, d in enumerate(delays)], 1
    )
    rng = np.random.default_rng(4)
    effort = np.round((effort + 0.05 * rng.normal(size=effort.shape)) / 0.02) * 0.02
    options = Preparation(cutoff=20.0, effort_delay=None, longest_delay=0.1)
    logs, report = prepare([_table(t, "run", _motion(t), None, effort)], m, None, options)
    found = list(report.runs[0].effort_delay.values())
    np.testing.assert_allclose(found, delays, atol=1.5e-3)  # a third of a sample
    truth = exact(*(_motion(logs[0].t, k) for k in range(3)))
    assert float(jnp.sqrt(jnp.mean((logs[0].effort - truth) ** 2))) < 0.05


# Splits


def _log(name, n=1001, start=0.0):
    t = start + np.arange(n) * 0.01
    return Log(t, _motion(t), _motion(t, 1), None, _efforts(t), name=name)


def test_hold_out_runs_selects_by_name():
    logs = [_log("a.csv#1"), _log("a.csv#2"), _log("b.csv")]
    split = hold_out_runs(logs, ["a.csv"])
    assert [x.name for x in split.held_out] == ["a.csv#1", "a.csv#2"] and split.fit == [logs[2]]
    assert [x.name for x in hold_out_runs(logs, ["*#2"]).held_out] == ["a.csv#2"]
    with pytest.raises(jd.ModelError, match="no log is named 'c.csv'"):
        hold_out_runs(logs, ["c.csv"])
    with pytest.raises(LogError, match="leaves no data for the fit"):
        hold_out_runs(logs, ["*"])


def test_hold_out_times_leaves_a_guard_interval():
    split = hold_out_times([_log("a")], [(2.0, 4.0)], guard=0.1)
    (held_out,), (before, after) = split.held_out, split.fit
    assert float(held_out.t[0]) == pytest.approx(2.1, abs=0.011)
    assert float(held_out.t[-1]) == pytest.approx(3.9, abs=0.011)
    assert float(before.t[-1]) == pytest.approx(1.9, abs=0.011) and float(after.t[0]) == pytest.approx(4.1, abs=0.011)
    np.testing.assert_array_equal(held_out.effort, _efforts(held_out.t))
    with pytest.raises(jd.ModelError, match="no log has samples in the held-out blocks"):
        hold_out_times([_log("a")], [(20.0, 21.0)])
    with pytest.raises(jd.ModelError, match="ends before it begins"):
        hold_out_times([_log("a")], [(2.0, 1.0)])


def test_hold_out_share_covers_all_rows_once():
    split = hold_out_share([_log("a"), _log("b", start=5.0)], 0.2, 4, guard=0.0)
    held = sum(x.num_samples for x in split.held_out)
    assert len(split.held_out) == 8 and held == pytest.approx(0.2 * 2002, abs=10)
    assert held + sum(x.num_samples for x in split.fit) == 2002
    rows = np.concatenate([np.asarray(x.t) for x in split.held_out if x.name.startswith("a")])
    assert rows.max() == pytest.approx(10.0) and not np.isin(rows, np.asarray(split.fit[0].t)).any()


@pytest.mark.slow
@pytest.mark.parametrize("duration", [0.1, 0.3, 0.6, 1.0, 1.5, 1.7, 2.5, 4.0])
def test_hold_out_share_of_pieces_that_trimming_leaves(duration):
    """Most of the share is held out at any length, apart from the guard, which is in neither set."""
    pieces = [_log("a").rows(slice(0, round(100 * duration)), f"a#{k}") for k in range(8)]
    split = hold_out_share(pieces)
    total, held = sum(x.num_samples for x in pieces), sum(x.num_samples for x in split.held_out)
    assert 0.25 * 0.25 * total <= held <= 0.26 * total
    assert sum(x.num_samples for x in split.fit) >= 0.45 * total
    assert all(np.diff(x.t).max() < 0.011 for x in (*split.fit, *split.held_out))
    names = {x.name for x in split.fit} & {x.name for x in split.held_out}
    assert not names


def test_hold_out_share_of_one_piece_that_is_too_short():
    with pytest.raises(LogError, match="too short to hold out a share of 0.25: the longest lasts 0.29 s and the guard"):
        hold_out_share([_log("a").rows(slice(0, 30), "a")])
    short = hold_out_share([_log("a").rows(slice(0, 30), "a")], guard=0.0)
    assert sum(x.num_samples for x in short.held_out) == pytest.approx(0.25 * 30, abs=4)


def test_decimation_to_a_lower_rate_does_not_alias():
    """A signal of 96 Hz sampled at 1000 Hz; in every tenth row it would appear as 4 Hz, below the cut-off frequency."""
    t = np.arange(8000) * 0.001
    fast = 0.05 * np.sin(2 * np.pi * 96 * t)[:, None]
    table = _table(t, q=_motion(t) + fast, effort=_efforts(t) + fast)
    logs, report = prepare([table], _arm(), None, Preparation(rate=100, cutoff=10.0, edge=1.0))
    assert report.runs[0].rate == 100 and logs[0].num_samples == pytest.approx(600, abs=2)
    np.testing.assert_allclose(np.diff(logs[0].t), 0.01, atol=1e-12)
    np.testing.assert_allclose(logs[0].q, _motion(logs[0].t), atol=1e-4)
    np.testing.assert_allclose(logs[0].effort, _efforts(np.asarray(logs[0].t)), atol=1e-3)


def test_delay_beyond_the_search_interval_is_reported():
    t = np.arange(2000) * 0.005
    lags = np.linspace(-0.05, 0.05, 21)
    column = _motion(t)[:, :1]
    late = lambda delay: np.stack([_motion(t - delay + lag)[:, 0] for lag in lags])
    delay, at_bound = _best_lag(column, late(0.0213), lags)
    assert delay == pytest.approx(0.0213, abs=1e-4) and not at_bound
    assert _best_lag(column, late(0.12), lags) == (0.0, True)
    flat = np.random.default_rng(0).normal(size=(1, t.size)) + np.zeros(
        (21, 1)
    )  # an effort without any relation to the motion
    assert _best_lag(column, flat, lags) == (0.0, False)
    (note,) = _describe_bounded_delays(_arm(), Preparation(effort_delay=None), np.array([False, True]))
    assert "effort of lower: the best delay is at the bound of the search, 0.25 s" in note
