"""The parts of the tour at small sizes, its checks, and the parser of the command."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.cli import main
from jaxdyn.cli.terminal import Report
from jaxdyn.cli.tour import _motions, _recover, _swing, _tour
from jaxdyn.robots import panda

ROOT = Path(__file__).parents[2]
SMALL = _tour.Size(
    samples=8,
    duration=0.2,
    segments=2,
    differentiated=0.1,
    log=1000,
    linkage=0.5,
    intervals=40,
)


@pytest.mark.exhaustive
def test_small_tour(tmp_path):
    out = tmp_path / "plots"
    report = _tour.tour(out, SMALL)
    assert report.failures == []
    assert report.done == report.bar.total
    found = {path.name: path.read_bytes() for path in out.iterdir()}
    figures = {path: data for path, data in found.items() if path.endswith(".png")}
    names = ("tour", "joints", "energies", "sensitivities", "parameters", "loop", "swing_up")
    assert set(figures) == {f"{name}.png" for name in names}
    assert all(data.startswith(b"\x89PNG") and len(data) > 10_000 for data in figures.values())
    assert set(found) - set(figures) == {f"{panda().name}.urdf"}


@pytest.mark.slow
def test_printed_eigenvalues_are_those_of_the_mass_matrix(capsys):
    robot = panda()
    _tour.evaluate_dynamics(Report(1), robot)
    text = capsys.readouterr().out
    moments = re.search(r"mass matrix \[kg m2\] +(.*)", text)[1].split()
    q = jax.vmap(lambda key: _tour.random_configuration(robot, key))(jax.random.key(1)[None])[0]
    expected = np.linalg.eigvalsh(_tour.mass_matrix(robot, q))
    np.testing.assert_allclose([float(x) for x in moments], expected, rtol=5e-3)


@pytest.mark.exhaustive
def test_swings_start_at_rest_in_the_initial_configurations():
    robot = panda()
    q, v = _swing.random_starts(robot, 3)
    assert (q >= robot.limits.lower).all() and (q <= robot.limits.upper).all()
    run = _swing.segment_function(0.02, 2)
    parts = [run(_swing.without_friction(robot), q, v)]
    swings = _swing.concatenate_segments(robot, (q, v), parts, 0.02)
    assert swings.q.shape == (3, 3, 7) and swings.t.tolist() == [0, 0.01, 0.02]
    np.testing.assert_array_equal(swings.q[:, 0], q)
    fall = jax.vmap(lambda q, v: _tour.forward_dynamics(robot, q, v, v))(q, v)
    np.testing.assert_allclose(swings.q[:, 1] - q, fall * 0.01**2 / 2, rtol=0.05, atol=1e-5)


def test_perturbed_models_differ_in_one_number_each():
    robot = panda()
    batch = _swing.perturbed_models(robot, 0.125)
    shift = np.linalg.norm(batch.placements.translation - robot.placements.translation, axis=-1).sum(1)
    load = np.asarray(batch.links.mass - robot.links.mass).sum(1)
    moves = np.where(np.linalg.norm(robot.placements.translation, axis=1) > 0, 0.125, 0)
    np.testing.assert_allclose(shift, np.concatenate([moves, np.zeros(7)] * 2), atol=1e-15)
    half = np.concatenate([np.zeros(7), np.full(7, 0.125)])
    np.testing.assert_allclose(load, np.concatenate([half, -half]), atol=1e-15)


def test_perturbation_affects_the_fitted_parameters_only():
    robot = _swing.with_damping(panda(), 1.0)
    other = _recover.perturb_model(robot, jax.random.key(0))
    ratio = other.links.mass / jnp.where(robot.links.mass > 0, robot.links.mass, 1)
    moving = np.isin(np.arange(robot.num_links), robot.topology.bodies[1:])
    assert (np.abs(np.log(ratio[moving])) > 1e-3).all()
    np.testing.assert_array_equal(other.links.mass[~moving], robot.links.mass[~moving])
    for name in ("damping", "friction"):
        a, b = (np.asarray(getattr(m.properties, name)) for m in (other, robot))
        assert ((a != b) & (np.abs(np.log(a / b)) <= 0.4)).all()


@pytest.mark.exhaustive
def test_identification_without_noise_is_exact():
    robot = _swing.with_damping(panda(), 1.0)
    log = jax.jit(lambda m: _recover.generate_log(m, jax.random.key(0), 100, 0.0))(robot)
    result = _recover.identify_losses_and_masses(_recover.perturb_model(robot, jax.random.key(1)), log)
    np.testing.assert_allclose(result.model.links.mass, robot.links.mass, rtol=1e-5)
    np.testing.assert_allclose(result.model.properties.damping, robot.properties.damping, rtol=1e-5)


@pytest.mark.exhaustive
def test_linkage_rotates_and_satisfies_its_closure():
    loop = _motions.simulate_linkage(4.0, 0.2, 5)
    assert loop.gap.max() < 1e-9
    first = np.arctan2(*(loop.points[:, 1] - loop.points[:, 0]).T[::-1])
    assert abs((first[1] - first[0]) / 0.05 - 4.0) < 0.5
    lengths = np.linalg.norm(np.diff(loop.points, axis=1), axis=-1)
    np.testing.assert_allclose(lengths, np.broadcast_to(_motions.LENGTHS[1:], lengths.shape), atol=1e-9)


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
    assert main(["tour", "--out", str(tmp_path)]) == (0 if passed else 1)


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert re.fullmatch(r"jaxdyn \d+\.\d+\.\d+\s", capsys.readouterr().out)


def test_an_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["fly"])
    assert stop.value.code == 2
    assert "tour" in capsys.readouterr().err


WITHOUT_THE_LIBRARY = """
import importlib.util, sys, types
package = types.ModuleType("jaxdyn")
package.__path__ = list(importlib.util.find_spec("jaxdyn").submodule_search_locations)
sys.modules["jaxdyn"] = package  # in place of jaxdyn/__init__.py, which imports the whole library
from jaxdyn.cli import main
try:
    main({arguments})
except SystemExit as stop:
    assert stop.code == 0
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("jax", "numpy") or name.startswith("jaxdyn.")))
"""


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["fit", "--help"], ["simulate", "--help"]])
def test_parser_imports_neither_jax_nor_the_library(arguments):
    code = WITHOUT_THE_LIBRARY.format(arguments=arguments)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    imported = ast.literal_eval(run.stdout.splitlines()[-1])
    commands = ("fit", "info", "simulate", "tour")
    expected = {"jaxdyn.cli", "jaxdyn.cli._main", "jaxdyn.cli.arguments", "jaxdyn.cli.arguments._robot"}
    expected |= {f"jaxdyn.cli.{name}{module}" for name in commands for module in ("", "._command")}
    assert set(imported) == expected
