"""The code of the page on loads runs."""

import pytest

from tests.pages import run_page


@pytest.mark.slow
def test_page():
    names = run_page("loads")
    assert repr(names["worst"]) == "WorstCase(1.89631e+07 at t = 1.44 s, link 'link2', s = 0 m)"
