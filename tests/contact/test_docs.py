"""The code of docs/contact.md runs."""

import pytest

from ..pages import run_page


@pytest.mark.slow
def test_page_runs():
    run_page("contact")
