"""Reports on fits: residuals against their definitions, the rules of the verdict, and the self-contained page."""

import dataclasses
import functools as ft
import html.parser
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, drive, joint_friction
from jaxdyn.identification import (
    FramePoses,
    Log,
    OutputError,
    PreparationReport,
    Split,
    Windows,
    report_on,
    simulation_error,
    whiteness,
)
from jaxdyn.identification.fitting import _result as results
from jaxdyn.identification.preparation._report import Interval, RunReport, VelocityCheck

ROBOT = jd.robots.double_pendulum()
JOINTS = [name for name, _ in jd.simulation.effort_names(ROBOT)]
NOISE = 0.05


def _log(name, seed, bias=0.0, n=600):
    rng = np.random.default_rng(seed)
    t = np.arange(n) * 0.01
    w = np.array([2.0, 3.0])
    q, v, a = (0.8 * w**k * np.sin(np.outer(t, w) + k * np.pi / 2) for k in range(3))
    effort = _exact(jnp.asarray(q), jnp.asarray(v), jnp.asarray(a)) + NOISE * rng.normal(size=(n, 2)) + bias
    return Log(t, q, v, a, effort, name=name)


_exact = jax.jit(jax.vmap(lambda q, v, a: jd.rnea(ROBOT, q, v, a) - jd.passive_forces(ROBOT, q, v)))


def _result(**changes):
    row = results.ParameterRow("links[<lower>].mass", "kg", 1.0, 1.1, 0.01, True)
    errors = tuple(results.JointError(j, "N m", NOISE, NOISE, 1.0, 1.0) for j in JOINTS)
    fields = {
        "system": jd.System(ROBOT),
        "status": results.FitStatus.CONVERGED,
        "steps": 7,
        "initial_cost": 2.0,
        "cost": 1.0,
        "parameters": (
            row,
            dataclasses.replace(row, name="joints[a].damping", deviation=float("nan"), observable=False),
        ),
        "base": (results.BaseParameter("Ixx(a) - 0.5 m(b)", 1.0, 2.0, 0.1),),
        "unobservable": ("m(upper) & Izz(upper)",),
        "condition": 12.5,
        "errors": errors,
        "physical": tuple(results.LinkCheck(n, True, 0.1, "") for n in ROBOT.link_names),
        "covariance": np.eye(2),
    }
    return results.FitResult(**{**fields, **changes})


@ft.cache
def _split():
    return Split([_log("fit.csv", 0), _log("more.csv", 1)], [_log("other.csv", 2)])


def _held_out():
    return _split().held_out


@pytest.mark.parametrize("lag", [0.0, 0.4])
def test_whiteness_test_equals_scipy(lag):
    rng = np.random.default_rng(5)
    noise = rng.normal(size=2000)
    e = noise[1:] + lag * noise[:-1]
    found = whiteness([e], [0.01], None)
    x = e - e.mean()
    r = np.array([x[:-k] @ x[k:] for k in range(1, 21)]) / (x @ x)
    np.testing.assert_allclose(found.autocorrelation, r, atol=1e-12)
    q = len(x) * (len(x) + 2) * np.sum(r**2 / (len(x) - np.arange(1, 21)))
    assert found.statistic == pytest.approx(q, rel=1e-12)
    assert found.probability == pytest.approx(scipy.stats.chi2.sf(q, 20), abs=1e-10)
    assert found.white is (lag == 0) and found.bound == pytest.approx(1.96 / np.sqrt(1999))


def test_filtered_white_noise_is_white_at_twice_its_bandwidth():
    from jaxdyn.identification.preparation._signals import filter_zero_phase

    e = filter_zero_phase(np.random.default_rng(6).normal(size=(20000, 1)), 0.001, 25.0, 4)[:, 0]
    assert not whiteness([e], [0.001], None).white
    found = whiteness([e], [0.001], 25.0)
    assert found.white and found.step == pytest.approx(0.025)
    slow = np.convolve(np.random.default_rng(6).normal(size=20039), np.ones(40) / 40, "valid")[:, None]
    assert not whiteness([filter_zero_phase(slow, 0.001, 25.0, 4)[:, 0]], [0.001], 25.0).white
    rate = np.mean([whiteness([np.random.default_rng(k).normal(size=500)], [0.01], None).white for k in range(200)])
    assert rate > 0.95  # a test at the 1 % level
    assert whiteness([np.zeros(100)], [0.01], None) is None


@pytest.mark.slow
def test_residuals_and_verdict_of_a_good_fit():
    report = report_on(_result(), _split())
    for r in (*report.fit, *report.held_out):
        assert r.rmse == pytest.approx(NOISE, rel=0.1) and abs(r.bias) < 0.01 and r.whiteness.white
    log = _split().held_out[0]
    rest = np.asarray(log.effort - _exact(log.q, log.v, log.a))
    np.testing.assert_allclose([r.rmse for r in report.held_out], np.sqrt(np.mean(rest**2, axis=0)), rtol=1e-12)
    size = np.sqrt(np.mean(np.asarray(log.effort) ** 2, axis=0))
    np.testing.assert_allclose(
        [r.relative for r in report.held_out], np.sqrt(np.mean(rest**2, axis=0)) / size, rtol=1e-12
    )
    assert report.verdict.grade == "good"
    assert report.verdict.sentence.startswith(
        "This model can be trusted on motions like those of the logs (median relative error 0.0"
    )
    assert "1 direction of the parameters cannot be identified" in report.verdict.sentence


@pytest.mark.parametrize(
    ("changes", "held_out", "grade", "words"),
    [
        ({"status": results.FitStatus.MAX_STEPS}, _held_out, "bad", "convergence: MAX_STEPS after 7 steps"),
        (
            {"physical": (results.LinkCheck("<lower>", False, -0.1, "x"),)},
            _held_out,
            "bad",
            "not physically consistent: <lower>",
        ),
        ({"physical": (results.LinkCheck("antenna", False, -0.1, "x"),)}, _held_out, "good", "can be trusted"),
        ({}, lambda: [_log("x", 3, bias=5.0)], "bad", "accuracy: median relative error"),
        ({}, lambda: [_log("x", 3, bias=0.07)], "fair", "; only fair: generality"),
        ({}, list, "good", "Without held-out data, its accuracy on other motions is unknown"),
    ],
)
def test_failed_rules_determine_grade_and_sentence(changes, held_out, grade, words):
    report = report_on(_result(**changes), Split(_split().fit, held_out()))
    assert report.verdict.grade == grade and words in report.verdict.sentence
    assert {"good": "can be trusted", "fair": "with care", "bad": "should not be used"}[
        grade
    ] in report.verdict.sentence


def test_uncertain_base_parameters_and_coloured_residuals_are_only_fair():
    row = _result().base[0]
    uncertain = _result(base=(dataclasses.replace(row, deviation=1.0),))
    report = report_on(uncertain, _split())
    rule = next(r for r in report.verdict.rules if r.name == "parameters")
    assert rule.grade == "fair" and rule.finding.startswith("1 of 1 base parameters")
    assert report_on(_result(base=()), _split()).verdict.grade == "bad"  # no base parameter is determined
    drift = lambda log: np.asarray(_exact(log.q, log.v, log.a)) + 0.2 * np.sin(np.asarray(log.t))[:, None]
    report = report_on(_result(), _split(), predict=drift)
    rule = next(r for r in report.verdict.rules if r.name == "residuals")
    assert rule.grade == "fair" and rule.finding.startswith("not white at 2 of 2 joints")


@pytest.mark.slow
def test_predicted_efforts_include_all_parts_and_the_delay():
    """The log has additional friction, a gain, an offset and a delay of the commands, in closed form."""
    log = _log("made", 0)
    ahead = np.asarray(log.t) + 0.02
    w = np.array([2.0, 3.0])
    q, v, a = (0.8 * w**k * np.sin(np.outer(ahead, w) + k * np.pi / 2) for k in range(3))
    effort = np.asarray(_exact(jnp.asarray(q), jnp.asarray(v), jnp.asarray(a))) + 0.3 * np.tanh(v / 0.1) + 0.2 * v
    log = dataclasses.replace(log, effort=jnp.asarray((effort - 0.4) / 2.0))
    parts = (drive(ROBOT, gain=2.0, offset=0.4, delay=0.02), joint_friction(ROBOT, coulomb=0.3, viscous=0.2, width=0.1))
    report = report_on(_result(system=jd.System(ROBOT, parts)), [log.rows(slice(0, 590))])
    rest = report.series[0].measured - report.series[0].predicted
    np.testing.assert_allclose(rest[:580], 0, atol=2e-3)  # cubic interpolation of steps of 10 ms
    assert report.compared == "efforts" and max(r.relative for r in report.fit) < 0.01


@pytest.mark.slow
def test_output_error_fits_are_compared_by_motion_over_windows():
    """A motor with a current state, on a log without accelerations."""
    robot = jd.robots.pendulum(damping=0.3)
    motor = DcMotor(robot.joint_names[0], 2.0, constant=0.1, resistance=1.0, inductance=0.05, gear=5.0)
    system = jd.System(robot, (motor,))
    t = jnp.arange(0.0, 1.0, 0.01)
    run = jd.simulate(jd.System(robot), jnp.array([1.0]), jnp.zeros(1), t)
    log = Log(t, run.q, run.v, None, jnp.zeros_like(run.v), "swing")
    windows = Windows(length=0.2, every=5, lead=0.0)
    report = report_on(_result(system=system, method=OutputError(windows)), Split([log], [log]), title="Motion")
    assert report.fit[0].rmse == pytest.approx(simulation_error(system, [log], windows)[0], rel=1e-9)
    assert report.fit[0].unit == "rad" and report.fit[0].whiteness is None
    q = np.asarray(log.q)[:, 0]
    moved = np.concatenate([q[k + np.array([5, 10, 15, 20])] - q[k] for k in (0, 20, 40, 60)])
    assert report.fit[0].relative == pytest.approx(report.fit[0].rmse / np.sqrt(np.mean(moved**2)), rel=1e-9)
    series = report.series[0]
    np.testing.assert_allclose(series.measured[:, 0], np.interp(series.t, t, q), atol=1e-9)
    assert "Errors of the motion over windows of 0.2 s" in report.html()
    with pytest.raises(jd.ModelError, match="this fit used frame poses"):
        report_on(_result(method=FramePoses()), [log])


class _Page(html.parser.HTMLParser):
    void = frozenset({"meta", "rect", "line", "path"})

    def __init__(self):
        super().__init__()
        self.open_tags, self.tags, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for key, value in attrs if key in ("src", "href")]
        if tag not in self.void:
            self.open_tags.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.void:
            assert self.open_tags.pop() == tag


def test_page_is_self_contained(tmp_path):
    run = RunReport(
        "fit.csv", 600, 3, 100.0, (0.009, 0.01, 0.02), 20.0, "given", 4, {JOINTS[0]: 0.004},
        (VelocityCheck(JOINTS[0], 1.0, 0.99, 0.001),), (Interval(1.0, 2.0, "rest"),), {"fit.csv": 600},
    )  # fmt: skip
    result = _result(dependence=(3.0, 8.0))
    report = report_on(result, _split(), PreparationReport((run,)), title="An <arm> & its log")
    report.to_html(tmp_path / "report.html")
    report.to_json(tmp_path / "report.json")
    text = (tmp_path / "report.html").read_text()
    page = _Page()
    page.feed(text)
    assert page.open_tags == [] and page.links == [] and "script" not in page.tags and "url(" not in text
    assert page.tags.count("svg") == 2 * 2 + 2  # each joint on both data sets, and its autocorrelation
    assert "An &lt;arm&gt; &amp; its log" in text and "links[&lt;lower&gt;].mass" in text and "nan" not in text
    assert "removed 1 to 2 s: rest" in text and "m(upper) &amp; Izz(upper)" in text
    found = json.loads((tmp_path / "report.json").read_text())
    assert found["verdict"]["grade"] == report.verdict.grade and found["parameters"][1]["deviation"] is None
    assert found["errors"]["held_out"][0]["rmse"] == report.held_out[0].rmse
    assert found["preparation"]["runs"][0]["left_out"][0]["why"] == "rest"
    assert "3 to 8 samples" in text and found["dependence"] == [3.0, 8.0]
    assert found["logs"] == {"fit": {"fit.csv": 600, "more.csv": 600}, "held_out": {"other.csv": 600}}


def test_plotted_curves_keep_extremes_and_gaps():
    from jaxdyn.identification.report import _svg as svg

    t = np.linspace(0, 1, 20000)
    x = np.sin(20 * t)
    x[12345] = 7.0  # a single sample must be visible
    x[5000:5100] = np.nan
    text = svg.plot_curves("a < b", "N m", (("measured", t, x, "#000"),))
    path = text.partition('<path d="')[2].partition('"')[0]
    heights = [float(point.split()[1]) for point in path.replace("L", "M").split("M")[1:]]
    top = svg._ABOVE + 0.05 * 8 / (8 * 1.1) * (svg._H - svg._BELOW - svg._ABOVE)
    assert min(heights) == pytest.approx(top, abs=0.6) and path.count("M") == 2 and len(heights) < 900
    assert "a &lt; b" in text
