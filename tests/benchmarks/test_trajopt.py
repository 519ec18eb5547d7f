"""The benchmark of optimal motions gives rows, and both solvers the same optima."""

import pytest

from benchmarks import _trajopt_cases as cases
from benchmarks import trajopt


@pytest.mark.exhaustive
def test_rows_of_optimal_motions():
    case = cases.CART_POLE._replace(end_control=(0,))
    rows = trajopt.pair(case, 20, 1)
    assert [r["solver"] for r in rows] == ["jaxdyn", "CasADi + IPOPT"]
    assert rows[0]["optimum"] == pytest.approx(rows[1]["optimum"], rel=1e-7)
    assert not any(r["note"] for r in rows)
    assert "58.8077" in trajopt.table(rows)
    assert all(r["seconds"] > 0 for r in rows)
