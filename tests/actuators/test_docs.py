"""The code of docs/drives.md and docs/elastic.md runs."""

import pytest

from tests.pages import run_page


@pytest.mark.slow
def test_drives_page_runs():
    names = run_page("drives")
    assert abs(names["peak"] - 5.6159) < 1e-3 and names["run"].status == names["jd"].SimulationStatus.EVENT


@pytest.mark.slow
def test_elastic_page_runs():
    names = run_page("elastic")
    assert names["on_motor"] < 0 < names["on_joint"]
