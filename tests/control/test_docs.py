"""The code of docs/control.md runs, and the page names every law."""

import re
from pathlib import Path

import equinox as eqx
import pytest

from jaxdyn import control

PAGE = Path(__file__).parents[2] / "docs" / "control.md"


@pytest.mark.slow
def test_the_page_runs():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    assert len(blocks) == 4
    names: dict = {"__name__": "control_page"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["last"] < names["first"]


def test_the_page_names_every_law():
    text = PAGE.read_text(encoding="utf-8")
    laws = [c for c in vars(control).values() if isinstance(c, type) and issubclass(c, eqx.Module) and callable(c)]
    missing = [c.__name__ for c in laws if "__call__" in vars(c) and c.__name__ not in text]
    assert missing == ["LinearFeedback", "TrackingFeedback"]  # what lqr and tracking_lqr return
