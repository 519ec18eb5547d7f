"""The code of docs/trajopt.md runs, and the page names what there is."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "trajopt.md"


@pytest.mark.slow
def test_the_page_runs():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    assert len(blocks) >= 3
    names: dict = {"__name__": "trajopt_page"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
