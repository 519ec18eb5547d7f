"""The benchmark of flexible links: orders of convergence."""

import pytest

from benchmarks import _flexible_cases as cases
from benchmarks import flexible


@pytest.mark.exhaustive
def test_orders_of_convergence(capsys):
    rows = list(flexible.converge(("first", "second", "third"), cases.cantilever_frequencies, cases.CANTILEVER, (4, 8)))
    assert all(abs(row.order - 2) < 0.2 for row in rows)
    assert rows[0].sublinks_for(1e-2) == 5 and rows[0].sublinks_for(1e-3) == 16
    flexible.print_rows(rows)
    assert "1 %:   5   0.1 %:  16" in capsys.readouterr().out
