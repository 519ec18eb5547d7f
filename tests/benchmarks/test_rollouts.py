"""The benchmark of rollouts: engines agree before they are timed, and its table shows all of them."""

import dataclasses

import pytest

from benchmarks import _rollouts, rollouts
from benchmarks._timing import Effort, Row

TINY = Effort(0.0, 1)


@pytest.mark.exhaustive
def test_engines_agree(monkeypatch):
    pytest.importorskip("mujoco.mjx")
    monkeypatch.setattr(_rollouts, "LONG", 5)
    monkeypatch.setattr(_rollouts, "STEPS", 4)
    monkeypatch.setattr(_rollouts, "GRADIENT_BATCH", 2)
    rows = [
        row for engine in rollouts.ENGINES for row in _rollouts.rows(engine, "float64", ["double_pendulum"], (3,), TINY)
    ]
    names = {"mujoco.rollout", "jaxdyn simulate", "jaxdyn, loop of lax.scan", "MJX"}
    found = {(r.engine, r.work, r.batch) for r in rows}
    assert found == {(n, _rollouts.ROLLOUT, 3) for n in names} | {
        (n, _rollouts.GRADIENT, 2) for n in names - {"mujoco.rollout"}
    }
    for row in rows:
        assert row.note == "" and row.best_us > 0
        assert row.error < (1e-12 if row.work == _rollouts.ROLLOUT else 1e-8)
    text = rollouts.table(rows)
    assert all(name in text for name in names) and "double_pendulum, float64" in text


def test_a_wrong_engine_is_not_timed():
    p = _rollouts.rods(4)

    def still(model, q, v):
        return q, v

    row = _rollouts._rollout(p, still, (p.model,), "float64", 2, TINY, _rollouts.Mujoco(p), "jaxdyn")
    assert "disagrees" in row.note and row.best_us != row.best_us


def test_the_table_compares_with_mujoco():
    row = Row("panda", _rollouts.ROLLOUT, "float64", 256, "mujoco.rollout", 0.0, 2.0, 2.5, 0.0)
    fast = dataclasses.replace(row, engine="other", best_us=0.5, compile_s=1.25, error=1e-9)
    text = rollouts.table([row, fast])
    (line,) = [line for line in text.splitlines() if "other" in line]
    assert line.split() == ["rollout", "256", "other", "1.25", "0.500", "2.500", "2,000,000", "0.25", "1.0e-09"]


def test_sections_of_a_quick_run():
    args = rollouts.parse(["--quick"])
    assert rollouts.sections(args) == [
        ("mujoco", "float64", [1, 4096]),
        ("jaxdyn", "float64", [1, 4096]),
        ("jaxdyn", "float32", [4096]),
        ("mjx", "float64", [4096]),
    ]
    assert ("mjx", "float32", [1, 256, 4096]) in rollouts.sections(rollouts.parse([]))
