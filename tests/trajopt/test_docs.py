"""The code of docs/trajopt.md runs."""

import pytest

from tests.pages import code_blocks, run_page


@pytest.mark.slow
def test_trajopt_page():
    assert len(code_blocks("trajopt")) >= 3
    run_page("trajopt")
