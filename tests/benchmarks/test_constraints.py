"""The benchmark of constrained motion gives rows."""

import pytest

from benchmarks import constraints
from benchmarks._timing import Effort


@pytest.mark.slow
def test_rows_of_work_and_precision():
    rows = constraints.precision_rows("A01 pendulum", "GGL", (1e-4, 1e-6), 1)
    assert rows[1]["error"] < rows[0]["error"] < 1.0
    assert rows[1]["off"] < rows[0]["off"] < 1e-2
    assert rows[1]["steps"] > rows[0]["steps"]
    assert "us_per_step" in constraints.table(rows)
    assert set(constraints.PROBLEMS) >= set(constraints.FASTER)


@pytest.mark.exhaustive
def test_rows_of_costs():
    rows = constraints.loop_rows((1,), Effort(0.0, 1), (2,))
    assert {(r["work"], r["loops"], r["batch"]) for r in rows} == {(w, 1, 2) for w in ("acceleration", "projection")}
    assert all(r["us"] > 0 for r in rows)
    rows = constraints.rollout_rows((1,), Effort(0.0, 1), (2,), 2, ("projection",))
    assert [(r["remedy"], r["loops"], r["batch"]) for r in rows] == [("projection", 1, 2)]
    assert rows[0]["us_per_step"] > 0
