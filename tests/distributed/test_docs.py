"""The code of docs/distributed.md runs, and the page names all that is public."""

import re
from pathlib import Path

import numpy as np
import pytest

from jaxdyn import distributed

PAGE = Path(__file__).parents[2] / "docs" / "distributed.md"


@pytest.mark.slow
def test_the_page_runs():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    assert [block.startswith("# rollouts.py") for block in blocks] == [False, False, True]  # the last joins processes
    names: dict = {"__name__": "distributed_page"}
    for block in blocks[:2]:
        exec(compile(block, str(PAGE), "exec"), names)
    mass = np.asarray(names["slope"].links.mass)
    assert np.isfinite(mass).all() and abs(mass).max() > 0


def test_the_page_names_every_function():
    text = PAGE.read_text(encoding="utf-8")
    public = [name for name, value in vars(distributed).items() if callable(value)]
    assert len(public) == 8
    assert [name for name in public if name not in text] == []
