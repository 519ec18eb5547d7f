"""The tour's parts at small sizes: they find what they claim, and a check that fails is not hidden."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.cli import _fit, _main, _swing, _tour, main
from jaxdyn.cli._report import Report
from jaxdyn.robots import panda

SMALL = _tour.Size(
    samples=8,
    duration=0.2,
    segments=2,
    differentiated=0.1,
    log=200,
    fit_steps=800,
    fit_chunks=4,
)


@pytest.mark.slow
@pytest.mark.wide
def test_small_tour(tmp_path):
    out = tmp_path / "plots"
    report = _tour.tour(out, SMALL)
    assert report.failures == []
    assert report.done == report.bar.total
    found = {path.name: path.read_bytes() for path in out.iterdir()}
    assert set(found) == {"tour.png", "joints.png", "energies.png", "sensitivities.png", "parameters.png"}
    assert all(data.startswith(b"\x89PNG") and len(data) > 10_000 for data in found.values())


def test_figures_come_from_the_robot(capsys):
    robot = panda()
    _tour.evaluate(Report(1), robot)
    text = capsys.readouterr().out
    moments = re.search(r"mass matrix \[kg m2\] +(.*)", text)[1].split()
    q = jax.vmap(lambda key: _tour.random_configuration(robot, key))(jax.random.key(1)[None])[0]
    expected = np.linalg.eigvalsh(_tour.mass_matrix(robot, q))
    np.testing.assert_allclose([float(x) for x in moments], expected, rtol=5e-3)


def test_swings_start_where_they_are_let_go():
    robot = panda()
    q, v = _swing.starts(robot, 3)
    assert (q >= robot.limits.lower).all() and (q <= robot.limits.upper).all()
    run = _swing.segment_function(0.02, 2)
    parts = [run(_swing.lossless(robot), q, v)]
    swings = _swing.collect(robot, (q, v), parts, 0.02)
    assert swings.q.shape == (3, 3, 7) and swings.t.tolist() == [0, 0.01, 0.02]
    np.testing.assert_array_equal(swings.q[:, 0], q)
    fall = jax.vmap(lambda q, v: _tour.forward_dynamics(robot, q, v, v))(q, v)
    np.testing.assert_allclose(swings.q[:, 1] - q, fall * 0.01**2 / 2, rtol=0.05, atol=1e-5)


def test_variants_change_one_number_each():
    robot = panda()
    batch = _swing.variants(robot, 0.125)
    shift = np.linalg.norm(batch.placements.translation - robot.placements.translation, axis=-1).sum(1)
    load = np.asarray(batch.links.mass - robot.links.mass).sum(1)
    moves = np.where(np.linalg.norm(robot.placements.translation, axis=1) > 0, 0.125, 0)
    np.testing.assert_allclose(shift, np.concatenate([moves, np.zeros(7)] * 2), atol=1e-15)
    half = np.concatenate([np.zeros(7), np.full(7, 0.125)])
    np.testing.assert_allclose(load, np.concatenate([half, -half]), atol=1e-15)


def test_excitation_is_a_motion():
    robot = panda()
    q, v, a = _fit.excitation(robot, jax.random.key(0), 4000)
    for x, rate in ((q, v), (v, a)):
        slope = (x[2:] - x[:-2]) / (2 * 10.0 / 4000)
        np.testing.assert_allclose(slope, rate[1:-1], atol=1e-4)


def test_standard_errors_scale_with_the_noise():
    robot = _swing.damped(panda(), 1.0)
    log = _fit.generated_log(robot, jax.random.key(0), 100, 0.0)
    exact = _fit.Parameters(jnp.zeros(6), jnp.zeros(7), jnp.zeros(7))
    errors = jax.jit(lambda noise: _fit.standard_errors(robot, log, noise, exact))
    one, ten = errors(1.0), errors(10.0)
    np.testing.assert_allclose(np.concatenate(ten), 10 * np.concatenate(one), rtol=1e-8)
    assert float(jnp.abs(_fit.residuals(robot, log, 1.0, exact)).max()) < 1e-12


@pytest.mark.parametrize(("value", "good"), [(1e-12, True), (1e-3, False), (np.nan, False)])
def test_checks_can_fail(value, good, capsys):
    report = Report(1)
    report.check("a residual", value, 1e-6)
    assert report.passed is good
    assert ("FAILED" in capsys.readouterr().out) is not good


@pytest.mark.parametrize("passed", [True, False])
def test_exit_code(passed, monkeypatch, tmp_path):
    def tour(out):
        assert out == tmp_path
        report = Report(1)
        report.check("anything", 0.0 if passed else 1.0, 0.5)
        return report

    monkeypatch.setattr(_tour, "tour", tour)
    assert _main.main(["tour", "--out", str(tmp_path)]) == (0 if passed else 1)


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert re.fullmatch(r"jaxdyn \d+\.\d+\.\d+\s", capsys.readouterr().out)


def test_a_command_is_required(capsys):
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2
    assert "tour" in capsys.readouterr().err
