"""The code of the pages on models and on dynamics runs."""

import re
from pathlib import Path

import jax
import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.slow
@pytest.mark.parametrize("page", ["models", "dynamics"])
def test_the_page_runs(page):
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.S | re.M)
    assert len(blocks) >= 2
    names: dict = {}
    for block in blocks:
        exec(compile(block, f"{page}.md", "exec"), names)
    assert all(isinstance(x, jax.Array) for x in (names["q"], names["v"]))
