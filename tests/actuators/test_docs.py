"""The code of docs/elastic.md runs."""

import pytest

from ..pages import run_page


@pytest.mark.slow
def test_page_runs():
    names = run_page("elastic")
    assert names["on_motor"] < 0 < names["on_joint"]
