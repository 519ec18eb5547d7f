"""The code of docs/flexible.md runs."""

import pytest

from tests.pages import run_page


@pytest.mark.slow
def test_flexible_page_runs():
    names = run_page("flexible")
    assert abs(names["deflection"] - 0.49345748) < 1e-3
