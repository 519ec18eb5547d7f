"""The benchmark of constrained motion gives rows."""

import pytest

from benchmarks import constraints
from benchmarks._timing import Effort


@pytest.mark.slow
@pytest.mark.wide
def test_rows_of_constrained_motion():
    rows = constraints.precision_rows("A01 pendulum", (1e-6, 1e-8), 1)
    assert rows[1]["error"] < rows[0]["error"] < 1e-2
    assert "us_per_step" in constraints.table(rows)
    rows = constraints.loop_rows((1, 2), Effort(0.0, 1), (1, 3))
    assert {(r["work"], r["loops"], r["batch"]) for r in rows} == {
        (w, n, b) for w in ("acceleration", "projection") for n in (1, 2) for b in (1, 3)
    }
    assert all(r["us"] > 0 for r in rows)
